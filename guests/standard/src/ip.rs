//! `ip`: another address of the same network.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pgveil_guest::{Accepts, Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::permute::Permutation;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// How many bits of an IPv4 address stay.
    #[schemars(range(min = 0, max = 24))]
    v4: u32,
    /// How many bits of an IPv6 address stay.
    #[schemars(range(min = 2, max = 96))]
    v6: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { v4: 8, v6: 32 }
    }
}

struct Ip {
    v4: Permutation,
    v6: Permutation,
    arguments: Arguments,
}

impl ValueMask for Ip {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        if arguments.v4 > 24 || !(2..=96).contains(&arguments.v6) {
            return Err("arguments: `v4` must lie between 0 and 24, `v6` between 2 and 96".to_owned());
        }
        let key = context.key("ip")?;
        let [v4, v6] = [32 - arguments.v4, 128 - arguments.v6].map(|bits| Permutation::new(&key, 1 << bits));
        Ok(Self { v4, v6, arguments })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        if value.is_empty() {
            return Ok(());
        }
        let (address, suffix) = value.split_at(value.find('/').unwrap_or(value.len()));
        let masked = match address.parse().map_err(|_| Fault::UNSUPPORTED_VALUE)? {
            IpAddr::V4(address) => {
                let bits = masked_bits(u128::from(address.to_bits()), 32 - self.arguments.v4, &self.v4);
                IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).map_err(|_| Fault::INTERNAL)?))
            }
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(masked_bits(address.to_bits(), 128 - self.arguments.v6, &self.v6)))
            }
        };
        write!(out, "{masked}{suffix}").map_err(|_| Fault::INTERNAL)
    }
}

/// An address whose last bits are replaced.
fn masked_bits(bits: u128, free: u32, permutation: &Permutation) -> u128 {
    let mask = (1_u128 << free) - 1;
    bits & !mask | permutation.apply(bits & mask)
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Ip>("ip")
        .doc(
            "Replaces an IP address by another of the same network.\n\nThe first bits stay, the rest is a keyed bijection, so that different \
             addresses stay different; a prefix length stays as it is. What is no address stops the job; an empty string stays empty.",
        )
        .accepts(&[Accepts::Named("inet"), Accepts::Strings])
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"v4": 16}"#, ["192.168.2.1/24"], ["192.168.85.119/24"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Harness};
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn ip() -> Harness {
        Harness::of(crate::functions(), "ip").column("inet")
    }

    #[test]
    fn networks_and_prefix_lengths_stay() {
        let masked = ip().arguments(json!({"v4": 16})).one("192.168.2.0/12");
        assert!(
            masked.is_ok_and(|text| text.starts_with("192.168.") && text.ends_with("/12") && text != "192.168.2.0/12")
        );
        let masked = ip().one("2001:db8::1");
        assert!(masked.is_ok_and(|text| text.starts_with("2001:db8:") && text != "2001:db8::1"));
        assert_eq!(ip().one("localhost"), Err(Fault::UNSUPPORTED_VALUE));
        assert!(ip().arguments(json!({"v4": 32})).refusal().is_some());
    }

    proptest! {
        #[test]
        fn addresses_stay_apart(v4 in prop::collection::btree_set(any::<u32>(), 1..20), v6 in prop::collection::btree_set(any::<u128>(), 1..20)) {
            let v4 = v4.into_iter().map(|bits| Ipv4Addr::from_bits(bits).to_string());
            let values: Vec<String> = v4.chain(v6.into_iter().map(|bits| Ipv6Addr::from_bits(bits).to_string())).collect();
            ip().verify(values.iter().map(String::as_str).map(Some).chain([None]));
            let Ok(masked) = ip().run(values.iter().map(String::as_str)) else { panic!("refused") };
            prop_assert_eq!(masked.iter().collect::<std::collections::BTreeSet<_>>().len(), values.len());
        }
    }
}
