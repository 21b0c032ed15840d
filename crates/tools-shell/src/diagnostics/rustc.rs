//! rustc and cargo: `error[E0308]: mismatched types`, then ` --> src/main.rs:3:18`.

use super::{Diagnostic, Severity, gcc_style};

/// Summaries of the others.
const SUMMARY_LINES: &[&str] =
    &["could not compile", "aborting due to", "warning emitted", "warnings emitted", "generated "];

pub fn read(line: &str, behind: &[&str]) -> Option<(Severity, Diagnostic)> {
    let (weight, rest) = match line.strip_prefix("error") {
        Some(rest) => (Severity::Error, rest),
        None => (Severity::Warning, line.strip_prefix("warning")?),
    };
    let (code, message) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("]: ").map(|(code, message)| (Some(code), message))?,
        None => (None, rest.strip_prefix(": ")?),
    };
    if SUMMARY_LINES.iter().any(|sum| message.contains(sum)) {
        return None;
    }
    let place = behind.iter().take(3).find_map(|line| line.trim_start().strip_prefix("--> "));
    let mut found = place.and_then(gcc_style::parse_location).unwrap_or_default();
    found.message = match code {
        Some(code) => format!("{message} [{code}]"),
        None => message.to_owned(),
    };
    Some((weight, found))
}
