//! Problems in the settings: origin, path, message and hint.

use crate::telemetry::Redactor;
use std::fmt;
use std::path::PathBuf;

/// Origin of a value.
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

/// A single problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    pub origin: SettingOrigin,
    /// Path in the settings, such as `servers.notion.url`; empty for the whole file.
    pub path: String,
    pub message: String,
    pub hint: String,
}

impl SettingsProblem {
    /// Redacts secrets in the message, which may quote a value.
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

/// All problems, so that they can be fixed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblems(pub Vec<SettingsProblem>);

impl SettingsProblems {
    /// The problems without secrets, which a value in a message may contain.
    pub fn without(mut self, secrets: Vec<String>) -> Self {
        let redactor = Redactor::new(secrets);
        for problem in &mut self.0 {
            problem.message = redactor.redact_known(&problem.message);
            problem.hint = redactor.redact_known(&problem.hint);
        }
        self
    }
}

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
