//! The type of an argument in a signature.

use serde_json::{Map, Value};

/// Values of an enumeration that are shown if that is all of them, and else.
const MAX_ENUM_VALUES: usize = 5;
const MAX_FIRST_ENUM_VALUES: usize = 3;
/// Characters of the values of an enumeration.
const MAX_ENUM_CHARS: usize = 50;
/// References, alternatives and arrays within each other.
const MAX_DEPTH: usize = 6;
/// Alternatives that are read.
const MAX_ALTERNATIVES: usize = 8;
/// Types of alternatives that are shown.
const MAX_ALTERNATIVE_TYPES: usize = 3;

/// The type of an argument: `str`, `int[]`, `a|b`, `~` for an object with parts of its own, empty if it is unknown.
/// `root` is the schema that local references point into.
pub(super) fn argument_type(schema: &Value, root: &Value) -> String {
    schema_type(schema, root, MAX_DEPTH)
}

fn schema_type(schema: &Value, root: &Value, depth: usize) -> String {
    let (Some(schema), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return String::new();
    };
    if let Some(values) = enum_values(schema) {
        return values;
    }
    if let Some(target) = reference(schema, root) {
        return schema_type(target, root, depth);
    }
    let alternatives = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(alternatives) = alternatives.filter(|_| !schema.contains_key("type")) {
        let types = alternatives.iter().take(MAX_ALTERNATIVES).filter(|one| !is_null(one));
        return join_types(types.map(|one| schema_type(one, root, depth)));
    }
    match schema.get("type") {
        Some(Value::String(name)) => named_type(name, schema, root, depth),
        Some(Value::Array(names)) => {
            let names =
                names.iter().take(MAX_ALTERNATIVES).filter_map(Value::as_str).filter(|name| *name != "null");
            join_types(names.map(|name| named_type(name, schema, root, depth)))
        }
        _ if schema.contains_key("properties") => named_type("object", schema, root, depth),
        _ if schema.contains_key("items") => named_type("array", schema, root, depth),
        _ => String::new(),
    }
}

fn named_type(name: &str, schema: &Map<String, Value>, root: &Value, depth: usize) -> String {
    let simple = match name {
        "string" => "str",
        "integer" => "int",
        "number" => "num",
        "boolean" => "bool",
        "null" => "null",
        "object" if has_parts(schema) => "~",
        "object" => "obj",
        "array" => {
            let item = schema.get("items").map(|items| schema_type(items, root, depth)).unwrap_or_default();
            return match item.as_str() {
                "" => "any[]".to_owned(),
                _ if item.contains(['|', '/']) => format!("({item})[]"),
                _ => format!("{item}[]"),
            };
        }
        _ => "",
    };
    simple.to_owned()
}

