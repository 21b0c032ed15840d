//! Parameters of a declared tool: the schema, and the values of one call.

use super::template_text::{Placeholder, TemplateText};
use super::tool_manifest::{Parameter, Type};
use crate::yaml_files::OrderedMap;
use octo_model::{Json, TemplatePart, ToolError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Default limits.
const DEFAULT_MAX_LENGTH: u64 = 10_000;
const DEFAULT_MAX_ITEMS: u64 = 100;

/// Values from the hub's environment, by name.
pub type Variables = BTreeMap<String, String>;

pub struct Parameters {
    all: Vec<(String, Parameter)>,
    pub schema: Value,
}

impl Parameters {
    pub fn new(written: OrderedMap<Parameter>) -> Result<Self, String> {
        let mut properties = Map::new();
        for (name, parameter) in &written.0 {
            if !matches!(TemplateText::parse(&format!("{{{{{name}}}}}")), Ok(text) if text.single_parameter().is_some())
            {
                return Err(format!("invalid parameter name `{name}`"));
            }
            if parameter.required && parameter.default.is_some() {
                return Err(format!("`{name}` cannot be required and have a default"));
            }
            properties.insert(name.clone(), property_schema(name, parameter)?);
        }
        let required: Vec<&str> =
            written.0.iter().filter(|(_, one)| one.required).map(|(name, _)| name.as_str()).collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        jsonschema::options().build(&schema).map_err(|error| format!("invalid parameter schema: {error}"))?;
        let parameters = Self { all: written.0, schema };
        for (name, parameter) in &parameters.all {
            if let Some(default) = &parameter.default {
                parameters.check_default(name, default)?;
            }
        }
        Ok(parameters)
    }

    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.all.iter().find(|(known, _)| known == name).map(|(_, parameter)| parameter)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(name, _)| name.as_str())
    }

    fn check_default(&self, name: &str, default: &Value) -> Result<(), String> {
        let own =
            self.schema.pointer("/properties").and_then(|all| all.get(name)).cloned().unwrap_or_default();
        let validator = jsonschema::options().build(&own).map_err(|error| error.to_string())?;
        if validator.is_valid(default) {
            Ok(())
        } else {
            Err(format!("the default of `{name}` does not match its schema"))
        }
    }

    /// The values of one call, including defaults. The hub has validated them against the schema; what a
    /// schema cannot express is checked here.
    pub fn values(&self, arguments: Option<&Json>) -> Result<Values<'_>, ToolError> {
        let mut given: Map<String, Value> = match arguments {
            Some(json) => {
                json.to().map_err(|error| ToolError::invalid(format!("Invalid arguments: {error}.")))?
            }
            None => Map::new(),
        };
        for (name, parameter) in &self.all {
            if let (false, Some(default)) = (given.contains_key(name), &parameter.default) {
                given.insert(name.clone(), default.clone());
            }
            if let Some(value) = given.get(name) {
                refuse_control_chars(name, value, parameter.multiline)?;
            } else if parameter.required {
                return Err(ToolError::invalid(format!("The parameter `{name}` is missing."))
                    .hint("Give it a value."));
            }
        }
        Ok(Values { parameters: self, arguments: given })
    }
}

fn property_schema(name: &str, parameter: &Parameter) -> Result<Value, String> {
    let kind = match parameter.kind {
        Type::String | Type::Path => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::Array => "array",
    };
    let mut schema = json!({"type": kind, "description": parameter.description});
    let mut set = |key: &str, value: Value| {
        if let Value::Object(schema) = &mut schema {
            schema.insert(key.to_owned(), value);
        }
    };
    let textual = matches!(parameter.kind, Type::String | Type::Path | Type::Array);
    if !textual && (parameter.pattern.is_some() || parameter.max_length.is_some()) {
        return Err(format!("`pattern` and `max_length` do not apply to `{name}`, which is not a string"));
    }
    let mut text = json!({"maxLength": parameter.max_length.unwrap_or(DEFAULT_MAX_LENGTH)});
    if let (Some(pattern), Value::Object(text)) = (&parameter.pattern, &mut text) {
        text.insert("pattern".to_owned(), json!(format!("^(?:{pattern})$")));
    }
    let (min, max) = (parameter.min.clone().map(Value::Number), parameter.max.clone().map(Value::Number));
    match parameter.kind {
        Type::Array => {
            if let Value::Object(text) = &mut text {
                text.insert("type".to_owned(), json!("string"));
                if !parameter.choices.is_empty() {
                    text.insert("enum".to_owned(), json!(parameter.choices));
                }
            }
            set("items", text);
            set("maxItems", max.unwrap_or_else(|| json!(DEFAULT_MAX_ITEMS)));
            if let Some(min) = min {
                set("minItems", min);
            }
        }
        Type::String | Type::Path => {
            if let Value::Object(text) = text {
                text.into_iter().for_each(|(key, value)| set(&key, value));
            }
            if let Some(min) = min {
                set("minLength", min);
            }
            if let Some(max) = max {
                set("maxLength", max);
            }
        }
        Type::Integer | Type::Number => {
            if let Some(min) = min {
                set("minimum", min);
            }
            if let Some(max) = max {
                set("maximum", max);
            }
        }
        Type::Boolean => {}
    }
    if !parameter.choices.is_empty() && parameter.kind != Type::Array {
        set("enum", json!(parameter.choices));
    }
    if let Some(default) = &parameter.default {
        set("default", default.clone());
    }
    Ok(schema)
}

/// Rejects control characters, except line breaks and tabs in multiline text.
fn refuse_control_chars(name: &str, value: &Value, multiline: bool) -> Result<(), ToolError> {
    let allowed = |c: char| !c.is_control() || (multiline && matches!(c, '\n' | '\r' | '\t'));
    let fine = match value {
        Value::String(text) => text.chars().all(allowed),
        Value::Array(items) => {
            return items.iter().try_for_each(|item| refuse_control_chars(name, item, multiline));
        }
        _ => true,
    };
    if fine {
        return Ok(());
    }
    Err(ToolError::invalid(format!("The parameter `{name}` contains a control character."))
        .hint(if multiline { "Only line breaks and tabs are allowed." } else { "Pass a single line." }))
}

/// The values of one call.
pub struct Values<'a> {
    parameters: &'a Parameters,
    arguments: Map<String, Value>,
}

impl Values<'_> {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.arguments.get(name)
    }

    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.get(name)
    }

    pub fn set(&mut self, name: &str, value: Value) {
        self.arguments.insert(name.to_owned(), value);
    }

    /// Returns whether it was given and is not false.
    pub fn is_set(&self, name: &str) -> bool {
        match self.arguments.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        }
    }

    /// Fills in the text; `None` if one of its parameters was not given.
    pub fn fill(&self, text: &TemplateText, variables: &Variables) -> Result<Option<String>, ToolError> {
        let mut filled = String::new();
        for piece in &text.0 {
            match piece {
                TemplatePart::Literal(literal) => filled.push_str(literal),
                TemplatePart::Placeholder(Placeholder::Variable(name)) => {
                    filled.push_str(variables.get(name).map_or("", String::as_str))
                }
                TemplatePart::Placeholder(Placeholder::Parameter(name)) => match self.arguments.get(name) {
                    None => return Ok(None),
                    Some(value) => filled.push_str(&to_plain_text(name, value)?),
                },
            }
        }
        Ok(Some(filled))
    }
}

/// A single value as text.
pub fn to_plain_text(name: &str, value: &Value) -> Result<String, ToolError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(ToolError::invalid(format!("The parameter `{name}` must be a single value here."))
            .hint("Pass a string, a number or a boolean.")),
    }
}
