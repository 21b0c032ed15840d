//! Traversal of schemas.

use serde_json::Value;

/// Fields without a description, at any depth.
pub fn undocumented(schema: &Value) -> Vec<String> {
    let mut bare = Vec::new();
    walk(schema, "", &mut |path, field| {
        let said = field["description"].as_str().unwrap_or_default().trim();
        if said.len() < 4 {
            bare.push(path.to_owned());
        }
    });
    bare
}

/// Keywords that some clients do not support.
pub fn unsupported_keywords(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for combinator in ["anyOf", "oneOf", "allOf", "$ref", "not"] {
        if schema.get(combinator).is_some() {
            found.push(format!("{combinator} at the root"));
        }
    }
    let text = schema.to_string();
    for keyword in ["\"$ref\"", "\"$defs\"", "\"$schema\""] {
        if text.contains(keyword) {
            found.push(keyword.to_owned());
        }
    }
    walk(schema, "", &mut |path, field| {
        if field["type"].is_array() {
            found.push(format!("{path} has several types"));
        }
    });
    found
}

fn walk(schema: &Value, path: &str, look: &mut dyn FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        look(&path, field);
        walk(field, &path, look);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(inner).filter(|inner| inner.is_object()) {
            walk(inner, &format!("{path}[]"), look);
        }
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        schema[choice].as_array().into_iter().flatten().for_each(|inner| walk(inner, path, look));
    }
}
