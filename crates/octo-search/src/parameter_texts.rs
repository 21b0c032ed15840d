//! What the input schema of a tool says about its parameters, for the index.

use serde_json::{Map, Value};

/// Nested parameters that are read.
const MAX_DEPTH: usize = 4;
/// Parameters of a tool that are read.
const MAX_PARAMETERS: usize = 200;
/// Bytes of a description that are read.
const MAX_DESCRIPTION_BYTES: usize = 600;

/// Values of an enumeration that are read.
const MAX_VALUES: usize = 20;
/// Bytes of a name or value that are read.
const MAX_VALUE_BYTES: usize = 100;

/// Names and descriptions of parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParameterTexts {
    /// With the values of enumerations: a task says `celsius` rather than `unit`.
    pub names: String,
    pub descriptions: String,
}

/// Collects the names and descriptions of the parameters in an input schema, nested ones included. An invalid schema
/// has none.
pub fn parameter_texts(schema: &Value) -> ParameterTexts {
    let mut texts = ParameterTexts::default();
    let mut left = MAX_PARAMETERS;
    if let Some(schema) = schema.as_object() {
        collect_parameters(schema, MAX_DEPTH, &mut left, &mut texts);
    }
    texts
}

fn collect_parameters(
    schema: &Map<String, Value>,
    depth: usize,
    left: &mut usize,
    texts: &mut ParameterTexts,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for (name, parameter) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        append_beginning(&mut texts.names, name, MAX_VALUE_BYTES);
        let Some(parameter) = parameter.as_object() else { continue };
        if let Some(description) = parameter.get("description").and_then(Value::as_str) {
            append_beginning(&mut texts.descriptions, description, MAX_DESCRIPTION_BYTES);
        }
        for part in [Some(parameter), parameter.get("items").and_then(Value::as_object)].into_iter().flatten()
        {
            let values = part.get("enum").and_then(Value::as_array).into_iter().flatten();
            for value in values.take(MAX_VALUES).filter_map(Value::as_str) {
                append_beginning(&mut texts.names, value, MAX_VALUE_BYTES);
            }
            collect_parameters(part, depth, left, texts);
        }
    }
}

fn append_beginning(list: &mut String, text: &str, max_bytes: usize) {
    if !list.is_empty() {
        list.push('\n');
    }
    list.push_str(text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_collected_and_invalid_schemas_have_none() {
        let nested = json!({"properties": {
            "path": {"type": "string", "description": "Where to write."},
            "edits": {"type": "array", "items": {"properties": {"old": {"description": "Old text."}}}},
            "filter": {"properties": {"since": true}},
            "unit": {"enum": ["celsius", 5, "kelvin"]},
            "odd": 7,
        }});
        let rows = [
            (nested, "path edits old filter since unit celsius kelvin odd", "Where to write. Old text."),
            (json!({"properties": {"a": {"description": 5}}}), "a", ""),
            (json!({"properties": ["a"]}), "", ""),
            (json!({}), "", ""),
            (json!(null), "", ""),
            (json!("schema"), "", ""),
        ];
        for (schema, names, descriptions) in rows {
            let found = parameter_texts(&schema);
            assert_eq!(found.names.replace('\n', " "), names, "{schema}");
            assert_eq!(found.descriptions.replace('\n', " "), descriptions, "{schema}");
        }
    }

    #[test]
    fn large_schemas_are_read_in_part() {
        let mut deep = json!({"description": "x".repeat(100_000)});
        for _ in 0..50 {
            deep = json!({"properties": {"inner": deep}});
        }
        assert_eq!(parameter_texts(&deep).names.lines().count(), MAX_DEPTH);
        let wide: Map<String, Value> =
            (0..10_000).map(|at| (format!("p{at}"), json!({"description": "x".repeat(10_000)}))).collect();
        let found = parameter_texts(&json!({"properties": wide}));
        assert_eq!(found.names.lines().count(), MAX_PARAMETERS);
        assert!(found.descriptions.len() <= MAX_PARAMETERS * (MAX_DESCRIPTION_BYTES + 1));
    }
}
