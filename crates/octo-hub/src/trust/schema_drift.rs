//! Comparison of two schemas.

use super::definition_diff::{add_difference, all_keys, compare_text, is_equivalent, is_plain_word};
use super::{Difference, Severity, canonical};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keywords that bound values or name the dialect, without text for a model.
const BOUND_KEYWORDS: [&str; 19] = [
    "$schema",
    "$id",
    "$anchor",
    "deprecated",
    "readOnly",
    "writeOnly",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "minContains",
];
/// Keywords whose strings belong to the schema language.
const GRAMMAR_KEYWORDS: [&str; 5] = ["type", "format", "$schema", "$id", "$ref"];

pub fn compare_schemas(at: &str, old: &Value, new: &Value, out: &mut Vec<Difference>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for key in all_keys(old, new) {
                if !is_equivalent(old.get(key), new.get(key)) {
                    compare_keyword(at, key, old, new, out);
                }
            }
        }
        _ if is_equivalent(Some(old), Some(new)) => {}
        _ => add_difference(out, Severity::Serious, at, "schema replaced", Some(old), Some(new)),
    }
}

fn compare_keyword(
    at: &str,
    key: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    out: &mut Vec<Difference>,
) {
    let (before, after) = (old.get(key), new.get(key));
    let path = format!("{at}.{key}");
    match key {
        "properties" => {
            compare_named(&path, before, after, [&required_names(old), &required_names(new)], out)
        }
        "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
            let none = BTreeSet::new();
            compare_named(&path, before, after, [&none, &none], out);
        }
        "required" => compare_required(at, old, new, out),
        "title" | "description" | "$comment" => compare_text(&path, before, after, out),
        "type" => compare_types(&path, before, after, out),
        "enum" => compare_enum(&path, before, after, out),
        "items" | "additionalProperties" | "unevaluatedProperties" | "contains" | "propertyNames" => {
            compare_inner(&path, before, after, out);
        }
        "not" | "if" | "then" | "else" => match (before, after) {
            (Some(old), Some(new)) => compare_schemas(&path, old, new, out),
            _ => add_difference(out, Severity::Serious, &path, "added or removed", before, after),
        },
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => compare_alternatives(&path, before, after, out),
        "format" => add_unless_plain(Severity::Serious, &path, "format changed", before, after, out),
        key if BOUND_KEYWORDS.contains(&key) => {
            add_unless_plain(Severity::Notable, &path, "bound changed", before, after, out);
        }
        "examples" | "example" => {
            add_difference(out, Severity::Notable, &path, "examples changed", before, after)
        }
        "default" | "const" => add_difference(out, Severity::Serious, &path, "value changed", before, after),
        "$ref" | "$dynamicRef" | "pattern" | "x-mcp-header" => {
            add_difference(out, Severity::Serious, &path, "changed", before, after);
        }
        _ => add_difference(out, Severity::Notable, &path, "changed", before, after),
    }
}

fn add_unless_plain(
    otherwise: Severity,
    at: &str,
    what: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Vec<Difference>,
) {
    let address = |text: &str| {
        text.starts_with("http://json-schema.org/") || text.starts_with("https://json-schema.org/")
    };
    let quiet = match new {
        Some(Value::String(text)) => is_plain_word(text) || address(text),
        Some(Value::Object(_) | Value::Array(_)) => false,
        _ => true,
    };
    add_difference(out, if quiet { Severity::Harmless } else { otherwise }, at, what, old, new);
}

fn required_names(schema: &Map<String, Value>) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn compare_named(
    at: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    [were, are]: [&BTreeSet<String>; 2],
    out: &mut Vec<Difference>,
) {
    let none = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&none);
    let new = new.and_then(Value::as_object).unwrap_or(&none);
    for name in all_keys(old, new) {
        let path = format!("{at}.{name}");
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => compare_schemas(&path, old, new, out),
            (None, Some(added)) if are.contains(name) => {
                add_difference(out, Severity::Serious, &path, "new and required", None, Some(added));
            }
            (None, Some(added)) if is_plain_word(name) && has_no_text(added) => {
                add_difference(
                    out,
                    Severity::Harmless,
                    &path,
                    "new, optional and without text",
                    None,
                    Some(added),
                );
            }
            (None, Some(added)) => {
                add_difference(out, Severity::Serious, &path, "new, with text", None, Some(added));
            }
            (Some(gone), None) => {
                let severity = if were.contains(name) { Severity::Notable } else { Severity::Harmless };
                add_difference(out, severity, &path, "removed", Some(gone), None);
            }
            (None, None) => {}
        }
    }
}

