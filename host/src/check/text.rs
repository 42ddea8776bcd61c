//! The report for a person: one line a finding, columns aligned, the remedy below.

use super::finding::{Grade, Report};

impl Report {
    /// The report as text. `colour`: whether it goes to a terminal that shows it.
    #[must_use]
    pub fn to_text(&self, colour: bool) -> String {
        let subject_width =
            self.findings.iter().map(|finding| shown(&finding.subject).chars().count()).max().unwrap_or(0);
        let id_width = self.findings.iter().map(|finding| finding.id.len()).max().unwrap_or(0);
        let indent = " ".repeat("PASS".len() + 2);
        let mut text = String::new();
        for finding in &self.findings {
            let grade = painted(finding.grade, colour);
            let (subject, message) = (shown(&finding.subject), shown(&finding.message));
            text.push_str(&format!("{grade}  {:id_width$}  {subject:subject_width$}  {message}\n", finding.id));
            if !finding.remedy.is_empty() {
                text.push_str(&format!("{indent}→ {}\n", shown(&finding.remedy)));
            }
        }
        let [pass, warn, fail] = [Grade::Pass, Grade::Warn, Grade::Fail].map(|grade| self.count(grade));
        text.push_str(&format!("\n{pass} passed, {warn} to know, {fail} failed\n"));
        text
    }
}

/// A name may hold a line break or an escape sequence; a terminal gets neither.
fn shown(text: &str) -> String {
    text.chars()
        .map(
            |character| {
                if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
            },
        )
        .collect()
}

fn painted(grade: Grade, colour: bool) -> String {
    let code = match grade {
        Grade::Pass => 32,
        Grade::Warn => 33,
        Grade::Fail => 31,
    };
    if colour { format!("\u{1b}[{code}m{grade}\u{1b}[0m") } else { grade.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Finding;

    fn report() -> Report {
        Report {
            findings: vec![
                Finding::pass("source-version", "source", "PostgreSQL 18.6"),
                Finding::fail(
                    "table-kind",
                    "table \"a\nb\".\"\u{1b}[1m\"",
                    "it is partitioned",
                    "Publish its partitions.",
                ),
                Finding::warn("source-wal-keep", "source", "unlimited", "Set max_slot_wal_keep_size."),
            ],
        }
    }

    #[test]
    fn columns_are_aligned_and_control_characters_shown() {
        insta::assert_snapshot!(report().to_text(false), @r#"
        PASS  source-version   source                    PostgreSQL 18.6
        FAIL  table-kind       table "a\nb"."\u{1b}[1m"  it is partitioned
              → Publish its partitions.
        WARN  source-wal-keep  source                    unlimited
              → Set max_slot_wal_keep_size.

        1 passed, 1 to know, 1 failed
        "#);
        assert!(report().to_text(true).starts_with("\u{1b}[32mPASS\u{1b}[0m"));
    }

    #[test]
    fn json_keeps_every_finding_and_the_gravest_grade() {
        let json = report().to_json();
        assert_eq!(json["grade"], "FAIL");
        assert_eq!(json["findings"][1]["id"], "table-kind");
        assert!(json["findings"][0].get("remedy").is_none());
        assert_eq!((report().exit_code(), Report::default().exit_code()), (3, 0));
    }
}
