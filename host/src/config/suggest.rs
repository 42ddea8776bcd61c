//! The nearest valid name, for "did you mean".

/// The valid name that is nearest to what was written, if any is near enough to be meant.
///
/// Case is not counted, so that `Email` finds `email`: names are exact, and a wrong case is the likeliest slip.
#[must_use]
pub fn nearest<'a>(written: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lowered = written.to_lowercase();
    let length = lowered.chars().count();
    let valid: Vec<&str> = valid.into_iter().collect();
    // The beginning of one name and of no other: `url` for `url_env`.
    let mut begun = valid.iter().filter(|candidate| length >= 3 && candidate.to_lowercase().starts_with(&lowered));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    // A third of the letters may be wrong; beyond that a suggestion is a guess.
    let allowed = (length / 3).max(1);
    valid
        .into_iter()
        // The distance is quadratic in the lengths: names that differ too much in length are never near.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed && length <= 128)
        .map(|candidate| (strsim::damerau_levenshtein(&lowered, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let valid = ["columns", "domain", "key", "email", "full name"];
        for (written, expected) in [
            ("colunms", Some("columns")),
            ("Columns", Some("columns")),
            ("Email", Some("email")),
            ("full_name", Some("full name")),
            ("kye", Some("key")),
            ("password", None),
            ("dom", Some("domain")),
            ("do", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(written, valid), expected, "{written}");
        }
    }
}
