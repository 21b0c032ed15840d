//! Maps errors of the server to tool errors.

use octo_grants::sql::ServerError;
use octo_toolkit::{Kind, ToolError};
use std::time::Duration;

/// `before` is the number of characters in front of the caller's own text.
pub fn to_tool_error(name: &str, said: &ServerError, before: usize) -> ToolError {
    let kind = kind(said);
    let mut message = said.message.clone();
    if let Some(detail) = &said.detail {
        message.push_str(&format!(" ({detail})"));
    }
    message.push_str(&format!(" [SQLSTATE {}", said.code));
    if let Some(at) = said.position.and_then(|at| at.checked_sub(before)).filter(|at| *at > 0) {
        message.push_str(&format!(", at character {at}"));
    }
    message.push(']');
    let mut error = ToolError::new(kind, message);
    let hints: Vec<&str> = said.hint.as_deref().into_iter().chain(advice(said, kind)).collect();
    if !hints.is_empty() {
        error = error.hint(hints.join(" "));
    }
    if kind == Kind::Unavailable {
        error = error.retry_after(Duration::from_secs(1));
    }
    match &said.context {
        Some(context) => error.detail(format!("{name}: {context}")),
        None => error.detail(name),
    }
}

fn kind(said: &ServerError) -> Kind {
    if said.is_outage() {
        return Kind::Unavailable;
    }
    match said.code.as_str() {
        "57014" => Kind::Timeout,
        "25006" | "42501" => Kind::Denied,
        "40001" | "40P01" | "55P03" | "55006" => Kind::Conflict,
        "42P01" | "3F000" | "3D000" => Kind::NotFound,
        "0A000" => Kind::Invalid,
        code if code.starts_with("23") => Kind::Conflict,
        code if code.starts_with("XX") || code.starts_with("58") => Kind::Internal,
        _ => Kind::Invalid,
    }
}

fn advice(said: &ServerError, kind: Kind) -> Option<&'static str> {
    Some(match (kind, said.code.as_str()) {
        (Kind::Unavailable, _) => "Try again in a moment.",
        (Kind::Timeout, _) => "Request less data, check the plan with db_explain, or set a longer timeout_s.",
        (_, "25006") => {
            "Use db_execute to change data; db_explain with analyze false plans a change without running it."
        }
        (_, "42501") => {
            "The role of this connection lacks the privilege; use another connection or ask the operator."
        }
        (_, "40001" | "40P01" | "55P03") => "Conflict with another transaction; try again.",
        (Kind::NotFound, _) => {
            "See db_schema for what exists; qualify names of other schemas with their schema."
        }
        (_, "42703") => "See db_schema for the columns.",
        (_, "25001") => "This statement cannot be rolled back; run it without dry_run.",
        (_, "42P02" | "08P01") => "Pass as many params as the statement has $1, $2 … .",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_state_and_positions_are_the_callers() {
        for (code, expected) in [
            ("57P01", Kind::Unavailable),
            ("53300", Kind::Unavailable),
            ("57014", Kind::Timeout),
            ("25006", Kind::Denied),
            ("42501", Kind::Denied),
            ("23505", Kind::Conflict),
            ("40001", Kind::Conflict),
            ("42P01", Kind::NotFound),
            ("42601", Kind::Invalid),
            ("22012", Kind::Invalid),
            ("XX000", Kind::Internal),
        ] {
            let said = ServerError {
                code: code.to_owned(),
                message: "no".to_owned(),
                position: Some(12),
                ..Default::default()
            };
            let error = to_tool_error("x", &said, 10);
            assert_eq!(error.kind, expected, "{code}");
            assert!(error.message.contains(&format!("[SQLSTATE {code}, at character 2]")), "{error}");
        }
    }
}
