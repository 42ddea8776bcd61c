//! `hash`: a keyed hash of the value.

use pgveil_guest::{Accepts, Context, Function, Guarantees, Key, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Encoding {
    /// Hexadecimal, 4 bits a character.
    #[default]
    Hex,
    /// Base 32 in lower case, as RFC 4648 without padding, 5 bits a character.
    Base32,
}

impl Encoding {
    const fn bits(self) -> usize {
        match self {
            Self::Hex => 4,
            Self::Base32 => 5,
        }
    }

    const fn alphabet(self) -> &'static [u8] {
        match self {
            Self::Hex => b"0123456789abcdef",
            Self::Base32 => b"abcdefghijklmnopqrstuvwxyz234567",
        }
    }

    /// The characters that hold 256 bits.
    const fn longest(self) -> usize {
        256_usize.div_ceil(self.bits())
    }
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// How the hash is written.
    encoding: Encoding,
    /// How many characters. By default all 256 bits, or as many as the column holds.
    #[schemars(range(min = 1, max = 64))]
    length: Option<usize>,
}

struct Hash {
    key: Key,
    encoding: Encoding,
    length: usize,
}

impl ValueMask for Hash {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let encoding = arguments.encoding;
        let longest = encoding.longest();
        let limit = context.character_limit(0).unwrap_or(longest).min(longest);
        let length = arguments.length.unwrap_or(limit);
        if !(1..=limit).contains(&length) {
            return Err(format!("arguments: `length` is {length}, it must lie between 1 and {limit}"));
        }
        Ok(Self { key: context.key("hash")?, encoding, length })
    }

    fn guarantees(&self) -> Guarantees {
        if self.length * self.encoding.bits() >= 128 { Guarantees::INJECTIVE } else { Guarantees::empty() }
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        write_base(&self.key.hash(value.as_bytes()), self.encoding.alphabet(), self.length, out);
        Ok(())
    }
}

/// Writes the first characters of a hash in an alphabet whose size is a power of two.
pub(crate) fn write_base(hash: &[u8; 32], alphabet: &[u8], length: usize, out: &mut Out) {
    let width = alphabet.len().ilog2();
    let mask = (1_u32 << width) - 1;
    let (mut pending, mut count) = (0_u32, 0_u32);
    let mut bytes = hash.iter();
    for _ in 0..length {
        if count < width {
            // Past the end come zeros: base 32 has four bits more than 256.
            pending = pending << 8 | u32::from(bytes.next().copied().unwrap_or(0));
            count += 8;
        }
        count -= width;
        out.push(char::from(alphabet[(pending >> count & mask) as usize]));
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Hash>("hash")
        .doc(
            "Replaces a value by its keyed blake3 hash.\n\nEqual values give equal hashes in every table under the same key and \
             domain, so joins keep working; without the key nobody can test a guess. From 128 bits, which is 32 characters of hex \
             or 26 of base 32, it counts as injective and may mask keys.",
        )
        .accepts(&[Accepts::Strings])
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example(r#"{"length": 16}"#, ["ada@example.com"], ["3a7110be9a740a93"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Guarantees, Harness};
    use proptest::prelude::*;

    fn hash(encoding: &str, length: Option<usize>) -> Harness {
        Harness::of(crate::functions(), "hash").arguments(json!({"encoding": encoding, "length": length}))
    }

    #[test]
    fn lengths_follow_arguments_and_column() {
        assert_eq!(hash("hex", None).one("a").map(|text| text.len()), Ok(64));
        assert_eq!(hash("base32", None).one("a").map(|text| text.len()), Ok(52));
        assert_eq!(hash("hex", None).column("varchar(10)").one("a").map(|text| text.len()), Ok(10));
        assert!(
            hash("hex", Some(11)).column("varchar(10)").refusal().is_some_and(|text| text.contains("between 1 and 10"))
        );
        assert!(hash("base32", Some(53)).refusal().is_some());
        assert!(hash("hex", Some(0)).refusal().is_some());
    }

    #[test]
    fn a_shorter_hash_is_the_start_of_a_longer() {
        for encoding in ["hex", "base32"] {
            let (Ok(long), Ok(short)) = (hash(encoding, None).one("a"), hash(encoding, Some(7)).one("a")) else {
                panic!()
            };
            assert!(long.starts_with(&short));
        }
    }

    #[test]
    fn only_long_hashes_are_injective() {
        let is_injective = |harness: Harness| harness.guarantees().contains(Guarantees::INJECTIVE);
        assert!(is_injective(hash("hex", Some(32))) && !is_injective(hash("hex", Some(31))));
        assert!(is_injective(hash("base32", Some(26))) && !is_injective(hash("base32", Some(25))));
    }

    proptest! {
        #[test]
        fn promises_hold(mut values in prop::collection::vec(any::<Option<String>>(), 1..20)) {
            values.push(None);
            hash("base32", None).verify(values.iter().map(Option::as_deref));
        }
    }
}
