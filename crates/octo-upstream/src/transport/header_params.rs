//! Arguments that a modern server wants mirrored in HTTP headers (`x-mcp-header`).

use crate::transport::http::request_headers::encode_value;
use http::{HeaderName, HeaderValue};
use octo_model::Json;
use octo_wire::header;
use serde_json::{Map, Value};
use std::collections::HashSet;

const HEADER_ANNOTATION: &str = "x-mcp-header";
/// Keywords whose values are data, not schemas.
const DATA_KEYWORDS: [&str; 4] = ["default", "const", "enum", "examples"];
/// Keywords whose values map names to schemas that are not properties reachable from the root.
const SCHEMA_MAP_KEYWORDS: [&str; 4] = ["$defs", "definitions", "dependentSchemas", "patternProperties"];

/// An argument, by its path, and the header that mirrors it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    path: Vec<String>,
    header: HeaderName,
}

/// Returns the header parameters of a tool's input schema, or why the tool must be skipped.
pub(crate) fn header_params(schema: &Json) -> Result<Vec<HeaderParam>, &'static str> {
    if !schema.as_str().contains(HEADER_ANNOTATION) {
        return Ok(Vec::new());
    }
    let schema: Value = schema.to().map_err(|_| "invalid input schema")?;
    let Value::Object(root) = schema else {
        return Ok(Vec::new());
    };
    if root.contains_key(HEADER_ANNOTATION) {
        return Err("x-mcp-header on the schema root");
    }
    let mut found = Vec::new();
    visit_schema(&root, Some(&mut Vec::new()), &mut found)?;
    let mut seen = HashSet::new();
    if found.iter().all(|mirror| seen.insert(&mirror.header)) {
        Ok(found)
    } else {
        Err("two arguments map to the same header")
    }
}

/// Visits a schema. `path` is set only while it was reached through properties alone.
fn visit_schema(
    schema: &Map<String, Value>,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderParam>,
) -> Result<(), &'static str> {
    for (key, value) in schema {
        match (key.as_str(), value) {
            (HEADER_ANNOTATION, mark) => {
                let path = path.as_deref().ok_or("x-mcp-header outside of properties")?;
                found.push(HeaderParam { path: path.clone(), header: header_name(schema, mark)? });
            }
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    visit_property(name, property, path.as_deref_mut(), found)?;
                }
            }
            (key, _) if DATA_KEYWORDS.contains(&key) => {}
            (key, Value::Object(schemas)) if SCHEMA_MAP_KEYWORDS.contains(&key) => {
                schemas.values().try_for_each(|schema| visit_elsewhere(schema, found))?;
            }
            (_, other) => visit_elsewhere(other, found)?,
        }
    }
    Ok(())
}

fn visit_property(
    name: &str,
    property: &Value,
    path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderParam>,
) -> Result<(), &'static str> {
    let (Value::Object(schema), Some(path)) = (property, path) else {
        return visit_elsewhere(property, found);
    };
    path.push(name.to_owned());
    visit_schema(schema, Some(path), found)?;
    path.pop();
    Ok(())
}

fn visit_elsewhere(value: &Value, found: &mut Vec<HeaderParam>) -> Result<(), &'static str> {
    match value {
        Value::Object(schema) => visit_schema(schema, None, found),
        Value::Array(parts) => parts.iter().try_for_each(|part| visit_elsewhere(part, found)),
        _ => Ok(()),
    }
}

fn header_name(schema: &Map<String, Value>, mark: &Value) -> Result<HeaderName, &'static str> {
    let plain = matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    if !plain {
        return Err("x-mcp-header on an argument that is not a string, integer or boolean");
    }
    let name = mark.as_str().filter(|name| !name.is_empty()).ok_or("header name is empty or not a string")?;
    HeaderName::from_bytes(format!("{}{name}", header::PARAM).as_bytes()).map_err(|_| "invalid header name")
}

/// Headers for one call.
pub(crate) fn param_headers(
    mirrors: &[HeaderParam],
    arguments: Option<&Json>,
) -> Vec<(HeaderName, HeaderValue)> {
    let Some(arguments) = arguments else {
        return Vec::new();
    };
    let one = |mirror: &HeaderParam| {
        let text = header_text(&value_at(arguments, &mirror.path)?)?;
        Some((mirror.header.clone(), encode_value(&text)?))
    };
    mirrors.iter().filter_map(one).collect()
}

fn value_at(arguments: &Json, path: &[String]) -> Option<Json> {
    path.iter().try_fold(arguments.clone(), |value, key| value.members().ok()?.remove(key))
}

/// A string unchanged, an integer in decimal, a boolean as `true` or `false`; `None` otherwise.
fn header_text(value: &Json) -> Option<String> {
    match value.to::<Value>().ok()? {
        Value::String(text) => Some(text),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(match number.as_f64().filter(|float| float.fract() == 0.0) {
            Some(whole) if number.is_f64() && whole.abs() < 9e15 => format!("{whole:.0}"),
            _ => number.to_string(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params_of(schema: Value) -> Result<Vec<HeaderParam>, &'static str> {
        header_params(&Json::from(schema))
    }

    #[test]
    fn arguments_are_mirrored_by_their_path() {
        let found = params_of(json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limits": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "x-mcp-header": {"type": "string"},
        }}))
        .unwrap();
        let arguments =
            Json::from(json!({"region": " é", "limits": {"count": 42.0}, "dry": null, "other": "x"}));
        let sent: Vec<(String, String)> = param_headers(&found, Some(&arguments))
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        assert_eq!(
            sent,
            [
                ("mcp-param-region".to_owned(), "=?base64?IMOp?=".to_owned()),
                ("mcp-param-count".to_owned(), "42".to_owned())
            ]
        );
    }

    #[test]
    fn schemas_that_break_the_rules_are_refused() {
        for schema in [
            json!({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": 3}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "a\tb"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "Région"}}}),
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}}),
            json!({"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
            json!({"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"x-mcp-header": "A", "type": "object"}),
        ] {
            assert!(params_of(schema.clone()).is_err(), "{schema}");
        }
    }

    #[test]
    fn unmarked_schemas_and_data_are_left_alone() {
        assert_eq!(params_of(json!({"type": "object"})).unwrap(), []);
        assert_eq!(params_of(json!({"properties": {"a": {"default": {"x-mcp-header": "A"}}}})).unwrap(), []);
    }
}
