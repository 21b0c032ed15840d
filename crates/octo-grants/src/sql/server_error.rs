//! Errors reported by the server.

use fallible_iterator::FallibleIterator;
use octo_model::{Kind, ToolError};
use postgres_protocol::message::backend::ErrorFields;
use std::time::Duration;

/// Retry delay after a failed connection.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// An error or notice of the server, field by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    pub severity: String,
    /// SQLSTATE, five characters.
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Position in the statement in characters, from 1.
    pub position: Option<usize>,
    /// Call stack of functions.
    pub context: Option<String>,
}

impl ServerError {
    pub fn parse(mut fields: ErrorFields<'_>) -> Self {
        let mut fault = Self::default();
        while let Ok(Some(field)) = fields.next() {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'V' => fault.severity = value,
                b'S' if fault.severity.is_empty() => fault.severity = value,
                b'C' => fault.code = value,
                b'M' => fault.message = value,
                b'D' => fault.detail = Some(value),
                b'H' => fault.hint = Some(value),
                b'P' => fault.position = value.parse().ok(),
                b'W' => fault.context = Some(value),
                _ => {}
            }
        }
        fault
    }

    /// Whether the server, not the statement, is the cause.
    pub fn is_outage(&self) -> bool {
        self.code.starts_with("53") || matches!(self.code.as_str(), "57P01" | "57P02" | "57P03" | "57P05")
    }
}

/// Error of a failed login. The server's message names users and databases, so it is only logged.
pub(super) fn login_error(name: &str, fault: &ServerError) -> ToolError {
    let said = format!("{} {}", fault.code, fault.message);
    // Class 08 is used by poolers in front of a server.
    if fault.is_outage() || fault.code.starts_with("08") {
        return ToolError::unavailable(format!(
            "The database `{name}` currently accepts no connections (SQLSTATE {}).",
            fault.code
        ))
        .hint("Try again in a moment.")
        .retry_after(RETRY_DELAY)
        .detail(said);
    }
    ToolError::new(
        Kind::Unavailable,
        format!("The database `{name}` refused the hub's login (SQLSTATE {}).", fault.code),
    )
    .hint("Ask the operator to check the connection string.")
    .detail(said)
}

/// Error of an unreachable server or a broken connection.
pub(super) fn connection_error(name: &str, error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable(format!("The connection to the database `{name}` failed."))
        .hint("Try again in a moment; if it persists, ask the operator whether the database is running.")
        .retry_after(RETRY_DELAY)
        .detail(error)
}
