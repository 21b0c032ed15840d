//! A tool's schema inside the document: its references point at where it stands now, and all of them lead
//! somewhere. What cannot be said truly is left open instead of said wrongly.

use octo_model::{Json, listed_name};
use serde_json::{Map, Value, json};

/// Schemas nested deeper than this are left open.
const DEEPEST: usize = 64;

/// A name as the key of a component: plain, and the same for the same name.
pub fn component(name: &str) -> String {
    listed_name(name)
}

/// The schema for `#/components/schemas/{key}`.
pub fn embed(schema: Option<&Json>, key: &str) -> Value {
    let Some(mut schema) = schema.and_then(|json| json.to::<Value>().ok()).filter(Value::is_object) else {
        return open();
    };
    if let Value::Object(members) = &mut schema {
        members.remove("$schema");
        members.remove("$id");
    }
    let whole = schema.clone();
    let place = Place { root: &whole, prefix: format!("#/components/schemas/{key}") };
    match place.schema(&mut schema, 0) {
        Some(()) => schema,
        None => open(),
    }
}

fn open() -> Value {
    json!({"type": "object", "description": "Its schema cannot be shown here; see GET /tools/{name}."})
}

struct Place<'a> {
    root: &'a Value,
    prefix: String,
}

impl Place<'_> {
    /// Moves the references of a schema; None when one of them leads nowhere.
    fn schema(&self, schema: &mut Value, depth: usize) -> Option<()> {
        let Value::Object(members) = schema else {
            return Some(());
        };
        if depth > DEEPEST || members.contains_key("$id") {
            return None;
        }
        tuple_items(members);
        for (key, value) in members.iter_mut() {
            match key.as_str() {
                "$ref" | "$dynamicRef" => self.reference(value)?,
                "const" | "enum" | "default" | "examples" | "example" => {}
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                    self.each(value, depth)?;
                }
                _ => self.nested(value, depth)?,
            }
        }
        Some(())
    }

    /// A map from names to schemas, whose keys are no keywords.
    fn each(&self, map: &mut Value, depth: usize) -> Option<()> {
        let Value::Object(members) = map else {
            return Some(());
        };
        members.values_mut().try_for_each(|schema| self.schema(schema, depth + 1))
    }

    fn nested(&self, value: &mut Value, depth: usize) -> Option<()> {
        match value {
            Value::Array(parts) => parts.iter_mut().try_for_each(|part| self.schema(part, depth + 1)),
            other => self.schema(other, depth + 1),
        }
    }

    fn reference(&self, value: &mut Value) -> Option<()> {
        let Value::String(text) = value else { return None };
        let pointer = text.strip_prefix('#')?;
        self.root.pointer(pointer)?;
        *text = format!("{}{pointer}", self.prefix);
        Some(())
    }
}

/// Older drafts write a tuple as a list under `items`.
fn tuple_items(members: &mut Map<String, Value>) {
    if members.get("items").is_some_and(Value::is_array)
        && let Some(parts) = members.remove("items")
    {
        members.insert("prefixItems".to_owned(), parts);
        if let Some(rest) = members.remove("additionalItems") {
            members.insert("items".to_owned(), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_point_at_the_new_place() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "default": {"$ref": "#/definitions/Leaf"},
                "self": {"$ref": "#"},
                "list": {"items": [{"$ref": "#/definitions/Leaf"}], "additionalItems": false},
                "data": {"default": {"$ref": "#/kept"}}
            },
            "definitions": {"Leaf": {"type": "string"}}
        });
        let found = embed(Some(&Json::from(schema)), "x.input");
        assert!(found.get("$schema").is_none());
        let properties = &found["properties"];
        assert_eq!(properties["default"]["$ref"], "#/components/schemas/x.input/definitions/Leaf");
        assert_eq!(properties["self"]["$ref"], "#/components/schemas/x.input");
        assert_eq!(
            properties["list"]["prefixItems"][0]["$ref"],
            "#/components/schemas/x.input/definitions/Leaf"
        );
        assert_eq!(properties["list"]["items"], false);
        assert_eq!(properties["data"]["default"]["$ref"], "#/kept");
    }

    #[test]
    fn what_leads_nowhere_is_left_open() {
        for schema in [
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "https://example.com/x.json"}),
            json!({"$ref": 3}),
            json!({"properties": {"a": {"$id": "https://example.com/x", "$ref": "#/properties"}}}),
            json!([1]),
            json!(true),
        ] {
            assert_eq!(embed(Some(&Json::from(schema.clone())), "x"), open(), "{schema}");
        }
        assert_eq!(embed(None, "x"), open());
    }
}
