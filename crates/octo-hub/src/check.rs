//! Arguments held against the tool's schema, with an answer that says how to mend them.

use crate::item::{Checker, Entry};
use crate::nearest::nearest;
use jsonschema::error::ValidationErrorKind;
use octo_model::{Json, Op, ToolError};
use serde_json::{Map, Value};

/// An operation in the tool's own words.
pub struct Checked {
    pub op: Op,
    /// Members of the reply that the caller does not want.
    pub emptied: Vec<String>,
}

/// Checks the arguments of a call as the caller's profile describes them, then as the tool does.
pub fn check(entry: &Entry, mut op: Op) -> Result<Checked, ToolError> {
    let mut emptied = Vec::new();
    if let Some(recast) = &entry.recast {
        op = hold(entry, recast.input(), op)?;
        let outer = op.params.get("arguments").and_then(|json| json.to().ok()).unwrap_or_default();
        let inner;
        (inner, emptied) = recast.arguments(outer);
        op.params.set("arguments", Json::from(Value::Object(inner)));
    }
    Ok(Checked { op: hold(entry, entry.item.input(), op)?, emptied })
}

/// Holds the arguments against a schema and drops nulls that stand for absent parameters of native tools.
fn hold(entry: &Entry, checker: Option<&Checker>, mut op: Op) -> Result<Op, ToolError> {
    let Some(checker) = checker else {
        return Ok(op);
    };
    let mut arguments: Value = match op.params.get("arguments") {
        Some(json) => {
            json.to().map_err(|error| ToolError::invalid(format!("The arguments are unusable: {error}.")))?
        }
        None => Value::Object(Map::new()),
    };
    if !arguments.is_object() {
        return Err(
            ToolError::invalid("The arguments must be a JSON object.").hint(parameters(&checker.schema))
        );
    }
    if entry.item.vouched && drop_nulls(&mut arguments, &checker.schema) {
        op.params.set("arguments", Json::from(arguments.clone()));
    }
    if checker.validator.is_valid(&arguments) { Ok(op) } else { Err(misfit(checker, &arguments)) }
}

fn drop_nulls(arguments: &mut Value, schema: &Value) -> bool {
    let Value::Object(members) = arguments else {
        return false;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let before = members.len();
    members.retain(|key, value| {
        !value.is_null() || required.is_some_and(|names| names.iter().any(|name| name == key.as_str()))
    });
    members.len() != before
}

fn misfit(checker: &Checker, arguments: &Value) -> ToolError {
    if let Some((unknown, hint)) = unknown_parameter(&checker.schema, arguments) {
        return ToolError::invalid(format!("There is no parameter `{unknown}`.")).hint(hint);
    }
    let errors: Vec<String> = checker
        .validator
        .iter_errors(arguments)
        .take(3)
        .map(|error| {
            let at = error.instance_path().to_string();
            let text = match error.kind() {
                ValidationErrorKind::Enum { options } => one_of(error.instance(), options),
                _ => shortened(&error.to_string()),
            };
            if at.is_empty() { text } else { format!("{}: {text}", at.trim_start_matches('/')) }
        })
        .collect();
    ToolError::invalid(format!("The arguments do not fit: {}.", errors.join("; ")))
        .hint(parameters(&checker.schema))
}

/// With every value that is allowed, so that the next try can be right.
fn one_of(given: &Value, options: &Value) -> String {
    let options: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
    shortened(&format!("{given} is not one of {}", options.join(", ")))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn unknown_parameter(schema: &Value, arguments: &Value) -> Option<(String, String)> {
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return None;
    }
    let known = schema.get("properties").and_then(Value::as_object)?;
    let unknown = arguments.as_object()?.keys().find(|key| !known.contains_key(*key))?;
    let hint = match nearest(unknown, known.keys().map(String::as_str)) {
        Some(close) => format!("Did you mean `{close}`? {}", parameters(schema)),
        None => parameters(schema),
    };
    Some((unknown.clone(), hint))
}

fn parameters(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let names: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .map(|name| {
            if required.iter().any(|need| need == name.as_str()) {
                format!("{name} (required)")
            } else {
                name.clone()
            }
        })
        .collect();
    if names.is_empty() {
        "It takes no parameters.".to_owned()
    } else {
        format!("Its parameters: {}.", names.join(", "))
    }
}
