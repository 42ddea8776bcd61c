//! `integer`: another number of the same range.

use std::fmt::Write;

use pgveil_guest::value::read;
use pgveil_guest::{Accepts, ColumnInfo, Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::permute::Permutation;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// The least number of the range; 0 by default. A value outside of the range stops the job.
    min: Option<i64>,
    /// The greatest number of the range; by default the greatest of the column's type. Columns that refer to each other need the same
    /// range, so where their types differ it must be given.
    max: Option<i64>,
}

struct Integer {
    permutation: Permutation,
    min: i64,
    max: i64,
}

impl ValueMask for Integer {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let type_name = context.outputs().first().map_or("int8", |column: &ColumnInfo| column.base_type_name.as_str());
        let (least, greatest) = match type_name {
            "int2" => (i64::from(i16::MIN), i64::from(i16::MAX)),
            "int4" => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let (min, max) = (arguments.min.unwrap_or(0), arguments.max.unwrap_or(greatest));
        if min >= max || min < least || max > greatest {
            return Err(format!(
                "arguments: the range {min} to {max} must lie in {least} to {greatest} and hold two numbers"
            ));
        }
        let size = (i128::from(max) - i128::from(min) + 1).unsigned_abs();
        Ok(Self { permutation: Permutation::new(&context.key("integer")?, size), min, max })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        let number: i64 = read(value)?;
        if !(self.min..=self.max).contains(&number) {
            return Err(Fault::OUT_OF_RANGE);
        }
        let offset = (i128::from(number) - i128::from(self.min)).unsigned_abs();
        let masked = i128::from(self.min) + self.permutation.apply(offset) as i128;
        write!(out, "{masked}").map_err(|_| Fault::INTERNAL)
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Integer>("integer")
        .doc(
            "Replaces an integer by another of the same range.\n\nA keyed bijection: different numbers stay different, so it may mask \
             keys. Order and distances are lost.",
        )
        .accepts(&[Accepts::Named("int8"), Accepts::Named("int4"), Accepts::Named("int2")])
        .key(KeyUse::Required)
        .guarantees(Guarantees::all())
        .example(r#"{"min": 1, "max": 999999}"#, ["42"], ["410974"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::json;
    use pgveil_guest::{Fault, Harness};
    use proptest::prelude::*;

    fn integer(sql_type: &str) -> Harness {
        Harness::of(crate::functions(), "integer").column(sql_type)
    }

    #[test]
    fn a_whole_type_is_mapped_onto_itself() {
        let numbers: Vec<String> = (0..=i16::MAX).map(|number| number.to_string()).collect();
        let Ok(mut masked) = integer("int2").run(numbers.iter().map(String::as_str)) else { panic!("refused") };
        masked.sort();
        masked.dedup();
        assert_eq!(masked.len(), numbers.len());
    }

    #[test]
    fn numbers_outside_are_refused_and_ranges_checked() {
        assert_eq!(integer("int4").one("-1"), Err(Fault::OUT_OF_RANGE));
        assert_eq!(integer("int4").one("x"), Err(Fault::INVALID_INPUT));
        assert!(integer("int2").arguments(json!({"max": 40_000})).refusal().is_some());
        assert!(integer("int4").arguments(json!({"min": 5, "max": 5})).refusal().is_some());
        assert!(integer("int8").arguments(json!({"min": i64::MIN})).one("-9223372036854775808").is_ok());
    }

    proptest! {
        #[test]
        fn promises_hold(numbers in prop::collection::btree_set(0..i64::MAX, 1..20)) {
            let values: Vec<String> = numbers.iter().map(i64::to_string).collect();
            integer("int8").verify(values.iter().map(String::as_str).map(Some).chain([None]));
        }
    }
}
