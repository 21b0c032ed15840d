//! Static types of expression values.

use crate::expr::PathPart;
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum ValueType {
    /// From a JSON Schema.
    Schema { schema: Value, root: Arc<Value>, exhaustive: bool },
    /// An object whose members are all known.
    Object(Vec<(String, Option<ValueType>)>),
    /// A list, and the type of its items.
    List(Option<Box<ValueType>>),
}

/// Result of looking up a part of a path.
pub enum Lookup {
    Type(ValueType),
    /// Nothing is known about it.
    Unknown,
    /// It does not exist; these names do.
    Missing(Vec<String>),
}

impl ValueType {
    /// `exhaustive`: whether the schema lists all members.
    pub fn from_schema(schema: Value, exhaustive: bool) -> Self {
        let root = Arc::new(schema.clone());
        Self::Schema { schema, root, exhaustive }
    }

    /// The common type of some values.
    pub fn of_literals(values: &[Value]) -> Option<Self> {
        let mut kinds: Vec<&str> = values.iter().map(json_type_of).collect();
        kinds.sort_unstable();
        kinds.dedup();
        match kinds.as_slice() {
            [] | ["object"] | ["array"] => None,
            kinds => Some(Self::from_schema(serde_json::json!({"type": kinds}), true)),
        }
    }

    /// Its JSON types, if known.
    pub fn json_types(&self) -> Option<Vec<String>> {
        match self {
            Self::Schema { schema, root, .. } => schema_types(resolve_ref(schema, root)?),
            Self::Object(_) => Some(vec!["object".to_owned()]),
            Self::List(_) => Some(vec!["array".to_owned()]),
        }
    }

    pub fn item(&self) -> Option<ValueType> {
        match self {
            Self::List(item) => item.as_deref().cloned(),
            Self::Schema { schema, root, .. } => resolve_ref(schema, root)?
                .get("items")
                .filter(|items| items.is_object())
                .map(|items| self.subschema(items)),
            Self::Object(_) => None,
        }
    }

    /// Another part of the same schema.
    fn subschema(&self, part: &Value) -> ValueType {
        match self {
            Self::Schema { root, exhaustive, .. } => {
                Self::Schema { schema: part.clone(), root: Arc::clone(root), exhaustive: *exhaustive }
            }
            other => other.clone(),
        }
    }

    pub fn lookup(&self, part: &PathPart) -> Lookup {
        let kinds = self.json_types();
        let may_be = |kind: &str| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known == kind));
        match part {
            PathPart::Wildcard | PathPart::Index(_) if !may_be("array") => Lookup::Missing(Vec::new()),
            PathPart::Wildcard | PathPart::Index(_) => self.item().map_or(Lookup::Unknown, Lookup::Type),
            PathPart::Name(_) if !may_be("object") => Lookup::Missing(Vec::new()),
            PathPart::Name(name) => self.member(name),
        }
    }

    fn member(&self, name: &str) -> Lookup {
        match self {
            Self::Object(members) => match members.iter().find(|(known, _)| known == name) {
                Some((_, Some(form))) => Lookup::Type(form.clone()),
                Some((_, None)) => Lookup::Unknown,
                None => Lookup::Missing(members.iter().map(|(name, _)| name.clone()).collect()),
            },
            Self::List(_) => Lookup::Missing(Vec::new()),
            Self::Schema { schema, root, exhaustive } => {
                let Some(schema) = resolve_ref(schema, root) else { return Lookup::Unknown };
                let Some(known) = schema.get("properties").and_then(Value::as_object) else {
                    return Lookup::Unknown;
                };
                if let Some(member) = known.get(name) {
                    return if member.is_object() {
                        Lookup::Type(self.subschema(member))
                    } else {
                        Lookup::Unknown
                    };
                }
                let open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
                    || schema.get("patternProperties").is_some();
                let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
                if closed || (*exhaustive && !open && !known.is_empty() && !is_union(schema)) {
                    Lookup::Missing(known.keys().cloned().collect())
                } else {
                    Lookup::Unknown
                }
            }
        }
    }
}

fn is_union(schema: &Value) -> bool {
    ["anyOf", "oneOf", "allOf"].iter().any(|word| schema.get(word).is_some())
}

/// Resolves a reference within the same schema; `None` if it points elsewhere or is circular.
fn resolve_ref<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..16 {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some(name) => schema = root.pointer(name.strip_prefix('#')?)?,
        }
    }
    None
}

/// The types that a schema allows; `None` if it does not specify them.
pub fn schema_types(schema: &Value) -> Option<Vec<String>> {
    let of = |value: &Value| value.as_str().map(str::to_owned);
    match schema.get("type") {
        Some(Value::String(kind)) => return Some(vec![kind.clone()]),
        Some(Value::Array(kinds)) => return kinds.iter().map(of).collect(),
        _ => {}
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let mut found: Vec<String> = choices.iter().map(|choice| json_type_of(choice).to_owned()).collect();
        found.dedup();
        return Some(found);
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let all: Option<Vec<Vec<String>>> = choices.iter().map(schema_types).collect();
    all.map(|all| all.concat())
}

pub fn json_type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether a value of one of the given types can be of a wanted type. A number may be an integer.
pub fn is_assignable(given: &[String], wanted: &[String]) -> bool {
    let numeric = |kind: &str| matches!(kind, "integer" | "number");
    given.iter().any(|given| {
        given == "null" || wanted.iter().any(|wanted| given == wanted || (numeric(given) && numeric(wanted)))
    })
}
