//! What has changed between two definitions, and how much each change can mislead.

use super::canonical;
use super::schema::{schema, silent};
use super::{Difference, Severity};
use crate::ports::ItemKind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The hints of a tool and what is assumed without them, which is also the careful answer.
const HINTS: [(&str, bool); 4] =
    [("readOnlyHint", false), ("destructiveHint", true), ("idempotentHint", false), ("openWorldHint", true)];
/// Members that tell about the thing itself and change with it.
const FACTS: [&str; 4] = ["size", "mimeType", "execution", "_meta"];

pub fn compare(what: ItemKind, old: &Value, new: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for key in keys(old, new) {
                member(what, key, old.get(key), new.get(key), &mut out);
            }
        }
        _ => text(what.as_str(), Some(old), Some(new), &mut out),
    }
    out
}

fn member(what: ItemKind, key: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    if same(old, new) {
        return;
    }
    match (key, what) {
        ("title" | "description", _) => text(key, old, new, out),
        ("name", ItemKind::Resource | ItemKind::Template) => text(key, old, new, out),
        ("inputSchema" | "outputSchema", ItemKind::Tool) => whole_schema(key, old, new, out),
        ("annotations", ItemKind::Tool) => hints(old, new, out),
        ("annotations", _) => note(out, Severity::Harmless, key, "facts about it changed", old, new),
        ("arguments", ItemKind::Prompt) => arguments(old, new, out),
        (key, _) if FACTS.contains(&key) => {
            note(out, Severity::Harmless, key, "facts about it changed", old, new);
        }
        _ => note(out, Severity::Notable, key, "changed", old, new),
    }
}

fn whole_schema(key: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    match (old, new) {
        (Some(old), Some(new)) => schema(key, old, new, out),
        (None, Some(added)) if key == "outputSchema" && silent(added) => {
            note(out, Severity::Harmless, key, "says what it answers", None, new);
        }
        (Some(_), None) if key == "outputSchema" => {
            note(out, Severity::Harmless, key, "no longer says what it answers", old, None);
        }
        _ => note(out, Severity::Serious, key, "came or went", old, new),
    }
}

fn hints(old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    let none = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&none);
    let new = new.and_then(Value::as_object).unwrap_or(&none);
    for key in keys(old, new) {
        let (before, after) = (old.get(key), new.get(key));
        if same(before, after) {
            continue;
        }
        let at = format!("annotations.{key}");
        let Some((_, careful)) = HINTS.iter().find(|(name, _)| *name == key) else {
            if key == "title" {
                text(&at, before, after, out);
            } else {
                note(out, Severity::Notable, &at, "changed", before, after);
            }
            continue;
        };
        let value = |hint: Option<&Value>| hint.and_then(Value::as_bool).unwrap_or(*careful);
        if value(before) == value(after) {
            continue;
        }
        if value(after) == *careful {
            note(out, Severity::Harmless, &at, "is more careful", before, after);
        } else {
            note(out, Severity::Serious, &at, "claims to be less dangerous", before, after);
        }
    }
}

/// A prompt's arguments, by name.
fn arguments(old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    let by_name = |list: Option<&Value>| -> BTreeMap<String, Map<String, Value>> {
        let entries = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        entries.filter_map(|entry| Some((entry.get("name")?.as_str()?.to_owned(), entry.clone()))).collect()
    };
    let (old, new) = (by_name(old), by_name(new));
    let required = |entry: &Map<String, Value>| entry.get("required") == Some(&Value::Bool(true));
    for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let at = format!("arguments.{name}");
        match (old.get(name), new.get(name)) {
            (Some(before), Some(after)) => {
                text(&format!("{at}.description"), before.get("description"), after.get("description"), out);
                text(&format!("{at}.title"), before.get("title"), after.get("title"), out);
                match (required(before), required(after)) {
                    (false, true) => note(out, Severity::Serious, &at, "must be given now", None, None),
                    (true, false) => note(out, Severity::Harmless, &at, "may be left out now", None, None),
                    _ => {}
                }
            }
            (None, Some(after)) if required(after) => {
                note(out, Severity::Serious, &at, "a new argument that must be given", None, None);
            }
            (None, Some(after)) => {
                let mut rest = after.clone();
                rest.remove("name");
                let quiet = is_word(name) && silent(&Value::Object(rest));
                let (severity, what) = if quiet {
                    (Severity::Harmless, "a new optional argument without text")
                } else {
                    (Severity::Serious, "a new argument with text of its own")
                };
                note(out, severity, &at, what, None, Some(&Value::Object(after.clone())));
            }
            (Some(before), None) => {
                let severity = if required(before) { Severity::Notable } else { Severity::Harmless };
                note(out, severity, &at, "is gone", None, None);
            }
            (None, None) => {}
        }
    }
}

/// Texts may differ in spaces; in anything else they say something else.
pub fn text(at: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    if same(old, new) {
        return;
    }
    let words = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Some(_) => None,
    };
    match (words(old), words(new)) {
        (Some(before), Some(after)) if before == after => {
            note(out, Severity::Harmless, at, "only spaces changed", old, new);
        }
        _ => note(out, Severity::Notable, at, "says something else", old, new),
    }
}

pub fn note(
    out: &mut Vec<Difference>,
    severity: Severity,
    at: &str,
    what: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let (before, after) = (before.map(shown), after.map(shown));
    out.push(Difference { severity, at: at.to_owned(), what: what.to_owned(), before, after, firm: false });
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => canonical::text(other),
    }
}

/// Whether two values are spellings of the same.
pub fn same(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old == new || canonical::text(old) == canonical::text(new),
        (None, None) => true,
        _ => false,
    }
}

pub fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    old.keys().chain(new.keys()).map(String::as_str).collect()
}

/// A name or value that can hardly say anything: letters, digits, `_` and `-`, not many.
pub fn is_word(text: &str) -> bool {
    text.len() <= 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
