//! Schemas in the subset that all clients accept: references resolved within limits, `allOf` merged, no format-specific
//! keywords. Anything not expressed is validated by the API itself.

use crate::Document;
use crate::markup;
use crate::schema_types::{choices, types};
use crate::value_ext::ValueExt;
use serde_json::{Map, Value, json};

/// Levels of the schema, and of nested references.
const MAX_DEPTH: usize = 10;
const MAX_REF_DEPTH: usize = 4;
/// Parts that are merged into one, and levels of merging.
const MAX_ALL_OF_PARTS: usize = 24;
const MAX_MERGE_DEPTH: usize = 4;
const MAX_ALTERNATIVES: usize = 12;
const MAX_ENUM_VALUES: usize = 200;
const MAX_DESCRIPTION_LEN: usize = 240;
const MAX_DEFAULT_LEN: usize = 200;

/// Builder of one tool's schema.
pub(crate) struct CompatSchemaBuilder<'a> {
    document: &'a Document,
    /// Schemas that may still be emitted.
    remaining_nodes: usize,
    ref_stack: Vec<String>,
    /// Whether binary strings are files of a form.
    is_multipart: bool,
}

impl<'a> CompatSchemaBuilder<'a> {
    pub(crate) fn new(document: &'a Document, left: usize) -> Self {
        Self { document, remaining_nodes: left, ref_stack: Vec::new(), is_multipart: false }
    }

    /// Schema of a parameter, without null.
    pub(crate) fn parameter(&mut self, schema: &Value) -> Value {
        without_null(self.convert(schema, MAX_DEPTH))
    }

    /// Schema of a body. Null is kept: it means "unset this".
    pub(crate) fn body(&mut self, schema: &Value, form: bool) -> Value {
        self.is_multipart = form;
        self.convert(schema, MAX_DEPTH)
    }

    fn convert(&mut self, schema: &Value, deep: usize) -> Value {
        let Some(rest) = self.remaining_nodes.checked_sub(1) else { return json!({}) };
        self.remaining_nodes = rest;
        let Some(reference) = schema.member("$ref").as_str() else {
            return self.convert_resolved(schema, deep);
        };
        let Ok(target) = self.document.resolve(schema) else { return json!({}) };
        let is_back = self.ref_stack.iter().any(|open| open == reference);
        if is_back || self.ref_stack.len() >= MAX_REF_DEPTH {
            return shallow(&target);
        }
        self.ref_stack.push(reference.to_owned());
        let made = self.convert_resolved(&target, deep);
        self.ref_stack.pop();
        made
    }

    fn convert_resolved(&mut self, schema: &Value, deep: usize) -> Value {
        if deep == 0 {
            return shallow(schema);
        }
        let schema = merge_all_of(self.document, schema, MAX_MERGE_DEPTH);
        if self.is_multipart && is_bytes(&schema) {
            return file(&schema);
        }
        let mut made = value_keywords(&schema);
        let kinds = types(&schema);
        match kinds.as_slice() {
            [] => {}
            [kind] => {
                made.insert("type".to_owned(), json!(if kind == "file" { "string" } else { kind }));
            }
            several => {
                let several: Vec<Value> = several.iter().map(|kind| json!({"type": kind})).collect();
                made.insert("anyOf".to_owned(), several.into());
            }
        }
        if schema.member("items").is_object() {
            made.insert("items".to_owned(), self.convert(schema.member("items"), deep - 1));
        } else if kinds == ["array"] {
            made.insert("items".to_owned(), json!({}));
        }
        self.members(&schema, &mut made, deep);
        self.choices(&schema, &mut made, deep);
        match is_nullable(&schema) {
            true => with_null(made),
            false => Value::Object(made),
        }
    }

