//! `email`: another address.

use pgveil_guest::{Context, Fault, Function, Guarantees, Key, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::hash::write_base;
use crate::words::{Locale, Words};

/// Domains that RFC 2606 and RFC 6761 set aside: mail to them reaches nobody.
const RESERVED: [&str; 3] = ["example.com", "example.net", "example.org"];

/// The digits of the part that tells addresses apart: letters and digits that nobody confuses.
const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The characters that hold 128 bits, from which a hash counts as injective.
const UNIQUE: usize = 26;

/// Enough to keep a million addresses apart in all likelihood, the names beside them counted.
const USUAL: usize = 8;

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Domain {
    /// One of the domains reserved for examples, to which no mail is delivered.
    #[default]
    Replace,
    /// A hash of the domain under `.example`: colleagues still share theirs.
    Hash,
    /// The domain as it is. It may tell where a person works, and mail may be delivered.
    Keep,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// What becomes of the domain.
    domain: Domain,
    /// Whether different addresses must stay different, as in a unique column: the local part then holds 128 bits of hash.
    unique: bool,
}

struct Email {
    key: Key,
    locals: Key,
    domains: Key,
    domain: Domain,
    unique: bool,
    first: Words,
    last: Words,
}

impl ValueMask for Email {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let Arguments { domain, unique } = arguments;
        let needed = if unique { UNIQUE } else { 1 } + 1 + RESERVED[0].len();
        if let Some(limit) = context.character_limit(0).filter(|&limit| limit < needed) {
            return Err(format!("an address needs {needed} characters, the column holds {limit}"));
        }
        let (first, last) = (Locale::En.first_names(), Locale::En.last_names());
        let key = context.key("email")?;
        Ok(Self { locals: key.derive("local"), domains: key.derive("domain"), key, domain, unique, first, last })
    }

    fn guarantees(&self) -> Guarantees {
        if self.unique { Guarantees::INJECTIVE } else { Guarantees::empty() }
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        if value.is_empty() {
            return Ok(());
        }
        if !self.unique && value.bytes().any(|byte| !byte.is_ascii() || byte.is_ascii_uppercase()) {
            return self.write(&value.to_lowercase(), out);
        }
        self.write(value, out)
    }
}

impl Email {
    fn write(&self, address: &str, out: &mut Out) -> Outcome {
        let mut random = self.key.random(address.as_bytes());
        let (first, last) = (self.first.pick(&mut random), self.last.pick(&mut random));
        let reserved = RESERVED[random.below(3) as usize];
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        let mut hashed = [0; 16];
        let domain = match self.domain {
            Domain::Keep if !domain.is_empty() => domain,
            Domain::Hash => hashed_domain(&self.domains.hash(domain.as_bytes()), &mut hashed),
            _ => reserved,
        };
        let room = out.limit().map_or(usize::MAX, |limit| limit.saturating_sub(domain.chars().count() + 1));
        self.write_local(&self.locals.hash(address.as_bytes()), [first, last], room, out)?;
        out.push('@');
        out.push_str(domain);
        Ok(())
    }

    /// Writes `first.last.hash`, or as much of it as there is room for; never less of the hash than is promised.
    fn write_local(&self, hash: &[u8; 32], names: [&str; 2], room: usize, out: &mut Out) -> Outcome {
        let length = if self.unique { UNIQUE } else { USUAL.min(room) };
        if length > room || room == 0 {
            return Err(Fault::TOO_LONG);
        }
        for name in names {
            if out.written().len() + name.len() + 1 + length <= room {
                for character in name.chars() {
                    out.push(character.to_ascii_lowercase());
                }
                out.push('.');
            }
        }
        write_base(hash, ALPHABET, length, out);
        Ok(())
    }
}

/// Eight characters of the hash under the reserved top-level domain `.example`.
fn hashed_domain<'text>(hash: &[u8; 32], text: &'text mut [u8; 16]) -> &'text str {
    text[8..].copy_from_slice(b".example");
    for (character, byte) in text.iter_mut().zip(&hash[..8]) {
        *character = ALPHABET[usize::from(byte & 31)];
    }
    std::str::from_utf8(text).unwrap_or(RESERVED[0])
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Email>("email")
        .doc(
            "Replaces an e-mail address by another.\n\nThe local part becomes a name and some letters, chosen by key and value; the \
             domain one that is reserved for examples, unless `domain` says otherwise. Upper and lower case of a value are taken \
             for the same, unless `unique` asks that all different values stay different. What is no address becomes one; \
             an empty string stays empty.",
        )
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example("{}", ["ada@lovelace.org"], ["dedric.king.h4ggszpk@example.net"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Guarantees, Harness};
    use proptest::prelude::*;

    fn email(domain: &str, unique: bool) -> Harness {
        Harness::of(crate::functions(), "email").arguments(json!({"domain": domain, "unique": unique}))
    }

    fn domain(harness: &Harness, value: &str) -> String {
        let Ok(masked) = harness.one(value) else { panic!("refused") };
        masked.rsplit_once('@').map(|(_, domain)| domain.to_owned()).unwrap_or_default()
    }

    #[test]
    fn domains_are_replaced_hashed_or_kept() {
        assert!(super::RESERVED.contains(&domain(&email("replace", false), "a@corp.test").as_str()));
        assert_eq!(domain(&email("keep", false), "a@corp.test"), "corp.test");
        let hash = email("hash", false);
        assert_eq!(domain(&hash, "a@corp.test"), domain(&hash, "B@CORP.test"));
        assert_ne!(domain(&hash, "a@corp.test"), domain(&hash, "a@other.test"));
        assert!(super::RESERVED.contains(&domain(&email("keep", false), "no address").as_str()));
    }

    #[test]
    fn case_matters_only_where_values_must_stay_apart() {
        assert_eq!(email("replace", false).one("Ada@Corp.test"), email("replace", false).one("ada@corp.test"));
        assert_ne!(email("replace", true).one("Ada@Corp.test"), email("replace", true).one("ada@corp.test"));
        let citext = email("replace", true).column("citext");
        assert_eq!(citext.one("Ada@Corp.test"), citext.one("ada@corp.test"));
    }

    #[test]
    fn addresses_fit_their_column() {
        for limit in [13, 14, 20, 25, 38, 60] {
            email("replace", false)
                .column(&format!("varchar({limit})"))
                .verify(["ada@lovelace.org", "grace@hopper.mil"]);
        }
        assert!(email("replace", false).column("varchar(12)").refusal().is_some());
        assert!(email("replace", true).column("varchar(37)").refusal().is_some());
        assert!(email("replace", true).column("varchar(38)").one("a@b.c").is_ok());
        assert_eq!(email("keep", true).column("varchar(38)").one("a@a.very.long.domain"), Err(Fault::TOO_LONG));
    }

    #[test]
    fn it_is_injective_when_asked() {
        assert!(email("keep", true).guarantees().contains(Guarantees::INJECTIVE));
        assert!(!email("keep", false).guarantees().contains(Guarantees::INJECTIVE));
    }

    proptest! {
        #[test]
        fn promises_hold_and_outputs_look_like_addresses(values in prop::collection::vec(".{0,12}|[a-z]{1,5}@[a-z]{1,5}\\.[a-z]{2}", 1..12)) {
            email("hash", true).verify(values.iter().map(String::as_str).map(Some).chain([None]));
            for value in values.iter().filter(|value| !value.is_empty()) {
                let Ok(masked) = email("replace", false).one(value) else { panic!("refused") };
                prop_assert!(masked.is_ascii() && masked.matches('@').count() == 1 && !masked.contains(' '), "{}", masked);
            }
        }
    }
}
