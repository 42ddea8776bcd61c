//! `where`: rows that meet a condition.

use std::cmp::Ordering;

use pgveil_guest::serde_json::Value;
use pgveil_guest::{Accepts, ColumnInfo, Context, Function, Guarantees, Outcome, Row, RowFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::compare::Order;

/// A condition: `column` and one comparison with it, or one of `all`, `any` and `not`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Arguments {
    /// The column that is compared.
    column: Option<String>,
    /// Equal to this value.
    eq: Option<Value>,
    /// Not equal to this value.
    ne: Option<Value>,
    /// Less than this value.
    lt: Option<Value>,
    /// Less than or equal to this value.
    le: Option<Value>,
    /// Greater than this value.
    gt: Option<Value>,
    /// Greater than or equal to this value.
    ge: Option<Value>,
    /// Equal to one of these values.
    r#in: Option<Vec<Value>>,
    /// As SQL's LIKE: `%` for any characters, `_` for one, `\` before either for itself.
    like: Option<String>,
    /// Whether it must be NULL, or must not.
    null: Option<bool>,
    /// All of these conditions hold.
    all: Option<Vec<Arguments>>,
    /// One of these conditions holds.
    any: Option<Vec<Arguments>>,
    /// This condition does not hold.
    not: Option<Box<Arguments>>,
}

/// Whether an ordering is the one that a comparison asks for.
type Test = fn(Ordering) -> bool;

/// A condition, checked. It has three outcomes, as in SQL: true, false, and unknown where a NULL was compared.
enum Condition {
    Compare { column: usize, order: Order, value: String, holds: Test },
    In { column: usize, order: Order, values: Vec<String> },
    Like { column: usize, pattern: Vec<Piece> },
    Null { column: usize, wanted: bool },
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Copy)]
enum Piece {
    Character(char),
    One,
    Many,
}

impl RowFilter for Condition {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        Self::check(arguments, context)
    }

    fn keep(&self, row: &Row<'_>) -> Outcome<bool> {
        Ok(self.holds(row)? == Some(true))
    }
}

impl Condition {
    fn check(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let Arguments { column, eq, ne, lt, le, gt, ge, r#in, like, null, all, any, not } = arguments;
        let each =
            |list: Vec<Arguments>| list.into_iter().map(|one| Self::check(one, context)).collect::<Result<Vec<_>, _>>();
        let mut found = Vec::new();
        if let Some(list) = all {
            found.push(Self::All(each(list)?));
        }
        if let Some(list) = any {
            found.push(Self::Any(each(list)?));
        }
        if let Some(one) = not {
            found.push(Self::Not(Box::new(Self::check(*one, context)?)));
        }
        let Some(name) = column else {
            return exactly_one(found, "`all`, `any` or `not`, or `column` with a comparison");
        };
        let position = context.input(&name)?;
        let info = &context.inputs()[position];
        let comparisons: [(Option<Value>, bool, Test); 6] = [
            (eq, false, Ordering::is_eq),
            (ne, false, Ordering::is_ne),
            (lt, true, Ordering::is_lt),
            (le, true, Ordering::is_le),
            (gt, true, Ordering::is_gt),
            (ge, true, Ordering::is_ge),
        ];
        for (value, orders, holds) in comparisons {
            if let Some(value) = value {
                let (order, value) = (order_of(info, orders)?, text_of(&value, info)?);
                found.push(Self::Compare { column: position, order, value, holds });
            }
        }
        if let Some(values) = r#in {
            let values = values.iter().map(|value| text_of(value, info)).collect::<Result<_, _>>()?;
            found.push(Self::In { column: position, order: order_of(info, false)?, values });
        }
        if let Some(pattern) = like {
            found.push(Self::Like { column: position, pattern: pieces(&pattern) });
        }
        if let Some(wanted) = null {
            found.push(Self::Null { column: position, wanted });
        }
        exactly_one(found, "one comparison with `column`: eq, ne, lt, le, gt, ge, in, like or null")
    }

