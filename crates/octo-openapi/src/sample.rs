//! Sample values for a schema: for examples in errors and for generated calls.

use crate::Document;
use crate::schema_types::{choices, resolve_outer, types};
use crate::value_ext::ValueExt;
use serde_json::{Map, Value, json};

/// Maximum nesting; ends recursive schemas.
const MAX_DEPTH: usize = 12;
/// Maximum values in total; ends schemas with multiple recursion.
const MAX_VALUES: usize = 2_000;

/// Which members are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMembers {
    /// Only required ones.
    Required,
    /// Also optional ones, near the top.
    RequiredAndOptional,
}

/// Returns a sample value; the document's own example if there is one.
pub fn sample(document: &Document, schema: &Value, how: SampleMembers) -> Value {
    Sampler { document, members: how, remaining: MAX_VALUES }.sample_value(schema, MAX_DEPTH)
}

struct Sampler<'a> {
    document: &'a Document,
    members: SampleMembers,
    /// Values that may still be generated.
    remaining: usize,
}

impl Sampler<'_> {
    fn sample_value(&mut self, schema: &Value, deep: usize) -> Value {
        if deep == 0 || self.remaining == 0 {
            return Value::Null;
        }
        self.remaining -= 1;
        let schema = resolve_outer(self.document, schema);
        if let Some(given) = declared_value(&schema) {
            return given;
        }
        if let Some(all) = schema.member("allOf").as_array() {
            return self.merged(all, &schema, deep);
        }
        if let Some(choice) = choices(&schema).and_then(|choices| choices.first()) {
            return match self.sample_value(choice, deep - 1) {
                Value::Object(mut members) if schema.member("properties").is_object() => {
                    members.extend(self.object(&schema, deep));
                    Value::Object(members)
                }
                value => value,
            };
        }
        match types(&schema).first().map(String::as_str) {
            Some("integer") => json!(integer(&schema)),
            Some("number") => number(&schema),
            Some("boolean") => json!(true),
            Some("array") => {
                let least = schema.member("minItems").as_u64().unwrap_or(0);
                let count = least.max(u64::from(self.members == SampleMembers::RequiredAndOptional)).min(20);
                (0..count).map(|_| self.sample_value(schema.member("items"), deep - 1)).collect()
            }
            Some("object") => Value::Object(self.object(&schema, deep)),
            _ => json!(text(&schema)),
        }
    }

    fn merged(&mut self, all: &[Value], schema: &Value, deep: usize) -> Value {
        let mut members = Map::new();
        for part in all {
            match self.sample_value(part, deep - 1) {
                Value::Object(part) => members.extend(part),
                Value::Null => {}
                plain => return plain,
            }
        }
        members.extend(self.object(schema, deep));
        Value::Object(members)
    }

    fn object(&mut self, schema: &Value, deep: usize) -> Map<String, Value> {
        let required: Vec<&str> =
            schema.member("required").as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let optional = self.members == SampleMembers::RequiredAndOptional && deep + 2 > MAX_DEPTH;
        let properties = schema.member("properties").as_object().into_iter().flatten();
        properties
            .filter(|(name, _)| required.contains(&name.as_str()) || optional)
            .filter(|(_, property)| property.member("readOnly") != true)
            .map(|(name, property)| (name.clone(), self.sample_value(property, deep - 1)))
            .collect()
    }
}

/// A value that the schema itself declares.
fn declared_value(schema: &Value) -> Option<Value> {
    let one = ["example", "default", "const"].iter().find_map(|name| schema.get(*name));
    let several = || ["examples", "enum"].iter().find_map(|name| schema.member(name).as_array()?.first());
    one.filter(|given| !given.is_null()).or_else(several).cloned()
}

fn integer(schema: &Value) -> i64 {
    let step = schema.member("multipleOf").as_i64().unwrap_or(1).max(1);
    let above = schema.member("exclusiveMinimum").as_i64().map(|least| least + 1);
    let least = schema.member("minimum").as_i64().or(above).unwrap_or(1);
    let least = least + i64::from(schema.member("exclusiveMinimum") == true);
    let most = schema.member("maximum").as_i64().unwrap_or(i64::MAX);
    (least.div_euclid(step) * step + if least.rem_euclid(step) == 0 { 0 } else { step }).min(most)
}

fn number(schema: &Value) -> Value {
    match schema.member("minimum").as_f64() {
        Some(least) if least.fract() != 0.0 => json!(least.ceil()),
        _ => json!(integer(schema)),
    }
}

fn text(schema: &Value) -> String {
    let text = match schema.member("format").as_str() {
        Some("date-time") => "2024-01-31T12:00:00Z",
        Some("date") => "2024-01-31",
        Some("time") => "12:00:00Z",
        Some("uuid") => "123e4567-e89b-42d3-a456-426614174000",
        Some("email") => "ada@example.com",
        Some("uri" | "url") => "https://example.com/",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("byte") => "YWRh",
        _ => "text",
    };
    let least = schema.member("minLength").as_u64().unwrap_or(0).min(1_000) as usize;
    let most = schema.member("maxLength").as_u64().unwrap_or(u64::MAX).min(1_000) as usize;
    let missing = least.saturating_sub(text.chars().count());
    text.chars().chain(std::iter::repeat_n('x', missing)).take(most).collect()
}
