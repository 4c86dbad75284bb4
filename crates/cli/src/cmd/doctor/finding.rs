//! What a check found, how bad it is, and how to fix it.

use crate::plain_text::quote_path;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How a finding affects the use of Jackfield.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckVerdict {
    Ok,
    /// It works, but not in every situation.
    Warning,
    /// Something does not work, or is not safe.
    Problem,
}

impl CheckVerdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            CheckVerdict::Ok => "ok",
            CheckVerdict::Warning => "warning",
            CheckVerdict::Problem => "problem",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DoctorFinding {
    /// The agent that it is about, if the check has a finding for each.
    pub(super) subject: Option<String>,
    pub(super) verdict: CheckVerdict,
    pub(super) found: String,
    /// How to fix it, for a warning or a problem.
    pub(super) fix: Option<String>,
    /// What `--fix` does about it.
    pub(super) repair: Option<ModeRepair>,
}

/// A new mode for a file or folder of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModeRepair {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
}

impl DoctorFinding {
    pub(super) fn ok(found: impl Into<String>) -> DoctorFinding {
        DoctorFinding {
            subject: None,
            verdict: CheckVerdict::Ok,
            found: found.into(),
            fix: None,
            repair: None,
        }
    }

    pub(super) fn warning(found: impl Into<String>, fix: impl Into<String>) -> DoctorFinding {
        let verdict = CheckVerdict::Warning;
        DoctorFinding { verdict, fix: Some(fix.into()), ..DoctorFinding::ok(found) }
    }

    pub(super) fn problem(found: impl Into<String>, fix: impl Into<String>) -> DoctorFinding {
        let verdict = CheckVerdict::Problem;
        DoctorFinding { verdict, fix: Some(fix.into()), ..DoctorFinding::ok(found) }
    }

    /// A problem that a new mode fixes.
    pub(super) fn wrong_mode(found: impl Into<String>, repair: ModeRepair) -> DoctorFinding {
        let fix = format!("chmod {:o} {}", repair.mode, quote_path(&repair.path));
        DoctorFinding { repair: Some(repair), ..DoctorFinding::problem(found, fix) }
    }

    pub(super) fn about(self, subject: impl Into<String>) -> DoctorFinding {
        DoctorFinding { subject: Some(subject.into()), ..self }
    }

    pub(super) fn to_json(&self, check: &str) -> Value {
        json!({
            "name": check, "subject": self.subject, "verdict": self.verdict.name(),
            "ok": self.verdict != CheckVerdict::Problem, "found": self.found, "fix": self.fix,
        })
    }
}
