//! Why a command failed, and the exit code that says so.

use super::out;
use super::table::harmless;
use super::width::{columns, talks_to_a_person, wrapped};
use crate::settings::Problems;
use octo_model::{Kind, ToolError};
use octo_ports::StoreError;
use octo_store::SqliteError;
use serde_json::json;
use std::io;
use std::process::ExitCode;

/// What is told, and the exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }

    /// Something in what was asked for is wrong.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: code(Kind::Invalid), text: text.into() }
    }

    /// Everything has been said already.
    pub fn silent(code: u8) -> Self {
        Self { code, text: String::new() }
    }

    /// What is told.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Says it on standard error: in words, or as `{"error": {"message", "exit_code"}}` to whoever asked for JSON.
    pub fn tell(self, as_json: bool) -> ExitCode {
        if as_json && !self.text.is_empty() {
            let error = json!({"message": self.text, "exit_code": self.code});
            out::talk(&json!({"error": error}).to_string());
            return ExitCode::from(self.code);
        }
        for line in harmless(&self.text).lines() {
            out::talk(&told(line, talks_to_a_person().then(columns)));
        }
        ExitCode::from(self.code)
    }
}

/// A complaint: as one line for programs, in lines that fit for people.
fn told(line: &str, columns: Option<usize>) -> String {
    let whole = format!("octoprox: {line}");
    columns.map_or(whole.clone(), |columns| wrapped(&whole, columns.saturating_sub(2)).join("\n  "))
}

/// The exit code of each kind.
pub const fn code(kind: Kind) -> u8 {
    match kind {
        Kind::Invalid => 2,
        Kind::NotFound => 3,
        Kind::Denied => 4,
        Kind::Timeout => 5,
        Kind::Unavailable | Kind::RateLimited => 6,
        Kind::Cancelled => 130,
        Kind::Conflict | Kind::TooLarge | Kind::Unauthorized | Kind::Internal => 1,
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self { code: code(error.kind), text: error.text() }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::invalid(problems.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        ToolError::from(error).into()
    }
}

impl From<SqliteError> for Failure {
    fn from(error: SqliteError) -> Self {
        let code = if matches!(error, SqliteError::Missing { .. }) { code(Kind::NotFound) } else { 1 };
        Self { code, text: format!("{error}. {}", error.hint()) }
    }
}

/// A reader that went away (`octoprox tools | head`) has what it wanted.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(0);
        }
        Self::new(format!("{error}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_fit_a_terminal_and_stay_one_line_for_programs() {
        assert_eq!(told("One two three.", None), "octoprox: One two three.");
        assert_eq!(told("One two three.", Some(17)), "octoprox: One\n  two three.");
    }

    #[test]
    fn every_kind_has_its_code() {
        assert_eq!(Kind::ALL.map(code), [2, 3, 4, 1, 1, 5, 130, 6, 1, 1, 6]);
    }
}
