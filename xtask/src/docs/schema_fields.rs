//! Flattens a JSON Schema into its fields: `servers.<name>.command`, `items[].path`.

use serde_json::Value;

/// A field at any depth.
#[derive(Debug, PartialEq)]
pub struct Field {
    pub path: String,
    pub kind: String,
    pub default: Option<Value>,
    pub required: bool,
    pub description: String,
}

/// Maximum depth; deeper than any of our schemas, and a limit for recursive ones.
const MAX_DEPTH: usize = 6;

pub fn fields(root: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    FieldCollector { root, found: &mut found }.object(root, "", 0);
    found
}

struct FieldCollector<'a> {
    root: &'a Value,
    found: &'a mut Vec<Field>,
}

impl<'a> FieldCollector<'a> {
    fn object(&mut self, schema: &'a Value, prefix: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for variant in variants(self.root, schema) {
            let properties = variant.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                self.property(join(prefix, name), property, is_required(variant, name), depth);
            }
            match (variant.get("additionalProperties"), variant.get("items")) {
                (Some(value @ Value::Object(_)), _) => self.object(value, &join(prefix, "<name>"), depth + 1),
                (_, Some(item)) => self.object(item, &format!("{prefix}[]"), depth + 1),
                _ => {}
            }
        }
    }

    fn property(&mut self, path: String, property: &'a Value, required: bool, depth: usize) {
        if self.found.iter().any(|field| field.path == path) {
            return; // another variant has it, too
        }
        let meant = resolve(self.root, property);
        let said = |key| property.get(key).or_else(|| meant.get(key));
        self.found.push(Field {
            kind: type_text(self.root, property, 0),
            default: said("default").filter(|value| !value.is_null()).cloned(),
            required,
            description: said("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
            path: path.clone(),
        });
        self.object(property, &path, depth + 1);
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Resolves local references.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut meant = schema;
    for _ in 0..MAX_DEPTH {
        let target = meant.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(next) => meant = next,
            None => break,
        }
    }
    meant
}

/// The schema itself and, if it is a choice, each alternative.
fn variants<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let meant = resolve(root, schema);
    [meant].into_iter().chain(choices(root, meant)).collect()
}

fn choices<'a>(root: &'a Value, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
    let lists =
        ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)).filter_map(Value::as_array);
    lists.flatten().map(|choice| resolve(root, choice))
}

/// The type in words: `string`, `array of integer`, `"asc" or "desc"`. Null is omitted.
fn type_text(root: &Value, schema: &Value, depth: usize) -> String {
    let mut once: Vec<String> = Vec::new();
    for word in type_words(root, schema, depth) {
        if word != "null" && !once.contains(&word) {
            once.push(word);
        }
    }
    if once.is_empty() { "any".to_owned() } else { once.join(" or ") }
}

fn type_words(root: &Value, schema: &Value, depth: usize) -> Vec<String> {
    let meant = resolve(root, schema);
    let mut found = values(meant);
    if found.is_empty() {
        found = types(root, meant, depth);
    }
    if depth < MAX_DEPTH {
        found.extend(choices(root, meant).flat_map(|choice| type_words(root, choice, depth + 1)));
    }
    found
}

fn values(schema: &Value) -> Vec<String> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed
        .chain(schema.get("const"))
        .filter(|value| !value.is_null())
        .map(|value| format!("`{value}`"))
        .collect()
}

fn types(root: &Value, schema: &Value, depth: usize) -> Vec<String> {
    let named = match schema.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    named.into_iter().map(|name| with_items(root, schema, name, depth)).collect()
}

fn with_items(root: &Value, schema: &Value, name: &str, depth: usize) -> String {
    match (name, schema.get("items"), schema.get("additionalProperties")) {
        ("array", Some(items), _) if depth < MAX_DEPTH => {
            format!("array of {}", type_text(root, items, depth + 1))
        }
        ("object", _, Some(values @ Value::Object(_))) if depth < MAX_DEPTH => {
            format!("map of {}", type_text(root, values, depth + 1))
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kinds(schema: &Value) -> Vec<(String, String)> {
        fields(schema).into_iter().map(|field| (field.path, field.kind)).collect()
    }

    fn pair(path: &str, kind: &str) -> (String, String) {
        (path.to_owned(), kind.to_owned())
    }

    #[test]
    fn words_for_types() {
        for (property, word) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["integer", "null"]}), "integer"),
            (json!({"type": "array", "items": {"type": "number"}}), "array of number"),
            (json!({"enum": ["asc", "desc"]}), "`\"asc\"` or `\"desc\"`"),
            (json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), "`\"a\"` or `\"b\"`"),
            (json!({"anyOf": [{"$ref": "#/$defs/Zone"}, {"type": "null"}]}), "string"),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), "map of string"),
            (json!(true), "any"),
        ] {
            let schema = json!({"properties": {"x": property}, "$defs": {"Zone": {"type": "string"}}});
            assert_eq!(kinds(&schema)[0], pair("x", word));
        }
    }

    #[test]
    fn nested_fields_get_paths() {
        let schema = json!({
            "properties": {
                "servers": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Server"}},
                "items": {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}}}},
            },
            "$defs": {"Server": {"oneOf": [
                {"type": "object", "properties": {"command": {"type": "string"}, "on": {"type": "boolean"}}},
                {"type": "object", "properties": {"url": {"type": "string"}, "on": {"type": "boolean"}}},
            ]}},
        });
        let expected = [
            pair("servers", "map of object"),
            pair("servers.<name>.command", "string"),
            pair("servers.<name>.on", "boolean"),
            pair("servers.<name>.url", "string"),
            pair("items", "array of object"),
            pair("items[].path", "string"),
        ];
        assert_eq!(kinds(&schema), expected);
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let schema = json!({
            "properties": {"node": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        });
        assert!(fields(&schema).len() < 10);
        fields(&json!({"properties": {"x": {"$ref": "#/properties/x"}}}));
    }

    #[test]
    fn what_stands_beside_a_reference_wins() {
        let schema = json!({
            "properties": {"zone": {"$ref": "#/$defs/Zone", "description": "Where.", "default": "UTC"}},
            "required": ["zone"],
            "$defs": {"Zone": {"type": "string", "description": "A zone."}},
        });
        let field = fields(&schema).remove(0);
        assert_eq!(
            (field.description.as_str(), field.default, field.required),
            ("Where.", Some(json!("UTC")), true)
        );
    }
}
