//! Differences between two definitions, with their severity.

use super::added_texts::add_new_texts;
use super::canonical;
use super::definition_diff::{add_difference, all_keys, compare_text, is_equivalent, is_plain_word};
use super::schema_drift::{compare_schemas, has_no_text};
use super::{Difference, Severity};
use octo_model::ItemKind;
use octo_ports::PinKind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Annotations of a tool with their defaults, which are also the safe values.
const ANNOTATION_HINTS: [(&str, bool); 4] =
    [("readOnlyHint", false), ("destructiveHint", true), ("idempotentHint", false), ("openWorldHint", true)];
/// Members with facts about the item, which change with it.
const FACT_MEMBERS: [&str; 4] = ["size", "mimeType", "execution", "_meta"];

pub fn compare(what: PinKind, old_definition: &Value, new_definition: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    match (old_definition, new_definition) {
        (Value::Object(old), Value::Object(new)) => {
            for key in all_keys(old, new) {
                compare_member(what, key, old.get(key), new.get(key), &mut out);
            }
            if matches!(what, PinKind::Item(_)) {
                add_new_texts(what, old_definition, new_definition, &mut out);
            }
        }
        (old, new) => compare_text(what.as_str(), Some(old), Some(new), &mut out),
    }
    out
}

fn compare_member(
    what: PinKind,
    key: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Vec<Difference>,
) {
    if is_equivalent(old, new) {
        return;
    }
    match (key, what) {
        (_, PinKind::Package | PinKind::App) => {
            add_difference(out, Severity::Serious, key, "changed", old, new)
        }
        ("title" | "description", _) => compare_text(key, old, new, out),
        ("name", PinKind::Item(ItemKind::Resource | ItemKind::Template)) => compare_text(key, old, new, out),
        ("inputSchema" | "outputSchema", PinKind::Item(ItemKind::Tool)) => {
            compare_schema_member(key, old, new, out)
        }
        ("resources", PinKind::Item(ItemKind::Skill)) => {
            add_difference(out, Severity::Serious, key, "files changed", old, new);
        }
        ("annotations", PinKind::Item(ItemKind::Tool)) => compare_hints(old, new, out),
        ("annotations", _) => add_difference(out, Severity::Harmless, key, "metadata changed", old, new),
        ("arguments", PinKind::Item(ItemKind::Prompt)) => compare_arguments(old, new, out),
        ("_meta", _) if app_meta(old) != app_meta(new) => {
            add_difference(out, Severity::Serious, "_meta.ui", "app changed", old, new);
        }
        (key, _) if FACT_MEMBERS.contains(&key) => {
            add_difference(out, Severity::Harmless, key, "metadata changed", old, new);
        }
        _ => add_difference(out, Severity::Notable, key, "changed", old, new),
    }
}

/// What `_meta` says about an app.
fn app_meta(meta: Option<&Value>) -> Value {
    meta.map(canonical::app_meta).unwrap_or_default()
}

fn compare_schema_member(key: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    match (old, new) {
        (Some(old), Some(new)) => compare_schemas(key, old, new, out),
        (None, Some(added)) if key == "outputSchema" && has_no_text(added) => {
            add_difference(out, Severity::Harmless, key, "output schema added", None, new);
        }
        (Some(_), None) if key == "outputSchema" => {
            add_difference(out, Severity::Harmless, key, "output schema removed", old, None);
        }
        _ => add_difference(out, Severity::Serious, key, "added or removed", old, new),
    }
}

fn compare_hints(old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    let none = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&none);
    let new = new.and_then(Value::as_object).unwrap_or(&none);
    for key in all_keys(old, new) {
        let (before, after) = (old.get(key), new.get(key));
        if is_equivalent(before, after) {
            continue;
        }
        let at = format!("annotations.{key}");
        let Some((_, careful)) = ANNOTATION_HINTS.iter().find(|(name, _)| *name == key) else {
            if key == "title" {
                compare_text(&at, before, after, out);
            } else {
                add_difference(out, Severity::Notable, &at, "changed", before, after);
            }
            continue;
        };
        let value = |hint: Option<&Value>| hint.and_then(Value::as_bool).unwrap_or(*careful);
        if value(before) == value(after) {
            continue;
        }
        if value(after) == *careful {
            add_difference(out, Severity::Harmless, &at, "is safer", before, after);
        } else {
            add_difference(out, Severity::Serious, &at, "claims to be less dangerous", before, after);
        }
    }
}

/// Compares a prompt's arguments by name.
fn compare_arguments(old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
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
                compare_text(
                    &format!("{at}.description"),
                    before.get("description"),
                    after.get("description"),
                    out,
                );
                compare_text(&format!("{at}.title"), before.get("title"), after.get("title"), out);
                match (required(before), required(after)) {
                    (false, true) => {
                        add_difference(out, Severity::Serious, &at, "is required now", None, None)
                    }
                    (true, false) => {
                        add_difference(out, Severity::Harmless, &at, "is optional now", None, None)
                    }
                    _ => {}
                }
            }
            (None, Some(after)) if required(after) => {
                add_difference(out, Severity::Serious, &at, "new required argument", None, None);
            }
            (None, Some(after)) => {
                let mut rest = after.clone();
                rest.remove("name");
                let quiet = is_plain_word(name) && has_no_text(&Value::Object(rest));
                let (severity, what) = if quiet {
                    (Severity::Harmless, "new optional argument without text")
                } else {
                    (Severity::Serious, "new argument with text")
                };
                add_difference(out, severity, &at, what, None, Some(&Value::Object(after.clone())));
            }
            (Some(before), None) => {
                let severity = if required(before) { Severity::Notable } else { Severity::Harmless };
                add_difference(out, severity, &at, "removed", None, None);
            }
            (None, None) => {}
        }
    }
}
