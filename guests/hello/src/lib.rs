//! Example 1: a mask of one value, the whole guest.
use pgveil_guest::{Context, Function, Out, Outcome, guest};

/// Keeps how long a word is and nothing else.
fn hush(value: &str, _: &Context, out: &mut Out) -> Outcome {
    out.fill('x', value.chars().count());
    Ok(())
}

guest![Function::value("hush", hush).doc("Writes an x for each character.").example("{}", ["Zoë"], ["xxx"])];

#[cfg(test)]
mod tests {
    use super::functions;
    use pgveil_guest::Harness;

    #[test]
    fn it_hushes() {
        Harness::verify_examples(functions);
        Harness::of(functions(), "hush").verify([Some("Ada Lovelace"), Some(""), None, Some("日本語")]);
    }
}
