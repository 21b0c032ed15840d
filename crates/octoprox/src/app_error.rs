//! Errors of commands and their exit codes.

use crate::remedy_text::remedy_text;
use crate::settings::SettingsProblems;
use octo_model::{Kind, ToolError};
use octo_ports::StoreError;
use octo_postgres::PostgresError;
use octo_store::SqliteError;
use std::io;

/// Message and exit code.
#[derive(Debug)]
pub struct AppError {
    code: u8,
    text: String,
}

impl AppError {
    pub fn new(text: impl Into<String>) -> Self {
        Self { code: 1, text: text.into() }
    }

    /// Invalid input.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: exit_code(Kind::Invalid), text: text.into() }
    }

    /// An error that another process has reported.
    pub fn with_code(code: u8, text: String) -> Self {
        Self { code, text }
    }

    /// Exits without a message.
    pub fn silent(code: u8) -> Self {
        Self { code, text: String::new() }
    }

    pub fn code(&self) -> u8 {
        self.code
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Exit code of each error kind.
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

impl From<ToolError> for AppError {
    fn from(error: ToolError) -> Self {
        Self { code: exit_code(error.kind), text: error.with_remedy_text(remedy_text).text() }
    }
}

impl From<SettingsProblems> for AppError {
    fn from(problems: SettingsProblems) -> Self {
        Self::invalid(problems.to_string())
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        ToolError::from(error).into()
    }
}

impl From<SqliteError> for AppError {
    fn from(error: SqliteError) -> Self {
        let code = if matches!(error, SqliteError::Missing { .. }) { exit_code(Kind::NotFound) } else { 1 };
        Self { code, text: format!("{error}. {}", error.hint()) }
    }
}

impl From<PostgresError> for AppError {
    fn from(error: PostgresError) -> Self {
        let hint = match error {
            PostgresError::NotMigrated { .. } => "Run `octoprox migrate` once, then start the hub.",
            _ => error.hint(),
        };
        Self { code: exit_code(Kind::Unavailable), text: format!("{error}. {hint}") }
    }
}

/// A closed pipe (`octoprox tools | head`) is not an error.
impl From<io::Error> for AppError {
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
    fn every_kind_has_its_code() {
        assert_eq!(Kind::ALL.map(exit_code), [2, 3, 4, 1, 1, 5, 130, 6, 1, 1, 6]);
    }
}