    fn members(&mut self, schema: &Value, made: &mut Map<String, Value>, deep: usize) {
        if schema.member("additionalProperties").is_object() {
            let others = self.convert(schema.member("additionalProperties"), deep - 1);
            made.insert("additionalProperties".to_owned(), others);
        }
        let Some(members) = schema.member("properties").as_object() else { return };
        let required = schema.member("required").as_array();
        let is_needed = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        // Read-only members are set by the server. Required ones come first, in case there is no room for all.
        let mut written: Vec<(&String, &Value)> =
            members.iter().filter(|(_, member)| member.member("readOnly") != true).collect();
        written.sort_by_key(|(name, _)| !is_needed(name));
        let (mut properties, mut needed) = (Map::new(), Vec::new());
        for (name, member) in written {
            if self.remaining_nodes == 0 && (!is_needed(name) || needed.len() >= MAX_ENUM_VALUES) {
                break;
            }
            if is_needed(name) {
                needed.push(json!(name));
            }
            properties.insert(name.clone(), self.convert(member, deep - 1));
        }
        made.insert("properties".to_owned(), properties.into());
        if !needed.is_empty() {
            made.insert("required".to_owned(), needed.into());
        }
    }

    /// Alternatives. Those that only constrain which members are required are left to the API.
    fn choices(&mut self, schema: &Value, made: &mut Map<String, Value>, deep: usize) {
        let choices = choices(schema).into_iter().flatten().filter(|choice| choice.member("type") != "null");
        let choices: Vec<&Value> = choices.take(MAX_ALTERNATIVES + 1).collect();
        if choices.len() > MAX_ALTERNATIVES {
            return;
        }
        let (mut known, mut all): (Vec<Value>, bool) = (Vec::new(), true);
        for choice in choices {
            let choice = without_null(self.convert(choice, deep - 1));
            let says = ["type", "properties", "enum", "anyOf"].iter().any(|word| choice.get(word).is_some());
            // An alternative that accepts anything makes the others void.
            if !says && !made.contains_key("properties") {
                return;
            }
            all &= says;
            if says && !known.contains(&choice) {
                known.push(choice);
            }
        }
        // With one dropped, the others no longer cover all allowed values.
        if !all {
            return;
        }
        match <[Value; 1]>::try_from(known) {
            Ok([Value::Object(only)]) => only.into_iter().for_each(|(name, value)| {
                made.entry(name).or_insert(value);
            }),
            Ok(_) => {}
            Err(known) if known.is_empty() => {}
            Err(known) => {
                made.insert("anyOf".to_owned(), known.into());
            }
        }
    }
}

/// The schema with its `allOf` merged in; its own keywords take precedence.
fn merge_all_of(document: &Document, schema: &Value, left: usize) -> Value {
    let Some(parts) = schema.member("allOf").as_array().filter(|_| left > 0) else { return schema.clone() };
    let mut whole = schema.as_object().cloned().unwrap_or_default();
    whole.remove("allOf");
    for part in parts.iter().take(MAX_ALL_OF_PARTS) {
        let Ok(part) = document.resolve(part) else { continue };
        let Value::Object(part) = merge_all_of(document, &part, left - 1) else { continue };
        for (word, value) in part {
            match (whole.get_mut(&word), value) {
                (Some(Value::Object(known)), Value::Object(more)) if word == "properties" => {
                    more.into_iter().for_each(|(name, member)| {
                        known.entry(name).or_insert(member);
                    });
                }
                (Some(Value::Array(known)), Value::Array(more)) if word == "required" => known.extend(more),
                (Some(_), _) => {}
                (None, value) => {
                    whole.insert(word, value);
                }
            }
        }
    }
    whole.into()
}

/// Keywords about the value itself that all clients interpret alike.
fn value_keywords(schema: &Value) -> Map<String, Value> {
    let mut made = Map::new();
    if let Some(text) = schema.member("description").as_str().filter(|text| !text.trim().is_empty()) {
        made.insert("description".to_owned(), markup::to_plain_text(text, MAX_DESCRIPTION_LEN).into());
    }
    let values: Option<Vec<Value>> = match (schema.get("const"), schema.member("enum").as_array()) {
        (Some(only), _) => Some(vec![only.clone()]),
        (None, Some(several)) if several.len() <= MAX_ENUM_VALUES => Some(several.clone()),
        _ => None,
    };
    let values = values.map(|values| values.into_iter().filter(|value| !value.is_null()).collect::<Vec<_>>());
    if let Some(values) = values.filter(|values| !values.is_empty()) {
        made.insert("enum".to_owned(), values.into());
    }
    if let Some(default) = schema.get("default")
        && !default.is_null()
        && default.to_string().len() <= MAX_DEFAULT_LEN
    {
        made.insert("default".to_owned(), default.clone());
    }
    const FORMATS: [&str; 8] = ["date-time", "date", "time", "email", "hostname", "ipv4", "ipv6", "uuid"];
    if let Some(format) = schema.member("format").as_str().filter(|format| FORMATS.contains(format)) {
        made.insert("format".to_owned(), format.into());
    }
    for word in ["minLength", "maxLength", "minItems", "maxItems"] {
        if let Some(bound) = schema.member(word).as_u64() {
            made.insert(word.to_owned(), bound.into());
        }
    }
    bounds(schema, &mut made);
    made
}

