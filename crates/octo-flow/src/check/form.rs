//! What is known of a value before it is there.

use crate::expr::Part;
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum Form {
    /// What a JSON Schema says.
    Schema { schema: Value, root: Arc<Value>, whole: bool },
    /// An object of which every member is known.
    Members(Vec<(String, Option<Form>)>),
    /// A list, and what its items are.
    List(Option<Box<Form>>),
}

/// Where a part of a path leads.
pub enum Leads {
    To(Form),
    /// Nothing is known of it.
    Somewhere,
    /// To nothing; these are the names that there are.
    Nowhere(Vec<String>),
}

impl Form {
    /// `whole` says that the schema names every member that there is.
    pub fn of(schema: Value, whole: bool) -> Self {
        let root = Arc::new(schema.clone());
        Self::Schema { schema, root, whole }
    }

    /// What is common to some values; nothing but their types is looked at.
    pub fn of_all(values: &[Value]) -> Option<Self> {
        let mut kinds: Vec<&str> = values.iter().map(kind_of).collect();
        kinds.sort_unstable();
        kinds.dedup();
        match kinds.as_slice() {
            [] | ["object"] | ["array"] => None,
            kinds => Some(Self::of(serde_json::json!({"type": kinds}), true)),
        }
    }

    /// Its JSON types, where they are known.
    pub fn kinds(&self) -> Option<Vec<String>> {
        match self {
            Self::Schema { schema, root, .. } => kinds(resolved(schema, root)?),
            Self::Members(_) => Some(vec!["object".to_owned()]),
            Self::List(_) => Some(vec!["array".to_owned()]),
        }
    }

    pub fn item(&self) -> Option<Form> {
        match self {
            Self::List(item) => item.as_deref().cloned(),
            Self::Schema { schema, root, .. } => resolved(schema, root)?
                .get("items")
                .filter(|items| items.is_object())
                .map(|items| self.beside(items)),
            Self::Members(_) => None,
        }
    }

    /// Another part of the same schema.
    fn beside(&self, part: &Value) -> Form {
        match self {
            Self::Schema { root, whole, .. } => {
                Self::Schema { schema: part.clone(), root: Arc::clone(root), whole: *whole }
            }
            other => other.clone(),
        }
    }

    pub fn lead(&self, part: &Part) -> Leads {
        let kinds = self.kinds();
        let may_be = |kind: &str| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known == kind));
        match part {
            Part::Each | Part::At(_) if !may_be("array") => Leads::Nowhere(Vec::new()),
            Part::Each | Part::At(_) => self.item().map_or(Leads::Somewhere, Leads::To),
            Part::Name(_) if !may_be("object") => Leads::Nowhere(Vec::new()),
            Part::Name(name) => self.member(name),
        }
    }

    fn member(&self, name: &str) -> Leads {
        match self {
            Self::Members(members) => match members.iter().find(|(known, _)| known == name) {
                Some((_, Some(form))) => Leads::To(form.clone()),
                Some((_, None)) => Leads::Somewhere,
                None => Leads::Nowhere(members.iter().map(|(name, _)| name.clone()).collect()),
            },
            Self::List(_) => Leads::Nowhere(Vec::new()),
            Self::Schema { schema, root, whole } => {
                let Some(schema) = resolved(schema, root) else { return Leads::Somewhere };
                let Some(known) = schema.get("properties").and_then(Value::as_object) else {
                    return Leads::Somewhere;
                };
                if let Some(member) = known.get(name) {
                    return if member.is_object() {
                        Leads::To(self.beside(member))
                    } else {
                        Leads::Somewhere
                    };
                }
                let open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
                    || schema.get("patternProperties").is_some();
                let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
                if closed || (*whole && !open && !known.is_empty() && !is_union(schema)) {
                    Leads::Nowhere(known.keys().cloned().collect())
                } else {
                    Leads::Somewhere
                }
            }
        }
    }
}

fn is_union(schema: &Value) -> bool {
    ["anyOf", "oneOf", "allOf"].iter().any(|word| schema.get(word).is_some())
}

/// What a reference within the same schema points at; nothing when it points elsewhere or in circles.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..16 {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some(name) => schema = root.pointer(name.strip_prefix('#')?)?,
        }
    }
    None
}

/// The types that a schema allows; nothing when it does not say.
pub fn kinds(schema: &Value) -> Option<Vec<String>> {
    let of = |value: &Value| value.as_str().map(str::to_owned);
    match schema.get("type") {
        Some(Value::String(kind)) => return Some(vec![kind.clone()]),
        Some(Value::Array(kinds)) => return kinds.iter().map(of).collect(),
        _ => {}
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let mut found: Vec<String> = choices.iter().map(|choice| kind_of(choice).to_owned()).collect();
        found.dedup();
        return Some(found);
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let all: Option<Vec<Vec<String>>> = choices.iter().map(kinds).collect();
    all.map(|all| all.concat())
}

pub fn kind_of(value: &Value) -> &'static str {
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

/// Whether a value of some of these types can be one of those. A number may happen to be whole.
pub fn fits(given: &[String], wanted: &[String]) -> bool {
    let numeric = |kind: &str| matches!(kind, "integer" | "number");
    given.iter().any(|given| {
        given == "null" || wanted.iter().any(|wanted| given == wanted || (numeric(given) && numeric(wanted)))
    })
}
