//! Example 2: several columns and a key. The full name is replaced by another that suits the person's language.
use pgveil_guest::{Context, Fault, Function, Guarantees, KeyUse, Out, Outcome, Row, guest};

const ENGLISH: (&[&str], &[&str]) = (&["Ada", "Grace", "Alan", "Mary"], &["Baker", "Carter", "Mason", "Weaver"]);
const GERMAN: (&[&str], &[&str]) = (&["Anna", "Jürgen", "Lena", "Uwe"], &["Bäcker", "Fuhrmann", "Maurer", "Weber"]);
const JAPANESE: (&[&str], &[&str]) = (&["花子", "太郎", "恵子", "健"], &["佐藤", "鈴木", "高橋", "田中"]);

/// The first column granted is the name, the second the locale: `full-name: { columns: [name, locale] }`.
fn full_name(row: &Row<'_>, context: &Context, out: &mut Out) -> Outcome {
    let name = row.at(0)?.ok_or(Fault::UNSUPPORTED_VALUE)?;
    let locale = row.at(1)?.unwrap_or("en");
    let (first, last) = match locale.split(['_', '-']).next() {
        Some("de") => GERMAN,
        Some("ja") => JAPANESE,
        _ => ENGLISH,
    };
    let mut random = context.random(name)?;
    let first = random.pick(first).ok_or(Fault::INTERNAL)?;
    let last = random.pick(last).ok_or(Fault::INTERNAL)?;
    let names = if locale.starts_with("ja") { [last, first] } else { [first, last] };
    out.push_str(names[0]);
    out.push(' ');
    out.push_str(names[1]);
    out.truncate_to_limit();
    Ok(())
}

guest![
    Function::row("full-name", full_name)
        .doc("Replaces a full name by one of the row's language; the columns are the name and the locale.")
        .inputs(2, Some(2))
        .key(KeyUse::Required)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::TYPE_PRESERVING)
        .example("{}", ["Zoë Müller", "de_AT"], ["Anna Fuhrmann"])
];

#[cfg(test)]
mod tests {
    use super::functions;
    use pgveil_guest::Harness;

    #[test]
    fn names_suit_their_language_and_stay_the_same() {
        Harness::verify_examples(functions);
        let rows = [["Zoë", "de"], ["Zoë", "ja_JP"], ["Ada", "en"]].map(|row| row.map(|v| Some(v.to_owned())).to_vec());
        let harness = Harness::of(functions(), "full-name");
        let harness = harness.inputs([("full name", "text"), ("locale", "text")]).outputs([("full name", "text")]);
        harness.verify_rows(&rows);
    }

    #[test]
    fn a_null_name_stays_null_and_a_null_locale_does_not_matter() {
        let rows = [vec![None, Some("de".to_owned())], vec![Some("Ada".to_owned()), None]];
        let harness = Harness::of(functions(), "full-name");
        let harness =
            harness.inputs([("full name", "text"), ("locale", "text")]).outputs([("full name", "varchar(3)")]);
        let Ok(masked) = harness.run_rows(&rows) else { panic!("refused") };
        assert_eq!(masked[0], [None]);
        assert!(masked[1][0].as_ref().is_some_and(|name| name.chars().count() == 3));
    }
}
