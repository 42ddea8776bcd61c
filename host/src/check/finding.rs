//! What `check` says: findings, how grave they are, and the report they make up.

use std::fmt;

use serde::Serialize;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Grade {
    /// As it should be.
    Pass,
    /// Works, but the operator should know.
    Warn,
    /// The job would not start, or would stop.
    Fail,
}

impl fmt::Display for Grade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Grade::Pass => "PASS",
            Grade::Warn => "WARN",
            Grade::Fail => "FAIL",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub grade: Grade,
    /// What was looked at, in kebab case; the first word is the group. Stable: scripts may match on it.
    pub id: &'static str,
    /// Whom it is about: `source`, `table public.users`.
    pub subject: String,
    /// What was found. Names and settings, never a row's value.
    pub message: String,
    /// What the operator can do; empty for a PASS.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Finding {
    /// As it should be.
    pub fn pass(id: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { grade: Grade::Pass, id, subject: subject.into(), message: message.into(), remedy: String::new() }
    }

    /// Works, but the operator should know.
    pub fn warn(
        id: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { grade: Grade::Warn, id, subject: subject.into(), message: message.into(), remedy: remedy.into() }
    }

    /// The job would not start, or would stop.
    pub fn fail(
        id: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { grade: Grade::Fail, id, subject: subject.into(), message: message.into(), remedy: remedy.into() }
    }
}

/// All findings of one `check`, in the order in which they were looked at.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The gravest grade; PASS when nothing was found.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Pass)
    }

    /// 3 when anything failed, else 0. (Files that cannot be read end with 2 before there is a report.)
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.grade() == Grade::Fail { 3 } else { 0 }
    }

    /// How many findings are of a grade.
    #[must_use]
    pub fn count(&self, grade: Grade) -> usize {
        self.findings.iter().filter(|finding| finding.grade == grade).count()
    }

    /// One JSON document: `{"grade": …, "findings": [ … ]}`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "grade": self.grade(), "findings": self.findings })
    }
}