/// A parameter that becomes optional is harmless; one that becomes required is not.
fn compare_required(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, out: &mut Vec<Difference>) {
    let (were, are) = (required_names(old), required_names(new));
    let known = old.get("properties").and_then(Value::as_object);
    for name in are.difference(&were) {
        // A new parameter is reported where it is described.
        if known.is_some_and(|known| known.contains_key(name)) {
            add_difference(
                out,
                Severity::Serious,
                &format!("{at}.required.{name}"),
                "is required now",
                None,
                None,
            );
        } else if new.get("properties").is_none_or(|all| all.get(name).is_none()) {
            add_difference(
                out,
                Severity::Serious,
                &format!("{at}.required.{name}"),
                "is required but not described",
                None,
                None,
            );
        }
    }
    for name in were.difference(&are) {
        add_difference(
            out,
            Severity::Harmless,
            &format!("{at}.required.{name}"),
            "is optional now",
            None,
            None,
        );
    }
}

fn type_names(value: Option<&Value>) -> BTreeSet<&str> {
    match value {
        Some(Value::String(word)) => BTreeSet::from([word.as_str()]),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

fn compare_types(at: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    let (were, are) = (type_names(old), type_names(new));
    let numbers = |word: &&str| matches!(*word, "integer" | "number");
    let fits = |word: &&str| {
        **word == *"null" || were.contains(*word) || (numbers(word) && were.iter().any(numbers))
    };
    let harmless = (old.is_none() || are.iter().all(fits)) && !are.is_empty();
    let severity = if harmless { Severity::Harmless } else { Severity::Serious };
    add_difference(out, severity, at, "type changed", old, new);
}

fn compare_enum(at: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (were, are) = (list(old), list(new));
    let added = are.iter().filter(|value| !were.contains(value));
    let quiet = added.into_iter().all(|value| value.as_str().is_none_or(is_plain_word) && has_no_text(value));
    let severity = match new {
        None => Severity::Notable,
        Some(_) if quiet => Severity::Harmless,
        Some(_) => Severity::Serious,
    };
    add_difference(out, severity, at, "allowed values changed", old, new);
}

/// A nested schema; a plain boolean describes nothing.
fn compare_inner(at: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    match (old, new) {
        (Some(before @ Value::Object(_)), Some(after @ Value::Object(_))) => {
            compare_schemas(at, before, after, out)
        }
        (_, Some(added)) if !has_no_text(added) => {
            add_difference(out, Severity::Serious, at, "has text", old, new);
        }
        _ => add_difference(out, Severity::Harmless, at, "nested bounds changed", old, new),
    }
}

fn compare_alternatives(at: &str, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Difference>) {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (were, are) = (list(old), list(new));
    if were.len() == are.len() {
        for (place, (old, new)) in were.iter().zip(&are).enumerate() {
            compare_schemas(&format!("{at}.{place}"), old, new, out);
        }
        return;
    }
    let known: BTreeSet<String> = were.iter().map(canonical::canonical_text).collect();
    let quiet = are.iter().filter(|one| !known.contains(&canonical::canonical_text(one))).all(has_no_text);
    let severity = if quiet && !are.is_empty() { Severity::Harmless } else { Severity::Serious };
    add_difference(out, severity, at, "alternatives changed", old, new);
}

/// Returns whether a schema has only structure: no sentence, no address, nothing that a model would follow.
pub fn has_no_text(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(key, value)| match key.as_str() {
            "title" | "description" | "$comment" => value.as_str().is_some_and(str::is_empty),
            "x-mcp-header" => false,
            key if GRAMMAR_KEYWORDS.contains(&key) => {
                value.as_str().is_none_or(|word| word.len() <= 80 && !word.contains(char::is_whitespace))
            }
            key => key.len() <= 64 && !key.contains(char::is_whitespace) && has_no_text(value),
        }),
        Value::Array(parts) => parts.iter().all(has_no_text),
        Value::String(text) => is_plain_word(text),
        _ => true,
    }
}
