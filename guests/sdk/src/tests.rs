//! The loops and the binding, by small functions that show each rule.

use crate::{
    Accepts, Context, Fault, Function, Guarantees, Harness, KeyUse, NoArguments, Out, Outcome, Outputs, Row, RowMask,
    TestRow,
};

fn shout(value: &str, _: &Context, out: &mut Out) -> Outcome {
    if value == "refuse" {
        return Err(Fault::UNSUPPORTED_VALUE);
    }
    out.push_str(&value.to_uppercase());
    Ok(())
}

fn token(value: &str, context: &Context, out: &mut Out) -> Outcome {
    let mut random = context.random(value)?;
    out.push(*random.pick(&['a', 'b', 'c', 'd']).ok_or(Fault::INTERNAL)?);
    Ok(())
}

fn initials(row: &Row<'_>, _: &Context, out: &mut Out) -> Outcome {
    for name in ["first", "last"] {
        out.push(row.get(name)?.and_then(|text| text.chars().next()).unwrap_or('?'));
    }
    Ok(())
}

fn adult(row: &Row<'_>, _: &Context) -> Outcome<bool> {
    Ok(row.read::<i64>(0)?.is_some_and(|age| age >= 18))
}

struct Swap;

impl RowMask for Swap {
    type Arguments = NoArguments;

    fn bind(_: NoArguments, context: &Context) -> Result<Self, String> {
        context.input("b").map(|_| Self)
    }

    fn mask(&self, row: &Row<'_>, out: &mut Outputs) -> Outcome {
        for (output, input) in [(0, 1), (1, 0)] {
            match row.at(input)? {
                Some(text) => out.column(output)?.push_str(text),
                None => out.column(output)?.null(),
            }
        }
        Ok(())
    }
}

fn functions() -> Vec<Function> {
    vec![
        Function::value("shout", shout).doc("Writes in capitals.").example("{}", ["ada"], ["ADA"]),
        Function::value("token", token).key(KeyUse::Required),
        Function::row("initials", initials),
        Function::filter("adult", adult).accepts(&[Accepts::Named("int4")]),
        Function::row_mask::<Swap>("swap").inputs(2, Some(2)).outputs(2, Some(2)),
    ]
}

fn row<const N: usize>(values: [Option<&str>; N]) -> TestRow {
    values.iter().map(|value| value.map(str::to_owned)).collect()
}

#[test]
fn null_and_empty_stay_apart_and_null_is_not_asked_about() {
    let shout = Harness::of(functions(), "shout");
    assert_eq!(shout.run([Some("é"), None, Some("")]), Ok(vec![Some("É".to_owned()), None, Some(String::new())]));
    shout.verify([Some("a"), None, Some(""), Some("日本")]);
}

#[test]
fn a_refusal_names_its_row() {
    let shout = Harness::of(functions(), "shout");
    assert_eq!(shout.run(["fine", "refuse"]), Err(Fault::UNSUPPORTED_VALUE));
}

#[test]
fn a_longer_value_than_the_column_holds_is_refused() {
    let shout = Harness::of(functions(), "shout").column("varchar(2)");
    assert_eq!(shout.one("éé"), Ok("ÉÉ".to_owned()));
    // The German ß has two capitals.
    assert_eq!(shout.one("éß"), Err(Fault::TOO_LONG));
}

#[test]
fn blank_padding_is_not_part_of_a_value() {
    let shout = Harness::of(functions(), "shout").column("char(5)");
    assert_eq!(shout.one("ab   "), Ok("AB".to_owned()));
}

#[test]
fn case_is_not_part_of_a_value_where_the_type_ignores_it() {
    let token = Harness::of(functions(), "token").column("citext");
    let values = ["ADA", "Ada", "ada", "ÉMILE", "émile", "İ"];
    let Ok(masked) = token.run(values) else { panic!("refused") };
    assert!(masked[0] == masked[2] && masked[1] == masked[2] && masked[3] == masked[4], "{masked:?}");
    assert_eq!(Harness::of(functions(), "shout").column("citext").one("İ"), Ok("İ".to_lowercase().to_uppercase()));
}

#[test]
fn a_key_is_asked_for_where_it_is_needed_and_refused_where_it_is_not() {
    let refusal = |harness: Harness| harness.refusal().unwrap_or_default();
    assert!(refusal(Harness::of(functions(), "token").without_key()).contains("needs a key"));
    assert!(refusal(Harness::of(functions(), "shout").key([0; 32])).contains("no use for a key"));
    assert!(refusal(Harness::of(functions(), "shout").column("int4")).contains("does not accept"));
    assert!(refusal(Harness::of(functions(), "shout").arguments("{\"loud\":1}")).contains("unknown field `loud`"));
}

#[test]
fn another_key_makes_other_choices() {
    let values = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    let harness = Harness::of(functions(), "token");
    let first = harness.run(values);
    assert_eq!(first, harness.run(values));
    assert_ne!(first, harness.key([1; 32]).run(values));
}

#[test]
fn rows_are_read_by_name_and_position() {
    let initials = Harness::of(functions(), "initials").inputs([("last", "text"), ("first", "text")]);
    assert_eq!(initials.run_rows(&[row([Some("Lovelace"), Some("Ada")])]), Ok(vec![row([Some("AL")])]));
    let unnamed = Harness::of(functions(), "initials").inputs([("last", "text")]);
    assert_eq!(unnamed.run_rows(&[row([Some("Lovelace")])]), Err(Fault::INTERNAL));
}

#[test]
fn an_output_whose_own_input_is_null_stays_null() {
    let columns = [("a", "text"), ("b", "text")];
    let swap = Harness::of(functions(), "swap").inputs(columns).outputs(columns);
    let rows = [row([Some("1"), Some("2")]), row([None, Some("2")]), row([None, None])];
    let masked = [row([Some("2"), Some("1")]), row([None, None]), row([None, None])];
    assert_eq!(swap.run_rows(&rows), Ok(masked.to_vec()));
    let refusal = Harness::of(functions(), "swap").inputs([("a", "text"), ("c", "text")]).outputs(columns).refusal();
    assert!(refusal.is_some_and(|text| text.contains("needs the column \"b\"")));
}

#[test]
fn filters_read_types_and_refuse_what_is_none() {
    let adult = Harness::of(functions(), "adult").column("int4");
    assert_eq!(adult.keep_rows(&[row([Some("17")]), row([Some("18")]), row([None])]), Ok(vec![false, true, false]));
    assert_eq!(adult.keep_rows(&[row([Some("old")])]), Err(Fault::INVALID_INPUT));
}

#[test]
fn promises_are_what_the_function_declares() {
    let guarantees = Harness::of(functions(), "shout").guarantees();
    assert_eq!(guarantees, Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING);
}

#[test]
fn a_description_holds_the_schema_of_the_arguments() {
    let schemas = functions().into_iter().map(|function| function.into_info().argument_schema);
    assert!(schemas.into_iter().all(|schema| schema.contains("\"additionalProperties\":false")));
}
