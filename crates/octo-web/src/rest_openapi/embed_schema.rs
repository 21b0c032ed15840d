//! Embeds a tool's schema in the document: rewrites its references and ensures that all of them resolve. A schema that
//! cannot be embedded correctly is replaced by an open one.

use octo_model::{Json, listed_name};
use serde_json::{Map, Value, json};

/// Schemas nested deeper than this are left open.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Name as a component key: plain, and deterministic.
pub fn component_key(name: &str) -> String {
    listed_name(name)
}

/// Adds a schema as `#/components/schemas/{key}`. Its definitions become separate components: client generators follow
/// references to components only.
pub fn embed_schema(schema: Option<&Json>, key: &str, schemas: &mut Map<String, Value>) {
    let found = schema.and_then(|json| relocate(json.to::<Value>().ok()?, key));
    let (schema, definitions) = found.unwrap_or_else(|| (open_schema(), Map::new()));
    schemas.insert(key.to_owned(), schema);
    schemas.extend(definitions.into_iter().map(|(name, schema)| (definition_key(key, &name), schema)));
}

/// Component key of a definition. Distinct from the keys of tools, which end with `.input` and `.output`.
fn definition_key(key: &str, name: &str) -> String {
    format!("{key}-{}", component_key(name))
}

/// A schema and its definitions, with rewritten references.
fn relocate(mut schema: Value, key: &str) -> Option<(Value, Map<String, Value>)> {
    let members = schema.as_object_mut()?;
    members.remove("$schema");
    members.remove("$id");
    let keyword = if members.contains_key("$defs") { "$defs" } else { "definitions" };
    let whole = schema.clone();
    let place = RefRewriter { root: &whole, key, keyword };
    place.rewrite(&mut schema, 0)?;
    let definitions = schema.as_object_mut()?.remove(keyword);
    match definitions.unwrap_or_else(|| json!({})) {
        Value::Object(definitions) => Some((schema, definitions)),
        _ => None,
    }
}

fn open_schema() -> Value {
    json!({"type": "object", "description": "Its schema cannot be shown here; see GET /tools/{name}."})
}

struct RefRewriter<'a> {
    root: &'a Value,
    key: &'a str,
    /// Keyword whose definitions become components.
    keyword: &'a str,
}

impl RefRewriter<'_> {
    /// Rewrites the references of a schema; `None` if one of them does not resolve.
    fn rewrite(&self, schema: &mut Value, depth: usize) -> Option<()> {
        let Value::Object(members) = schema else {
            return Some(());
        };
        if depth > MAX_SCHEMA_DEPTH || members.contains_key("$id") {
            return None;
        }
        tuple_items(members);
        for (key, value) in members.iter_mut() {
            match key.as_str() {
                "$ref" | "$dynamicRef" => self.rewrite_ref(value)?,
                "const" | "enum" | "default" | "examples" | "example" => {}
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                    self.rewrite_map(value, depth)?;
                }
                _ => self.rewrite_nested(value, depth)?,
            }
        }
        Some(())
    }

    /// A map from names to schemas, whose keys are not keywords.
    fn rewrite_map(&self, map: &mut Value, depth: usize) -> Option<()> {
        let Value::Object(members) = map else {
            return Some(());
        };
        members.values_mut().try_for_each(|schema| self.rewrite(schema, depth + 1))
    }

    fn rewrite_nested(&self, value: &mut Value, depth: usize) -> Option<()> {
        match value {
            Value::Array(parts) => parts.iter_mut().try_for_each(|part| self.rewrite(part, depth + 1)),
            other => self.rewrite(other, depth + 1),
        }
    }

    fn rewrite_ref(&self, value: &mut Value) -> Option<()> {
        let Value::String(text) = value else { return None };
        let pointer = text.strip_prefix('#')?;
        self.root.pointer(pointer)?;
        if pointer.strip_prefix('/') == Some(self.keyword) {
            return None; // The definitions as a whole are not a schema.
        }
        *text = format!("#/components/schemas/{}", self.new_pointer(pointer));
        Some(())
    }

    /// Rewritten pointer into the schema.
    fn new_pointer(&self, pointer: &str) -> String {
        let within =
            pointer.strip_prefix('/').and_then(|rest| rest.strip_prefix(self.keyword)?.strip_prefix('/'));
        let Some(within) = within else { return format!("{}{pointer}", self.key) };
        let (name, rest) = within.split_once('/').map_or((within, None), |(name, rest)| (name, Some(rest)));
        let definition = definition_key(self.key, &name.replace("~1", "/").replace("~0", "~"));
        rest.map_or_else(|| definition.clone(), |rest| format!("{definition}/{rest}"))
    }
}

/// Older drafts write a tuple as an array under `items`.
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

    fn embedded(schema: Value) -> Map<String, Value> {
        let mut schemas = Map::new();
        embed_schema(Some(&Json::from(schema)), "x.input", &mut schemas);
        schemas
    }

    #[test]
    fn references_point_at_the_new_place() {
        let schemas = embedded(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "default": {"$ref": "#/definitions/Leaf"},
                "self": {"$ref": "#"},
                "part": {"$ref": "#/definitions/a~1b/properties/c"},
                "deep": {"$ref": "#/properties/part"},
                "list": {"items": [{"$ref": "#/definitions/Leaf"}], "additionalItems": false},
                "data": {"default": {"$ref": "#/kept"}}
            },
            "definitions": {
                "Leaf": {"type": "string"},
                "a/b": {"properties": {"c": {"$ref": "#/definitions/Leaf"}}}
            }
        }));
        const LEAF: &str = "#/components/schemas/x.input-Leaf";
        let found = &schemas["x.input"];
        assert!(found.get("$schema").is_none() && found.get("definitions").is_none());
        let properties = &found["properties"];
        assert_eq!(properties["default"]["$ref"], LEAF);
        assert_eq!(properties["self"]["$ref"], "#/components/schemas/x.input");
        assert_eq!(properties["deep"]["$ref"], "#/components/schemas/x.input/properties/part");
        assert_eq!(properties["list"]["prefixItems"][0]["$ref"], LEAF);
        assert_eq!(properties["list"]["items"], false);
        assert_eq!(properties["data"]["default"]["$ref"], "#/kept");
        assert_eq!(schemas["x.input-Leaf"], json!({"type": "string"}));
        let other = component_key("a/b");
        assert_eq!(properties["part"]["$ref"], format!("#/components/schemas/x.input-{other}/properties/c"));
        assert_eq!(schemas[&format!("x.input-{other}")]["properties"]["c"]["$ref"], LEAF);
        assert_eq!(schemas.len(), 3);
    }

    #[test]
    fn what_leads_nowhere_is_left_open() {
        for schema in [
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "https://example.com/x.json"}),
            json!({"$ref": 3}),
            json!({"properties": {"a": {"$id": "https://example.com/x", "$ref": "#/properties"}}}),
            json!({"$defs": [1]}),
            json!({"$defs": {"a": {}}, "$ref": "#/$defs"}),
            json!([1]),
            json!(true),
        ] {
            assert_eq!(embedded(schema.clone())["x.input"], open_schema(), "{schema}");
        }
        let mut schemas = Map::new();
        embed_schema(None, "x", &mut schemas);
        assert_eq!(schemas["x"], open_schema());
    }
}
