//! Comparison of texts and keys of two definitions.

use super::{Difference, Severity, canonical};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Texts may differ in whitespace; any other difference is reported.
pub fn compare_text(at: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    if is_equivalent(old, new) {
        return;
    }
    let words = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Some(_) => None,
    };
    match (words(old), words(new)) {
        (Some(before), Some(after)) if before == after => {
            add_difference(out, Severity::Harmless, at, "only whitespace changed", old, new);
        }
        _ => add_difference(out, Severity::Notable, at, "text changed", old, new),
    }
}

pub fn add_difference(
    out: &mut Vec<Difference>,
    severity: Severity,
    at: &str,
    what: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let (before, after) = (before.map(display_value), after.map(display_value));
    out.push(Difference {
        severity,
        path: at.to_owned(),
        message: what.to_owned(),
        before,
        after,
        always_held: false,
    });
}

fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => canonical::canonical_text(other),
    }
}

/// Returns whether two values are spellings of the same value.
pub fn is_equivalent(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => {
            old == new || canonical::canonical_text(old) == canonical::canonical_text(new)
        }
        (None, None) => true,
        _ => false,
    }
}

pub fn all_keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    old.keys().chain(new.keys()).map(String::as_str).collect()
}

/// A name or value that can hardly carry a message: a few letters, digits, `_` and `-`.
pub fn is_plain_word(text: &str) -> bool {
    text.len() <= 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
