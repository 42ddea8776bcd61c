//! `uuid`: another identifier of the same version.

use std::fmt::Write;

use pgveil_guest::value::{Uuid, read};
use pgveil_guest::{Accepts, Context, Fault, Function, Guarantees, KeyUse, NoArguments, Out, Outcome, ValueMask};

use crate::permute::Permutation;

/// Below the version lie 76 bits, of which the upper 14 are what is left of 16 beside the variant's two.
const VERSION: u128 = 0xf << 76;
const VARIANT: u128 = 0b11 << 62;

struct Identifier {
    permutation: Permutation,
    /// Whether each identifier has one spelling, as in columns of type `uuid`.
    is_canonical: bool,
}

impl ValueMask for Identifier {
    type Arguments = NoArguments;

    fn bind(_: NoArguments, context: &Context) -> Result<Self, String> {
        let is_canonical = context.inputs().iter().all(|column| column.base_type_name == "uuid");
        Ok(Self { permutation: Permutation::new(&context.key("uuid")?, 1 << 122), is_canonical })
    }

    fn guarantees(&self) -> Guarantees {
        if self.is_canonical { Guarantees::INJECTIVE } else { Guarantees::empty() }
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let Uuid(bits) = read(value)?;
        let masked = spread(self.permutation.apply(gather(bits))) | bits & (VERSION | VARIANT);
        write!(out, "{}", Uuid(masked)).map_err(|_| Fault::INTERNAL)
    }
}

/// The 122 bits that are neither version nor variant, side by side.
fn gather(bits: u128) -> u128 {
    let (high, middle, low) = (bits >> 80, bits >> 64 & 0xfff, bits & ((1 << 62) - 1));
    high << 74 | middle << 62 | low
}

/// Undoes [`gather`], with zeros for version and variant.
fn spread(bits: u128) -> u128 {
    let (high, middle, low) = (bits >> 74, bits >> 62 & 0xfff, bits & ((1 << 62) - 1));
    high << 80 | middle << 64 | low
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Identifier>("uuid")
        .doc(
            "Replaces a UUID by another of the same version and variant.\n\nA keyed bijection: different identifiers stay different, so it \
             may mask keys. The time in versions 1, 6 and 7 is lost. Text columns are accepted where they hold the form with \
             hyphens; it is written in lower case.",
        )
        .accepts(&[Accepts::Named("uuid"), Accepts::Strings])
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING | Guarantees::TYPE_PRESERVING)
        .example("{}", ["0f8fad5b-d9cb-469f-a165-70867728950e"], ["1730a0ab-50eb-4713-82b3-d1833f97cb74"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgveil_guest::Harness;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gathering_can_be_undone(bits: u128) {
            prop_assert_eq!(spread(gather(bits)) | bits & (VERSION | VARIANT), bits);
            prop_assert!(gather(bits) < 1 << 122);
        }

        #[test]
        fn promises_hold_and_version_and_variant_stay(numbers in prop::collection::btree_set(any::<u128>(), 1..12)) {
            let values: Vec<String> = numbers.iter().map(|&bits| Uuid(bits).to_string()).collect();
            let uuid = Harness::of(crate::functions(), "uuid").column("uuid");
            uuid.verify(values.iter().map(String::as_str).map(Some).chain([None]));
            for value in &values {
                let Ok(masked) = uuid.one(value) else { panic!("refused") };
                prop_assert_eq!(&masked[14..15], &value[14..15]);
                prop_assert_ne!(&masked, value);
            }
        }
    }

    #[test]
    fn it_is_injective_where_the_column_has_one_spelling() {
        let harness = |sql_type| Harness::of(crate::functions(), "uuid").column(sql_type);
        assert!(harness("uuid").guarantees().contains(Guarantees::INJECTIVE));
        assert!(!harness("text").guarantees().contains(Guarantees::INJECTIVE));
    }
}
