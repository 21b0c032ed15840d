//! Changes that need no review.

use super::super::{ChangePolicy, Severity, worst_severity};
use super::{everything, listing_json, reviewed, search, settings_with, with_change};
use serde_json::{Map, Value, json};

/// Reverses the members of every object.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let turned: Map<String, Value> =
                members.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect();
            Value::Object(turned)
        }
        Value::Array(parts) => parts.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

/// Pointer and value; without a value the member is removed.
type Edit = (&'static str, Option<Value>);

fn edits() -> Vec<Edit> {
    [texts(), schemas(), lists(), made()].concat()
}

fn texts() -> Vec<Edit> {
    let some = |value: Value| Some(value);
    vec![
        ("/tools/0/description", some(json!("Finds pages by their words.  Answers with at most fifty."))),
        ("/tools/0/description", some(json!("Finds pages by their words.\nAnswers with at most fifty.\n"))),
        (
            "/tools/0/description",
            some(json!("  Finds pages by their words.\r\n\r\nAnswers with\tat most fifty.")),
        ),
        ("/tools/0/title", some(json!("Search "))),
        ("/tools/1/description", some(json!("Saves\n    a page."))),
        ("/tools/0/inputSchema/properties/query/description", some(json!("Words\nto look for."))),
        ("/prompts/0/description", some(json!("Sums up  a page."))),
        ("/prompts/0/arguments/0/description", some(json!("Page to read.\n"))),
        ("/resources/0/description", some(json!("The first page.\n"))),
        ("/resources/0/name", some(json!(" First"))),
        ("/resourceTemplates/0/description", some(json!("One  page."))),
        ("/instructions", some(json!("Search first,\nthen save.\n"))),
        ("/tools/1/title", some(json!(""))),
        ("/tools/0/inputSchema/properties/limit/description", some(json!(""))),
        ("/tools/0/inputSchema/properties/sort/enum", some(json!(["old", "new"]))),
        ("/tools/0/inputSchema/properties/sort/enum", some(json!(["old", "new", "all"]))),
        ("/tools/0/inputSchema/properties/sort/enum", some(json!(["new"]))),
        ("/tools/0/inputSchema/properties/query/enum", some(json!(["old", "new"]))),
        ("/tools/0/inputSchema/properties/filter/properties/by/type", some(json!(["null", "string"]))),
        ("/tools/0/inputSchema/properties/filter/properties/by/type", some(json!("string"))),
        ("/tools/0/inputSchema/properties/query/type", some(json!(["string", "null"]))),
        ("/tools/0/inputSchema/properties/limit/type", some(json!("number"))),
        ("/tools/0/inputSchema/properties/limit/maximum", some(json!(50.0))),
        ("/tools/0/inputSchema/properties/limit/default", some(json!(10.0))),
        ("/tools/0/inputSchema/properties/limit/minimum", None),
        ("/tools/0/inputSchema/properties/query/maxLength", None),
        ("/tools/0/inputSchema/required", None),
        ("/tools/0/inputSchema/required", some(json!([]))),
        ("/tools/0/inputSchema/properties/filter/required", None),
        ("/tools/0/inputSchema/properties/limit", None),
        ("/tools/0/inputSchema/properties/sort", None),
        ("/tools/0/inputSchema/properties/filter", None),
    ]
}

fn schemas() -> Vec<Edit> {
    let some = |value: Value| Some(value);
    vec![
        ("/tools/0/inputSchema/additionalProperties", some(json!(false))),
        ("/tools/0/inputSchema/additionalProperties", some(json!(true))),
        ("/tools/0/inputSchema/properties/filter/additionalProperties", some(json!(false))),
        ("/tools/0/inputSchema/properties/filter/additionalProperties", some(json!({"type": "string"}))),
        ("/tools/0/inputSchema/$schema", some(json!("https://json-schema.org/draft/2020-12/schema"))),
        ("/tools/0/inputSchema/$schema", some(json!("http://json-schema.org/draft-07/schema#"))),
        ("/tools/0/outputSchema/$schema", some(json!("http://json-schema.org/draft-07/schema#"))),
        (
            "/tools/0/inputSchema/$defs",
            some(json!({"filter": {"type": "object", "properties": {"id": {"type": "string"}}}})),
        ),
        ("/tools/0/inputSchema/properties/query/format", some(json!("uri"))),
        ("/tools/0/outputSchema", None),
        ("/tools/0/outputSchema/required", None),
        ("/tools/0/outputSchema/properties/count", some(json!({"type": "integer"}))),
        ("/tools/0/outputSchema/properties/cursor", some(json!({"type": ["boolean", "null"]}))),
        ("/tools/0/outputSchema/properties/pages/items/maxLength", some(json!(99))),
        ("/tools/0/outputSchema/additionalProperties", some(json!(false))),
        ("/tools/1/outputSchema", some(json!({"type": "object", "properties": {"id": {"type": "string"}}}))),
        ("/tools/1/inputSchema/properties", some(json!({"draft": {"type": "boolean"}}))),
        ("/tools/0/annotations", None),
        ("/tools/0/annotations/readOnlyHint", some(json!(false))),
        ("/tools/0/annotations/readOnlyHint", None),
        ("/tools/0/annotations/destructiveHint", some(json!(true))),
        ("/tools/0/annotations/destructiveHint", None),
        ("/tools/0/annotations/idempotentHint", some(json!(false))),
        ("/tools/0/annotations/openWorldHint", some(json!(true))),
        ("/tools/0/annotations/openWorldHint", None),
        ("/tools/1/annotations", some(json!({"readOnlyHint": false}))),
        ("/tools/1/annotations", some(json!({}))),
    ]
}

fn lists() -> Vec<Edit> {
    let some = |value: Value| Some(value);
    vec![
        ("/tools/0/_meta", some(json!({"build": 7, "say": "anything that programs like"}))),
        ("/prompts/0/_meta", some(json!({"build": 7}))),
        ("/resources/0/_meta", some(json!({"build": 7}))),
        ("/tools/0/execution", some(json!({"taskSupport": "optional"}))),
        ("/tools/0", None),
        ("/tools/1", None),
        ("/tools", None),
        ("/prompts", None),
        ("/resources", None),
        ("/resourceTemplates", None),
        ("/instructions", None),
        (
            "/tools/-",
            some(
                json!({"name": "share", "description": "Shares a page.", "inputSchema": {"type": "object"}}),
            ),
        ),
        ("/tools/-", some(json!({"name": "search2", "title": "Find", "inputSchema": {"type": "object"}}))),
        ("/prompts/-", some(json!({"name": "translate", "description": "Translates a page."}))),
        ("/resources/-", some(json!({"uri": "pages://2", "name": "Second"}))),
        ("/resources/-", some(json!({"uri": "file:///a.txt", "name": "a.txt"}))),
        ("/resourceTemplates/-", some(json!({"uriTemplate": "pages://{id}/{part}", "name": "Part"}))),
        ("/resources/0/size", some(json!(11))),
        ("/resources/0/size", None),
        ("/resources/0/mimeType", some(json!("text/markdown"))),
        ("/resources/0/annotations/lastModified", some(json!("2026-02-02T00:00:00Z"))),
        ("/resources/0/annotations/priority", some(json!(1))),
        ("/resources/0/annotations", None),
        ("/prompts/0/arguments/0/required", None),
        ("/prompts/0/arguments/0/required", some(json!(false))),
        ("/prompts/0/arguments/1", None),
        ("/prompts/0/arguments/-", some(json!({"name": "length"}))),
        ("/prompts/0/arguments/-", some(json!({"name": "tone", "required": false}))),
    ]
}

/// Bounds, and parameters without text.
fn made() -> Vec<Edit> {
    let mut all: Vec<Edit> = Vec::new();
    for (bound, value) in [
        ("minLength", json!(1)),
        ("maxLength", json!(100)),
        ("minItems", json!(1)),
        ("maxItems", json!(9)),
        ("uniqueItems", json!(true)),
        ("exclusiveMaximum", json!(10)),
        ("multipleOf", json!(0.5)),
        ("deprecated", json!(true)),
    ] {
        let pointer = format!("/tools/0/inputSchema/properties/query/{bound}");
        all.push((&*Box::leak(pointer.into_boxed_str()), Some(value)));
    }
    for (at, schema) in [
        json!({"type": "string"}),
        json!({"type": "integer", "minimum": 0, "default": 0}),
        json!({"type": "boolean", "default": false}),
        json!({"type": "number", "maximum": 1.5}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}),
        json!({"type": ["string", "null"], "default": null}),
        json!({"type": "string", "enum": ["new", "old"], "default": "new"}),
        json!({"type": "string", "format": "date-time"}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        json!({"type": "array", "items": {"type": "object", "properties": {"by": {"type": "string"}}}}),
        json!({}),
    ]
    .into_iter()
    .enumerate()
    {
        let place = if at % 3 == 0 { "properties/filter/properties" } else { "properties" };
        let pointer = format!("/tools/0/inputSchema/{place}/{}", ["page", "count", "tag"][at % 3]);
        all.push((&*Box::leak(pointer.into_boxed_str()), Some(schema)));
    }
    all
}

#[test]
fn a_hundred_harmless_changes_pass() {
    let before = everything();
    let mut rows: Vec<(String, Value)> = edits()
        .into_iter()
        .map(|(pointer, value)| (format!("{pointer} {value:?}"), with_change(&before, pointer, value)))
        .collect();
    rows.push(("keys".into(), reversed(&before)));
    rows.push((
        "order".into(),
        with_change(&with_change(&before, "/tools/0", None), "/tools/-", Some(search())),
    ));
    assert!(rows.len() >= 100, "{}", rows.len());
    for (label, after) in rows {
        for changes in [ChangePolicy::Hold, ChangePolicy::Warn, ChangePolicy::Follow] {
            let verdict = reviewed(&before, &after, settings_with(changes));
            assert!(verdict.held.is_empty(), "{label}: {:?}", verdict.held);
            let reported: Vec<_> = verdict.reported.values().map(|found| worst_severity(found)).collect();
            assert!(reported.iter().all(|severity| *severity == Severity::Harmless), "{label}");
            let mut expected = after.clone();
            if let Value::Object(members) = &mut expected {
                members.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
            }
            assert_eq!(listing_json(&verdict.lists), expected, "{label}");
        }
    }
}
