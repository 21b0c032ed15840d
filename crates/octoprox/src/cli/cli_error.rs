//! Why a command failed, and the exit code that says so.

use super::console;
use super::terminal_width::{columns, stderr_is_terminal, wrap_words};
use super::text_table::sanitize_text;
use crate::settings::SettingsProblems;
use octo_model::{Kind, ToolError};
use octo_ports::StoreError;
use octo_store::SqliteError;
use serde_json::json;
use std::io;
use std::process::ExitCode;

/// What is told, and the exit code.
#[derive(Debug)]
pub struct CliError {
    code: u8,
    text: String,
}

impl CliError {
    pub fn new(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }

    /// Something in what was asked for is wrong.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: exit_code(Kind::Invalid), text: text.into() }
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
    pub fn report(self, as_json: bool) -> ExitCode {
        if as_json && !self.text.is_empty() {
            let error = json!({"message": self.text, "exit_code": self.code});
            console::print_err(&json!({"error": error}).to_string());
            return ExitCode::from(self.code);
        }
        for line in sanitize_text(&self.text).lines() {
            console::print_err(&format_line(line, stderr_is_terminal().then(columns)));
        }
        ExitCode::from(self.code)
    }
}

/// A complaint: as one line for programs, in lines that fit for people.
fn format_line(line: &str, columns: Option<usize>) -> String {
    let whole = format!("octoprox: {line}");
    columns.map_or(whole.clone(), |columns| wrap_words(&whole, columns.saturating_sub(2)).join("\n  "))
}

/// The exit code of each kind.
pub const fn exit_code(kind: Kind) -> u8 {
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

impl From<ToolError> for CliError {
    fn from(error: ToolError) -> Self {
        Self { code: exit_code(error.kind), text: error.text() }
    }
}

impl From<SettingsProblems> for CliError {
    fn from(problems: SettingsProblems) -> Self {
        Self::invalid(problems.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        ToolError::from(error).into()
    }
}

impl From<SqliteError> for CliError {
    fn from(error: SqliteError) -> Self {
        let code = if matches!(error, SqliteError::Missing { .. }) { exit_code(Kind::NotFound) } else { 1 };
        Self { code, text: format!("{error}. {}", error.hint()) }
    }
}

/// A reader that went away (`octoprox tools | head`) has what it wanted.
impl From<io::Error> for CliError {
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
        assert_eq!(format_line("One two three.", None), "octoprox: One two three.");
        assert_eq!(format_line("One two three.", Some(17)), "octoprox: One\n  two three.");
    }

    #[test]
    fn every_kind_has_its_code() {
        assert_eq!(Kind::ALL.map(exit_code), [2, 3, 4, 1, 1, 5, 130, 6, 1, 1, 6]);
    }
}
