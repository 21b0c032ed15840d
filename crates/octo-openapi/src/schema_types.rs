//! Short descriptions of schemas.

use crate::Document;
use crate::value_ext::ValueExt;
use serde_json::Value;

/// Maximum depth of references, combinations and arrays.
const MAX_DEPTH: usize = 4;

/// The schema without its outermost references; empty if they do not resolve.
pub(crate) fn resolve_outer(document: &Document, schema: &Value) -> Value {
    document.resolve(schema).unwrap_or_default()
}

/// Types that a schema declares itself, without `null`.
pub(crate) fn types(schema: &Value) -> Vec<String> {
    let named: Vec<String> = match schema.member("type") {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        _ => Vec::new(),
    };
    let named: Vec<String> = named.into_iter().filter(|kind| kind != "null").collect();
    match named.is_empty() {
        false => named,
        true if schema.member("properties").is_object() => vec!["object".to_owned()],
        true if schema.member("items").is_object() => vec!["array".to_owned()],
        true => Vec::new(),
    }
}

/// Alternatives of a schema, if any.
pub(crate) fn choices(schema: &Value) -> Option<&Vec<Value>> {
    schema.member("oneOf").as_array().or_else(|| schema.member("anyOf").as_array())
}

/// Readable type: `integer`, `one of asc, desc`, `list of string`.
pub(crate) fn type_name(document: &Document, schema: &Value) -> String {
    said_within(document, schema, MAX_DEPTH)
}

fn said_within(document: &Document, schema: &Value, deep: usize) -> String {
    let schema = resolve_outer(document, schema);
    if deep == 0 {
        return "value".to_owned();
    }
    if let Some(values) = schema.member("enum").as_array() {
        let shown: Vec<String> =
            values.iter().take(12).map(crate::document::request::param_style::to_text).collect();
        let more = if values.len() > 12 { ", …" } else { "" };
        return format!("one of {}{more}", shown.join(", "));
    }
    if let Some(choices) = choices(&schema) {
        let mut kinds: Vec<String> =
            choices.iter().take(4).map(|choice| said_within(document, choice, deep - 1)).collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    if let Some(first) = schema.member("allOf").as_array().and_then(|all| all.first()) {
        return said_within(document, first, deep - 1);
    }
    match types(&schema).join(" or ").as_str() {
        "array" => format!("list of {}", said_within(document, schema.member("items"), deep - 1)),
        "" => "value".to_owned(),
        kind => match schema.member("format").as_str() {
            Some(format) if kind == "string" => format!("string ({format})"),
            _ => kind.to_owned(),
        },
    }
}