    fn holds(&self, row: &Row<'_>) -> Outcome<Option<bool>> {
        match self {
            Self::Compare { column, order, value, holds } => {
                let Some(left) = row.at(*column)? else { return Ok(None) };
                let ordering = order.compare(left, value).map_err(|fault| fault.in_column(*column))?;
                Ok(Some(holds(ordering)))
            }
            Self::In { column, order, values } => {
                let Some(left) = row.at(*column)? else { return Ok(None) };
                for value in values {
                    if order.compare(left, value).map_err(|fault| fault.in_column(*column))?.is_eq() {
                        return Ok(Some(true));
                    }
                }
                Ok(Some(false))
            }
            Self::Like { column, pattern } => Ok(row.at(*column)?.map(|value| is_like(value, pattern))),
            Self::Null { column, wanted } => Ok(Some(row.at(*column)?.is_none() == *wanted)),
            Self::All(list) => Self::combine(list, row, false),
            Self::Any(list) => Self::combine(list, row, true),
            Self::Not(one) => Ok(one.holds(row)?.map(|holds| !holds)),
        }
    }

    /// The outcome of several: `decisive` where one is that, else unknown where one is unknown.
    fn combine(list: &[Self], row: &Row<'_>, decisive: bool) -> Outcome<Option<bool>> {
        let mut outcome = Some(!decisive);
        for one in list {
            match one.holds(row)? {
                Some(holds) if holds == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => outcome = None,
            }
        }
        Ok(outcome)
    }
}

fn exactly_one(mut found: Vec<Condition>, wanted: &str) -> Result<Condition, String> {
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(format!("arguments: a condition has exactly {wanted}")),
    }
}

fn order_of(column: &ColumnInfo, must_order: bool) -> Result<Order, String> {
    match Order::of(column) {
        Order::Unordered if must_order => Err(format!(
            "arguments: values of type {} have no order here; compare column {:?} by eq, ne, in or null",
            column.type_name, column.name
        )),
        order => Ok(order),
    }
}

/// A policy's value as PostgreSQL would write it, and proof that it is one of the column's type.
fn text_of(value: &Value, column: &ColumnInfo) -> Result<String, String> {
    let text = match value {
        Value::String(text) if column.ignores_case() => text.to_lowercase(),
        Value::String(text) => text.clone(),
        Value::Bool(value) if column.base_type_name == "bool" => if *value { "t" } else { "f" }.to_owned(),
        Value::Number(number) => number.to_string(),
        other => return Err(format!("arguments: {other} cannot be compared with column {:?}", column.name)),
    };
    let compared = Order::of(column).compare(&text, &text);
    compared.map(|_| text).map_err(|_| format!("arguments: {value} is no value of type {}", column.type_name))
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut characters = pattern.chars();
    let mut pieces = Vec::new();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '%' => Piece::Many,
            '_' => Piece::One,
            '\\' => Piece::Character(characters.next().unwrap_or('\\')),
            other => Piece::Character(other),
        });
    }
    pieces
}