fn has_parts(schema: &Map<String, Value>) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// The target of a local reference.
fn reference<'a>(schema: &Map<String, Value>, root: &'a Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// Alternatives; too many of them, or an unknown one, are any type.
fn join_types(types: impl Iterator<Item = String>) -> String {
    let mut distinct = Vec::new();
    for one in types {
        if one.is_empty() {
            return one;
        }
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    if distinct.len() > MAX_ALTERNATIVE_TYPES { String::new() } else { distinct.join("/") }
}

/// The values of an enumeration or a constant, if they can be shown.
fn enum_values(schema: &Map<String, Value>) -> Option<String> {
    let constant = schema.get("const").map(std::slice::from_ref);
    let values = constant.or_else(|| schema.get("enum")?.as_array().map(Vec::as_slice))?;
    let values = || values.iter().filter(|value| !value.is_null());
    let is_whole = values().nth(MAX_ENUM_VALUES).is_none();
    let max_values = if is_whole { MAX_ENUM_VALUES } else { MAX_FIRST_ENUM_VALUES };
    let mut shown = String::new();
    for (count, value) in values().enumerate() {
        let text = enum_value(value)?;
        let is_over = count == max_values || shown.chars().count() + text.chars().count() > MAX_ENUM_CHARS;
        if is_over && count == 0 {
            // The type says more than a part of a value.
            return None;
        }
        if count > 0 {
            shown.push('|');
        }
        if is_over {
            return Some(shown + super::ELLIPSIS);
        }
        shown.push_str(&text);
    }
    (!shown.is_empty()).then_some(shown)
}

/// A value as it is; in quotes if it could be misread.
fn enum_value(value: &Value) -> Option<String> {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '+' | ':' | '#');
    match value {
        Value::String(text) if text.len() > 4 * MAX_ENUM_CHARS => None,
        Value::String(text) if !text.is_empty() && text.chars().all(is_plain) => Some(text.clone()),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_become_short_types() {
        let root = json!({"$defs": {
            "Mode": {"enum": ["fast", "slow"]},
            "Point": {"type": "object", "properties": {"x": {"type": "number"}}},
            "Loop": {"$ref": "#/$defs/Loop"},
            "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        }});
        let rows = [
            (json!({"type": "string"}), "str"),
            (json!({"type": "integer"}), "int"),
            (json!({"type": "number"}), "num"),
            (json!({"type": "boolean"}), "bool"),
            (json!({"type": "object"}), "obj"),
            (json!({"type": "object", "properties": {}}), "obj"),
            (json!({"properties": {"a": {}}}), "~"),
            (json!({"type": "array", "items": {"type": "string"}}), "str[]"),
            (json!({"type": "array"}), "any[]"),
            (json!({"items": {"type": "array", "items": {"type": "number"}}}), "num[][]"),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}}), "(a|b)[]"),
            (json!({"type": "array", "items": {"$ref": "#/$defs/Point"}}), "~[]"),
            (json!({"type": ["string", "null"]}), "str"),
            (json!({"type": ["string", "number"]}), "str/num"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "int"),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
                "str/str[]",
            ),
            (json!({"anyOf": [{"type": "string"}, {}]}), ""),
            (json!({"allOf": [{"$ref": "#/$defs/Mode"}]}), "fast|slow"),
            (json!({"$ref": "#/$defs/Point"}), "~"),
            (json!({"$ref": "#/$defs/Loop"}), ""),
            (json!({"$ref": "#/$defs/Tree"}), "any[][][]"),
            (json!({"$ref": "#/$defs/missing"}), ""),
            (json!({"$ref": 5}), ""),
            (json!({"type": "string", "enum": ["a", "b", "c", "d", "e"]}), "a|b|c|d|e"),
            (json!({"type": "string", "enum": ["a", "b", "c", "d", "e", "f"]}), "a|b|c|…"),
            (json!({"enum": [1, 2.5, true, null, "two words", ""]}), r#"1|2.5|true|"two words"|"""#),
            (json!({"type": "string", "enum": ["x".repeat(70)]}), "str"),
            (json!({"type": "string", "enum": ["x", "y".repeat(70)]}), "x|…"),
            (json!({"type": "string", "enum": []}), "str"),
            (json!({"enum": [{}]}), ""),
            (json!({"const": "only"}), "only"),
            (json!({"type": "file"}), ""),
            (json!(true), ""),
        ];
        for (schema, expected) in rows {
            assert_eq!(argument_type(&schema, &root), expected, "{schema}");
        }
    }

    #[test]
    fn alternatives_within_each_other_have_a_limit() {
        let mut schema = json!({"$ref": "#/$defs/Many"});
        let many: Vec<Value> = (0..1_000).map(|_| schema.clone()).collect();
        let root = json!({"$defs": {"Many": {"anyOf": many}}});
        assert_eq!(argument_type(&schema, &root), "");
        for _ in 0..1_000 {
            schema = json!({"type": "array", "items": schema});
        }
        assert_eq!(argument_type(&schema, &root), format!("any{}", "[]".repeat(MAX_DEPTH)));
    }
}
