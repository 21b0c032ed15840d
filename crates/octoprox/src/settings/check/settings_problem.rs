//! What is wrong with the settings: where, what, and what to do.

use crate::telemetry::Redactor;
use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    File(PathBuf),
    Variable(String),
    Flag(&'static str),
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    pub origin: SettingOrigin,
    /// Where in the settings, such as `servers.notion.url`; empty when the whole is meant.
    pub path: String,
    pub message: String,
    pub hint: String,
}

impl SettingsProblem {
    /// What is wrong may quote a value, so it is looked through for secrets.
    pub fn new(
        origin: SettingOrigin,
        path: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let what = Redactor::default().redact(&what.into()).into_owned();
        Self { origin, path: path.into(), message: what, hint: remedy.into() }
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{} {}", self.message, self.hint)
    }
}

/// Everything that is wrong at once, so that nobody mends one thing at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblems(pub Vec<SettingsProblem>);

impl fmt::Display for SettingsProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsProblems {}

impl From<SettingsProblem> for SettingsProblems {
    fn from(problem: SettingsProblem) -> Self {
        Self(vec![problem])
    }
}
