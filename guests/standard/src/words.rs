//! Lists of words, by locale.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which language's names are chosen.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Locale {
    /// English, in ASCII.
    #[default]
    En,
    /// German.
    De,
    /// French.
    Fr,
    /// Spanish.
    Es,
    /// Japanese, the family name first.
    Ja,
}

impl Locale {
    /// Given names.
    pub(crate) fn first_names(self) -> Words {
        Words::new(match self {
            Self::En => include_str!("../data/en-first-names.txt"),
            Self::De => include_str!("../data/de-first-names.txt"),
            Self::Fr => include_str!("../data/fr-first-names.txt"),
            Self::Es => include_str!("../data/es-first-names.txt"),
            Self::Ja => include_str!("../data/ja-first-names.txt"),
        })
    }

    /// Family names.
    pub(crate) fn last_names(self) -> Words {
        Words::new(match self {
            Self::En => include_str!("../data/en-last-names.txt"),
            Self::De => include_str!("../data/de-last-names.txt"),
            Self::Fr => include_str!("../data/fr-last-names.txt"),
            Self::Es => include_str!("../data/es-last-names.txt"),
            Self::Ja => include_str!("../data/ja-last-names.txt"),
        })
    }
}

/// A list of words, none of them empty.
pub(crate) struct Words {
    list: Vec<&'static str>,
}

impl Words {
    pub(crate) fn new(lines: &'static str) -> Self {
        Self { list: lines.lines().collect() }
    }

    /// Only the words of at most so many characters, so that a short column still gets whole ones. All of them where none is that short: the
    /// caller cuts.
    pub(crate) fn at_most(mut self, characters: Option<usize>) -> Self {
        let fits = |word: &&str| characters.is_none_or(|most| word.chars().count() <= most);
        if self.list.iter().any(fits) {
            self.list.retain(|word| fits(word));
        }
        self
    }

    /// A word for a random number: each equally likely.
    pub(crate) fn pick(&self, random: &mut pgveil_guest::Random<'_>) -> &'static str {
        random.pick(&self.list).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_whole_words() {
        for locale in [Locale::En, Locale::De, Locale::Fr, Locale::Es, Locale::Ja] {
            for words in [locale.first_names(), locale.last_names()] {
                assert!(words.list.len() >= 90, "{locale:?}");
                assert!(words.list.iter().all(|word| !word.is_empty() && word.trim() == *word), "{locale:?}");
                assert!(words.list.is_sorted() && words.list.windows(2).all(|pair| pair[0] != pair[1]), "{locale:?}");
            }
        }
    }

    #[test]
    fn short_columns_get_short_words() {
        let short = Locale::En.first_names().at_most(Some(4));
        assert!(!short.list.is_empty() && short.list.iter().all(|word| word.len() <= 4));
        assert!(!Locale::En.first_names().at_most(Some(1)).list.is_empty());
    }
}
