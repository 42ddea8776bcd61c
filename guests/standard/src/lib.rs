//! pgveil's library of masks and filters: `builtin: standard` in a policy.
//!
//! One file per function, each with its arguments, its promises, an example and its tests. What they share:
//!
//! - [`permute`]: bijections of numbers and of digit strings, for masks that must not collide.
//! - [`words`]: lists of names, by locale.
//! - [`calendar`]: one type for dates and timestamps; [`compare`]: how values of a type compare.
//!
//! **A released function never changes its output.** Another output is another name.

#[cfg(test)]
mod golden;
mod permute;
mod words;

mod alphanumeric;
mod array;
mod birth_date;
mod blank;
mod calendar;
mod card;
mod compare;
mod constant;
mod date_shift;
mod date_truncate;
mod digits;
mod email;
mod hash;
mod iban;
mod inner;
mod integer;
mod ip;
mod json;
mod json_path;
mod name;
mod name_part;
mod partial;
mod phone;
mod redact;
mod sample;
mod since;
mod truncate;
mod uuid;
mod where_filter;

pgveil_guest::guest![
    // destroying
    redact::function(),
    constant::function(),
    hash::function(),
    partial::function(),
    truncate::function(),
    blank::function(),
    // format-preserving
    digits::function(),
    alphanumeric::function(),
    integer::function(),
    uuid::function(),
    card::function(),
    iban::function(),
    // realistic
    name::function(),
    name_part::first_name(),
    name_part::last_name(),
    email::function(),
    phone::function(),
    ip::function(),
    // numbers and time
    date_shift::function(),
    date_truncate::function(),
    birth_date::function(),
    // structured
    json::function(),
    array::function(),
    // filters
    where_filter::function(),
    sample::function(),
    since::function(),
];

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;

    #[test]
    fn every_function_does_what_its_example_says() {
        Harness::verify_examples(super::functions);
    }

    #[test]
    fn names_are_kebab_case_and_unique() {
        let functions = super::functions();
        let mut names: Vec<_> = functions.iter().map(|function| function.name().to_owned()).collect();
        assert!(
            names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')),
            "{names:?}"
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), functions.len());
    }
}
