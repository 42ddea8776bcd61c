//! pgveil's library of masks and filters: `builtin: standard` in a policy.
//!
//! One file per function, each with its arguments, its promises, an example and its tests. What they share:
//!
//! - [`permute`]: bijections of numbers and of digit strings, for masks that must not collide.
//! - [`words`]: lists of names, by locale.
//!
//! **A released function never changes its output.** Another output is another name.

mod permute;
mod words;

mod constant;
mod digits;
mod email;
mod hash;
mod name;
mod partial;
mod phone;
mod redact;
mod sample;

pgveil_guest::guest![
    // destroying
    redact::function(),
    constant::function(),
    hash::function(),
    partial::function(),
    // format-preserving
    digits::function(),
    // realistic
    name::function(),
    email::function(),
    phone::function(),
    // filters
    sample::function(),
];

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;

    #[test]
    fn every_function_does_what_its_example_says() {
        Harness::verify_examples(super::functions);
    }

    /// A changed output is a new function: see [`golden`](crate::tests).
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