/// Older documents mark a bound as exclusive with a flag; newer ones use a separate keyword.
fn bounds(schema: &Value, made: &mut Map<String, Value>) {
    for (bound, beyond) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let word = if schema.member(beyond) == true { beyond } else { bound };
        if schema.member(bound).is_number() {
            made.insert(word.to_owned(), schema.member(bound).clone());
        }
        if schema.member(beyond).is_number() {
            made.insert(beyond.to_owned(), schema.member(beyond).clone());
        }
    }
}

/// Type and description of a schema that is not expanded.
fn shallow(schema: &Value) -> Value {
    let mut made = Map::new();
    if let ([kind], false) = (types(schema).as_slice(), is_nullable(schema)) {
        made.insert("type".to_owned(), json!(if kind == "file" { "string" } else { kind }));
        if kind == "array" {
            made.insert("items".to_owned(), json!({}));
        }
    }
    if let Some(text) = schema.member("description").as_str().filter(|text| !text.trim().is_empty()) {
        made.insert("description".to_owned(), markup::to_plain_text(text, MAX_DESCRIPTION_LEN).into());
    }
    made.into()
}

fn is_nullable(schema: &Value) -> bool {
    let named = |kinds: &Vec<Value>| kinds.iter().any(|kind| kind == "null");
    let chosen = |choice: &Value| choice.member("type") == "null";
    schema.member("nullable") == true
        || schema.member("type").as_array().is_some_and(named)
        || choices(schema).is_some_and(|choices| choices.iter().any(chosen))
        || schema.member("enum").as_array().is_some_and(|values| values.contains(&Value::Null))
}

/// The schema, or null.
fn with_null(mut made: Map<String, Value>) -> Value {
    if !["type", "anyOf", "enum"].iter().any(|word| made.contains_key(*word)) {
        return made.into();
    }
    let about: Map<String, Value> = ["description", "default"]
        .iter()
        .filter_map(|word| made.remove(*word).map(|value| ((*word).to_owned(), value)))
        .collect();
    let mut either = match (made.remove("anyOf"), made.is_empty()) {
        (Some(Value::Array(several)), true) => several,
        (Some(several), false) => {
            made.insert("anyOf".to_owned(), several);
            vec![made.into()]
        }
        _ => vec![made.into()],
    };
    either.push(json!({"type": "null"}));
    let mut whole = about;
    whole.insert("anyOf".to_owned(), either.into());
    whole.into()
}

/// The schema without null among its alternatives.
fn without_null(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    let Some(Value::Array(choices)) = members.get_mut("anyOf") else { return members.into() };
    choices.retain(|choice| choice.member("type") != "null");
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        members.remove("anyOf");
        only.into_iter().for_each(|(name, value)| {
            members.entry(name).or_insert(value);
        });
    }
    members.into()
}

fn is_bytes(schema: &Value) -> bool {
    let kind = schema.member("type");
    kind == "file" || (kind == "string" && schema.member("format") == "binary")
}

/// A file in a form, as requests accept it.
fn file(schema: &Value) -> Value {
    let about =
        markup::to_plain_text(schema.member("description").as_str().unwrap_or_default(), MAX_DESCRIPTION_LEN);
    json!({
        "type": "object",
        "description": format!("{about} A file: its name, and its text as content or its bytes as base64.").trim(),
        "properties": {
            "filename": {"type": "string"},
            "content": {"type": "string"},
            "base64": {"type": "string"},
            "content_type": {"type": "string"},
        },
    })
}

#[cfg(test)]
mod tests;
