//! What the server says when it refuses.

use fallible_iterator::FallibleIterator;
use octo_model::{Kind, ToolError};
use postgres_protocol::message::backend::ErrorFields;
use std::time::Duration;

/// How soon a call that found no server may come again.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// An error or a notice of the server, field by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    pub severity: String,
    /// SQLSTATE, five characters.
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// The character of the statement, from 1.
    pub position: Option<usize>,
    /// Which functions were being run.
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

    /// Whether the server, not the statement, is the reason.
    pub fn is_outage(&self) -> bool {
        self.code.starts_with("53") || matches!(self.code.as_str(), "57P01" | "57P02" | "57P03" | "57P05")
    }
}

/// Of a session that could not be opened. What the server says here names users and databases, so only the log hears it.
pub(super) fn login_error(name: &str, fault: &ServerError) -> ToolError {
    let said = format!("{} {}", fault.code, fault.message);
    // Class 08 is what poolers in front of a server say.
    if fault.is_outage() || fault.code.starts_with("08") {
        return ToolError::unavailable(format!(
            "The database `{name}` takes no connections now (SQLSTATE {}).",
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

/// Of a server that cannot be reached, or of a connection that broke.
pub(super) fn connection_error(name: &str, error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable(format!("The connection to the database `{name}` failed or broke."))
        .hint("Try again in a moment; if it stays, ask the operator whether the database runs.")
        .retry_after(RETRY_DELAY)
        .detail(error)
}
