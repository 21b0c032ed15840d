//! JSON Schemas as TypeScript types. What has no short type is `unknown`.

use super::property_name;
use serde_json::{Map, Value};

const MAX_DEPTH: usize = 6;
/// Schemas in schemas in which required members are looked for.
const MAX_REFERENCES: usize = 3;
const MAX_PROPERTIES: usize = 40;
const MAX_ALTERNATIVES: usize = 16;
/// Longest literal and name that are shown.
const MAX_LITERAL_BYTES: usize = 60;
const UNKNOWN: &str = "unknown";
/// An object of which nothing is known.
const OPEN_OBJECT: &str = "Record<string, unknown>";

/// The type of a schema in about `max_bytes`.
pub fn schema_type(schema: &Value, max_bytes: usize) -> String {
    let mut writer = TypeWriter { root: schema, bytes_left: max_bytes };
    writer.of(schema, 0)
}

/// Whether an object must have members, as far as the schema tells.
pub fn has_required(schema: &Value) -> bool {
    requires(schema, schema, 0)
}

fn requires(root: &Value, schema: &Value, depth: usize) -> bool {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
    let part = |part: &Value| depth < MAX_REFERENCES && requires(root, part, depth + 1);
    list("required").is_some()
        || referred(root, schema).is_some_and(part)
        || list("allOf").is_some_and(|all| all.iter().take(MAX_ALTERNATIVES).any(part))
        || ["anyOf", "oneOf"]
            .iter()
            .any(|key| list(key).is_some_and(|all| all.iter().take(MAX_ALTERNATIVES).all(part)))
}

/// What `$ref` of a schema stands for.
fn referred<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

struct TypeWriter<'a> {
    root: &'a Value,
    /// At zero everything becomes `unknown`.
    bytes_left: usize,
}

