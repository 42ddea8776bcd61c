//! Comparing values as PostgreSQL does, by type and without a float.

use std::cmp::Ordering;

use pgveil_guest::value::{Date, Decimal, Number, Timestamp, Uuid, read};
use pgveil_guest::{ColumnInfo, Fault, Outcome};

/// How the values of a column compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Integers and `numeric`, exactly.
    Decimal,
    /// `float4` and `float8`.
    Float,
    Date,
    Timestamp,
    Uuid,
    /// By code points, as under the collation `C`; whatever the database's own collation says.
    Text,
    /// Equal or not, by text: there is no order that a guest could know.
    Unordered,
}

impl Order {
    /// The order of a column's type.
    pub(crate) fn of(column: &ColumnInfo) -> Self {
        match column.base_type_name.as_str() {
            "int2" | "int4" | "int8" | "numeric" => Self::Decimal,
            "float4" | "float8" => Self::Float,
            "date" => Self::Date,
            "timestamp" | "timestamptz" => Self::Timestamp,
            "uuid" => Self::Uuid,
            _ if column.is_text() => Self::Text,
            _ => Self::Unordered,
        }
    }

    /// Compares two values.
    pub(crate) fn compare(self, left: &str, right: &str) -> Outcome<Ordering> {
        match self {
            Self::Decimal => Ok(compare_decimals(&read(left)?, &read(right)?)),
            // `NaN` equals itself and is above all else, as in PostgreSQL.
            Self::Float => {
                let (left, right): (f64, f64) = (read(left)?, read(right)?);
                left.partial_cmp(&right).or(Some(left.is_nan().cmp(&right.is_nan()))).ok_or(Fault::INTERNAL)
            }
            Self::Date => Ok(rank_date(read(left)?).cmp(&rank_date(read(right)?))),
            Self::Timestamp => Ok(rank_timestamp(read(left)?).cmp(&rank_timestamp(read(right)?))),
            Self::Uuid => {
                let (Uuid(left), Uuid(right)) = (read(left)?, read(right)?);
                Ok(left.cmp(&right))
            }
            Self::Text | Self::Unordered => Ok(left.cmp(right)),
        }
    }
}

fn rank_date(date: Date) -> (i8, i64) {
    match date {
        Date::NegativeInfinity => (-1, 0),
        Date::Finite(day) => (0, day.number()),
        Date::Infinity => (1, 0),
    }
}

fn rank_timestamp(timestamp: Timestamp) -> (i8, i64) {
    match timestamp {
        Timestamp::NegativeInfinity => (-1, 0),
        Timestamp::Finite(moment) => (0, moment.microseconds),
        Timestamp::Infinity => (1, 0),
    }
}

fn compare_decimals(left: &Decimal<'_>, right: &Decimal<'_>) -> Ordering {
    let rank = |decimal: &Decimal<'_>| match decimal {
        Decimal::NegativeInfinity => 0,
        Decimal::Finite(_) => 1,
        Decimal::Infinity => 2,
        Decimal::NotANumber => 3,
    };
    match (left, right) {
        (Decimal::Finite(left), Decimal::Finite(right)) => compare_numbers(left, right),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_numbers(left: &Number<'_>, right: &Number<'_>) -> Ordering {
    let digits =
        |number: &Number<'_>| (number.whole.trim_start_matches('0').len(), number.fraction.trim_end_matches('0').len());
    let is_zero = |number: &Number<'_>| digits(number) == (0, 0);
    let is_negative = |number: &Number<'_>| number.negative && !is_zero(number);
    let magnitudes = || {
        let (left_whole, right_whole) = (left.whole.trim_start_matches('0'), right.whole.trim_start_matches('0'));
        let (left_fraction, right_fraction) =
            (left.fraction.trim_end_matches('0'), right.fraction.trim_end_matches('0'));
        let by_length = left_whole.len().cmp(&right_whole.len());
        by_length.then_with(|| left_whole.cmp(right_whole)).then_with(|| left_fraction.cmp(right_fraction))
    };
    match (is_negative(left), is_negative(right)) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => magnitudes(),
        (true, true) => magnitudes().reverse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_in_order_compare_in_order() {
        let lists: [(Order, &[&str]); 5] = [
            (
                Order::Decimal,
                &[
                    "-Infinity",
                    "-10",
                    "-9.51",
                    "-9.5",
                    "-0.001",
                    "0",
                    "0.0010001",
                    "0.01",
                    "2",
                    "10",
                    "1000000000000000000000000000000.1",
                    "Infinity",
                    "NaN",
                ],
            ),
            (Order::Float, &["-Infinity", "-1e+300", "-0.5", "0", "1e-07", "3", "1e+300", "Infinity", "NaN"]),
            (Order::Date, &["-infinity", "0044-03-15 BC", "1999-12-31", "2000-01-01", "12000-01-01", "infinity"]),
            (
                Order::Timestamp,
                &[
                    "-infinity",
                    "1999-12-31 23:59:59.999999",
                    "2000-01-01 00:00:00",
                    "294276-01-01 00:00:00",
                    "infinity",
                ],
            ),
            (Order::Text, &["", "B", "a", "é"]),
        ];
        for (order, list) in lists {
            for (left, first) in list.iter().enumerate() {
                for (right, second) in list.iter().enumerate() {
                    assert_eq!(order.compare(first, second), Ok(left.cmp(&right)), "{order:?}: {first} and {second}");
                }
            }
        }
    }

    #[test]
    fn equal_numbers_have_many_spellings_and_nonsense_none() {
        for (left, right) in [("1", "1.00"), ("0", "-0.0"), ("007", "7")] {
            assert_eq!(Order::Decimal.compare(left, right), Ok(Ordering::Equal));
        }
        assert_eq!(Order::Decimal.compare("x", "1"), Err(Fault::INVALID_INPUT));
    }

    proptest! {
        #[test]
        fn integers_compare_as_integers(left: i64, right: i64) {
            prop_assert_eq!(Order::Decimal.compare(&left.to_string(), &right.to_string()), Ok(left.cmp(&right)));
        }
    }
}