/// Matches without recursion: on a mismatch, the last `%` takes one character more. At most length times pattern steps.
fn is_like(value: &str, pattern: &[Piece]) -> bool {
    let (mut rest, mut position) = (value.chars(), 0);
    let mut retry: Option<(std::str::Chars<'_>, usize)> = None;
    loop {
        let before = rest.clone();
        match (pattern.get(position), rest.next()) {
            (Some(Piece::Many), _) => {
                rest = before;
                position += 1;
                retry = Some((rest.clone(), position));
            }
            (Some(Piece::One), Some(_)) => position += 1,
            (Some(Piece::Character(wanted)), Some(character)) if *wanted == character => position += 1,
            (None, None) => return true,
            _ => {
                let Some((again, after)) = &mut retry else { return false };
                if again.next().is_none() {
                    return false;
                }
                (rest, position) = (again.clone(), *after);
            }
        }
    }
}

pub(crate) fn function() -> Function {
    Function::row_filter::<Condition>("where")
        .doc(
            "Keeps the rows that meet a condition.\n\nConditions compare one granted column with values, by its type, and combine by `all`, `any` \
             and `not`. As in SQL, a comparison with NULL is unknown, and a row whose condition is unknown is dropped. Text compares \
             by code points.",
        )
        .accepts(&[Accepts::Any])
        .guarantees(Guarantees::DETERMINISTIC)
        .example(r#"{"column": "value", "like": "A%"}"#, ["Ada"], ["keep"])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::serde_json::{Value, json};
    use pgveil_guest::{Fault, Harness};

    fn filter(arguments: Value) -> Harness {
        let columns = [
            ("name", "text"),
            ("age", "int4"),
            ("born", "date"),
            ("active", "bool"),
            ("tag", "citext"),
            ("at", "point"),
        ];
        Harness::of(crate::functions(), "where").inputs(columns).arguments(arguments)
    }

    fn keeps(arguments: Value, row: [Option<&str>; 6]) -> Result<bool, Fault> {
        filter(arguments).keep_rows(&[row.map(|value| value.map(str::to_owned)).to_vec()]).map(|kept| kept == [true])
    }

    const ADA: [Option<&str>; 6] =
        [Some("Ada"), Some("36"), Some("1815-12-10"), Some("t"), Some("Countess"), Some("(1,2)")];

    #[test]
    fn conditions_hold_or_not() {
        for (arguments, kept) in [
            (json!({"column": "age", "ge": 36}), true),
            (json!({"column": "age", "gt": "036.0"}), false),
            (json!({"column": "age", "lt": 100}), true),
            (json!({"column": "born", "lt": "infinity"}), true),
            (json!({"column": "active", "eq": true}), true),
            (json!({"column": "tag", "eq": "COUNTESS"}), true),
            (json!({"column": "at", "ne": "(1,2)"}), false),
            (json!({"column": "name", "in": ["Grace", "Ada"]}), true),
            (json!({"column": "name", "like": "_d%"}), true),
            (json!({"column": "name", "like": "%a%a"}), false),
            (json!({"column": "name", "null": false}), true),
            (json!({"all": [{"column": "age", "ge": 18}, {"not": {"column": "name", "eq": "Bob"}}]}), true),
            (json!({"any": [{"column": "age", "lt": 18}, {"column": "name", "eq": "Bob"}]}), false),
            (json!({"all": []}), true),
        ] {
            assert_eq!(keeps(arguments.clone(), ADA), Ok(kept), "{arguments}");
        }
    }

    #[test]
    fn null_is_unknown_and_not_does_not_change_that() {
        let nobody = [None; 6];
        for arguments in [
            json!({"column": "age", "eq": 1}),
            json!({"not": {"column": "age", "eq": 1}}),
            json!({"column": "age", "in": [1]}),
        ] {
            assert_eq!(keeps(arguments, nobody), Ok(false));
        }
        assert_eq!(keeps(json!({"column": "age", "null": true}), nobody), Ok(true));
        let either = json!({"any": [{"column": "age", "eq": 1}, {"column": "name", "null": true}]});
        assert_eq!(keeps(either, nobody), Ok(true));
    }

    #[test]
    fn like_knows_escapes_and_backtracks() {
        let like = |value: &str, pattern: &str| super::is_like(value, &super::pieces(pattern));
        assert!(like("100%", "100\\%") && !like("1000", "100\\%") && like("", "%") && !like("", "_"));
        assert!(like("aaab", "%aab") && like("日本語", "_本%") && like("abcabd", "%ab_") && !like("abc", "ab"));
        assert!(!like(&"a".repeat(2000), &"%a".repeat(500).replace("%a%a", "%aab")));
    }

    #[test]
    fn conditions_are_checked_when_bound() {
        for (arguments, wanted) in [
            (json!({}), "exactly"),
            (json!({"column": "age"}), "exactly"),
            (json!({"column": "age", "eq": 1, "ne": 2}), "exactly"),
            (json!({"column": "height", "eq": 1}), "granted are"),
            (json!({"column": "age", "eq": "old"}), "no value of type int4"),
            (json!({"column": "at", "lt": "(1,2)"}), "no order"),
            (json!({"column": "age", "eq": [1]}), "cannot be compared"),
            (json!({"column": "age", "equals": 1}), "unknown field"),
        ] {
            let refusal = filter(arguments.clone()).refusal().unwrap_or_default();
            assert!(refusal.contains(wanted), "{arguments}: {refusal}");
        }
    }
}
