//! The subset of JSON Schema that every client accepts.

use octo_grants::WorkPath;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema of a type: an object at the root, no references, no nullable unions, no numeric formats.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("title");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    simplify(&mut schema);
    schema
}

/// Removes the path marker from the properties of a schema and returns the names that had it.
pub fn take_path_params(schema: &mut Value) -> Vec<String> {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    properties.filter_map(|(name, property)| take_path_mark(property).then(|| name.clone())).collect()
}

/// A path may also be in an array.
fn take_path_mark(schema: &mut Value) -> bool {
    let Some(object) = schema.as_object_mut() else { return false };
    let here = object.get("format").and_then(Value::as_str) == Some(WorkPath::FORMAT);
    if here {
        object.remove("format");
    }
    let mut within = false;
    for inner in object.values_mut().filter(|value| value.is_object()) {
        within |= take_path_mark(inner);
    }
    here || within
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("format").and_then(Value::as_str).is_some_and(is_numeric_format) {
                object.remove("format");
            }
            let optional = drop_null(object);
            if optional && object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn is_numeric_format(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int") || matches!(format, "float" | "double")
}

/// `["string", "null"]` becomes `"string"`: an absent member means the same, and every client supports it.
fn drop_null(object: &mut Map<String, Value>) -> bool {
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        return true;
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else {
        return false;
    };
    let before = choices.len();
    choices.retain(|choice| choice.get("type") != Some(&Value::from("null")));
    if choices.len() == before {
        return false;
    }
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_optional_is_never_null() {
        for (schema, expected) in [
            (json!({"type": ["string", "null"]}), json!({"type": "string"})),
            (
                json!({"type": ["string", "null"], "enum": ["a", "b", null], "default": null}),
                json!({"type": "string", "enum": ["a", "b"]}),
            ),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!({"type": "integer"})),
            (json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["a"]})),
        ] {
            let mut tidied = schema.clone();
            simplify(&mut tidied);
            assert_eq!(tidied, expected, "{schema}");
        }
    }
}