impl TypeWriter<'_> {
    fn of(&mut self, schema: &Value, depth: usize) -> String {
        if depth > MAX_DEPTH || self.bytes_left == 0 {
            return UNKNOWN.to_owned();
        }
        if schema.get("$ref").is_some() {
            // A schema that contains itself ends at the depth.
            let target = referred(self.root, schema);
            return target.map_or_else(|| UNKNOWN.to_owned(), |target| self.of(target, depth + 1));
        }
        let Some(schema) = schema.as_object() else { return UNKNOWN.to_owned() };
        let text = self.any_type(schema, depth);
        self.bytes_left = self.bytes_left.saturating_sub(text.len());
        text
    }

    fn any_type(&mut self, schema: &Map<String, Value>, depth: usize) -> String {
        if let Some(value) = schema.get("const") {
            return literal(value).unwrap_or_else(|| UNKNOWN.to_owned());
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return enumeration(values).unwrap_or_else(|| self.plain_type(schema, depth));
        }
        let list = |key: &str| schema.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
        let mut parts = Vec::new();
        // The members that it names itself come first.
        if schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty()) {
            parts.push(self.plain_type(schema, depth));
        }
        for all in ["anyOf", "oneOf"].into_iter().filter_map(list) {
            parts.push(self.union(all, depth));
        }
        for part in list("allOf").into_iter().flatten().take(MAX_ALTERNATIVES) {
            parts.push(self.of(part, depth + 1));
        }
        // Alternatives may only tell what is required.
        parts.retain(|part| part != UNKNOWN && part != OPEN_OBJECT);
        match parts.as_slice() {
            [] => self.plain_type(schema, depth),
            [part] => part.clone(),
            several => several.iter().map(|part| in_brackets(part)).collect::<Vec<_>>().join(" & "),
        }
    }

    fn plain_type(&mut self, schema: &Map<String, Value>, depth: usize) -> String {
        match schema.get("type") {
            Some(Value::String(name)) => self.named_type(name, schema, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().take(MAX_ALTERNATIVES).filter_map(Value::as_str);
                let parts: Vec<_> = names.map(|name| self.named_type(name, schema, depth)).collect();
                joined(parts)
            }
            _ if schema.contains_key("properties")
                || schema.get("additionalProperties").is_some_and(Value::is_object) =>
            {
                self.object(schema, depth)
            }
            _ => UNKNOWN.to_owned(),
        }
    }

    fn named_type(&mut self, name: &str, schema: &Map<String, Value>, depth: usize) -> String {
        match name {
            "string" | "boolean" | "null" => name.to_owned(),
            "number" | "integer" => "number".to_owned(),
            "array" => {
                let item =
                    schema.get("items").map_or_else(|| UNKNOWN.to_owned(), |items| self.of(items, depth + 1));
                format!("{}[]", in_brackets(&item))
            }
            "object" => self.object(schema, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty());
        let Some(properties) = properties else {
            let values = schema.get("additionalProperties").filter(|values| values.is_object());
            let value = values.map_or_else(|| UNKNOWN.to_owned(), |values| self.of(values, depth + 1));
            return format!("Record<string, {value}>");
        };
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().take(MAX_PROPERTIES * 4).filter_map(Value::as_str).collect())
            .unwrap_or_default();
        // Required ones first: those after the limit are left out.
        let (needed, optional): (Vec<_>, Vec<_>) = properties
            .iter()
            .take(MAX_PROPERTIES * 4)
            .partition(|(name, _)| required.contains(&name.as_str()));
        let mut members = Vec::new();
        let all = needed
            .iter()
            .map(|property| ("", property))
            .chain(optional.iter().map(|property| ("?", property)));
        let is_short = |(_, (name, _)): &(&str, &(&String, &Value))| name.len() <= MAX_LITERAL_BYTES;
        for (mark, (name, value)) in all.filter(is_short).take(MAX_PROPERTIES) {
            let value = self.of(value, depth + 1);
            let member = format!("{}{mark}: {value}", property_name(name));
            self.bytes_left = self.bytes_left.saturating_sub(name.len() + 4);
            members.push(member);
        }
        if members.len() < properties.len() {
            members.push("[more: string]: unknown".to_owned());
        }
        format!("{{ {} }}", members.join("; "))
    }

    fn union(&mut self, alternatives: &[Value], depth: usize) -> String {
        let shown = alternatives.iter().take(MAX_ALTERNATIVES);
        let mut parts: Vec<_> = shown.map(|schema| self.of(schema, depth + 1)).collect();
        if alternatives.len() > MAX_ALTERNATIVES {
            parts.push(UNKNOWN.to_owned());
        }
        joined(parts)
    }
}

/// A union without repetitions; `unknown` contains all others.
fn joined(parts: Vec<String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for part in parts {
        if part == UNKNOWN {
            return part;
        }
        if !different.contains(&part) {
            different.push(part);
        }
    }
    if different.is_empty() { UNKNOWN.to_owned() } else { different.join(" | ") }
}

/// A type as a part of another one: in brackets if it has several parts.
fn in_brackets(part: &str) -> String {
    let (mut depth, mut in_text, mut is_escaped, mut is_composed) = (0_usize, false, false, false);
    for letter in part.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_text,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '{' | '(' | '<' => depth += 1,
            '}' | ')' | '>' => depth = depth.saturating_sub(1),
            '|' | '&' => is_composed |= depth == 0,
            _ => {}
        }
    }
    if is_composed { format!("({part})") } else { part.to_owned() }
}

fn enumeration(values: &[Value]) -> Option<String> {
    if values.is_empty() || values.len() > MAX_ALTERNATIVES {
        return None;
    }
    values.iter().map(literal).collect::<Option<Vec<_>>>().map(joined)
}

fn literal(value: &Value) -> Option<String> {
    let text = match value {
        Value::Object(_) | Value::Array(_) => return None,
        scalar => scalar.to_string(),
    };
    (text.len() <= MAX_LITERAL_BYTES).then_some(text)
}
