//! Validation of a workflow against the published schema, which defines what is accepted.

use crate::diagnostic::Diagnostic;
use crate::spanned_yaml::{SpannedYaml, escape_pointer};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use octo_model::{abbreviate, nearest};
use serde_json::Value;
use std::sync::OnceLock;

/// The published schema of a workflow, version 1.
pub const SCHEMA: &str = include_str!("../schema/workflow.json");

const ONE_ACTION_MESSAGE: &str =
    "A step must have exactly one of `tool`, `llm`, `steps`, `parallel` and `fail`.";

struct WorkflowSchema {
    schema: Value,
    validator: Validator,
}

fn workflow_schema() -> Option<&'static WorkflowSchema> {
    static COMPILED: OnceLock<Option<WorkflowSchema>> = OnceLock::new();
    let made = COMPILED.get_or_init(|| {
        let schema: Value = serde_json::from_str(SCHEMA).ok()?;
        let validator = jsonschema::options().build(&schema).ok()?;
        Some(WorkflowSchema { schema, validator })
    });
    made.as_ref()
}

/// All violations, in line order.
pub fn check(source: &SpannedYaml) -> Vec<Diagnostic> {
    let Some(shape) = workflow_schema() else {
        return vec![Diagnostic::at_root("The workflow schema is invalid.")];
    };
    let errors =
        shape.validator.iter_errors(&source.value).flat_map(|error| shape.diagnostics(source, &error));
    let mut problems: Vec<Diagnostic> = errors.collect();
    problems.sort_by_key(|problem| problem.position);
    problems.dedup();
    problems
}

impl WorkflowSchema {
    fn diagnostics(&self, source: &SpannedYaml, error: &ValidationError<'_>) -> Vec<Diagnostic> {
        let pointer = error.instance_path().to_string();
        if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            let known = self.known_properties(error);
            let told = |name: &String| {
                let close = nearest(name, known.iter().map(String::as_str));
                let hint = match close {
                    Some(close) => format!("Did you mean `{close}`?"),
                    None => format!("Known here: {}.", known.join(", ")),
                };
                let pointer = format!("{pointer}/{}", escape_pointer(name));
                Diagnostic {
                    position: source.position(&pointer),
                    pointer,
                    message: format!("Unknown key `{name}`."),
                    hint: Some(hint),
                }
            };
            return unexpected.iter().map(told).collect();
        }
        let (message, hint) = describe_error(error);
        vec![Diagnostic { position: source.position(&pointer), pointer, message, hint }]
    }

    /// The allowed names of an object, from the schema that rejected one.
    fn known_properties(&self, error: &ValidationError<'_>) -> Vec<String> {
        let place = error.evaluation_path().to_string();
        let object = place.strip_suffix("/additionalProperties").unwrap_or_default();
        let mut found = Some(&self.schema);
        for part in object.split('/').skip(1) {
            found = found.and_then(|schema| match part {
                "$ref" => schema
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|name| self.schema.pointer(name.trim_start_matches('#'))),
                name => match schema {
                    Value::Array(list) => name.parse::<usize>().ok().and_then(|at| list.get(at)),
                    _ => schema.get(name),
                },
            });
        }
        let names = found.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        names.map(|names| names.keys().cloned().collect()).unwrap_or_default()
    }
}

fn describe_error(error: &ValidationError<'_>) -> (String, Option<String>) {
    let short = |value: &Value| abbreviate(&value.to_string(), 60).into_owned();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            (format!("`{name}` is missing."), None)
        }
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::OneOfMultipleValid { .. } => {
            (ONE_ACTION_MESSAGE.to_owned(), None)
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            (format!("{} is not of type {wanted}.", short(error.instance())), None)
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(Value::to_string).collect();
            (format!("{} is not one of {}.", short(error.instance()), options.join(", ")), None)
        }
        ValidationErrorKind::Constant { expected_value } => {
            (format!("{} is not {expected_value}.", short(error.instance())), None)
        }
        ValidationErrorKind::Pattern { .. } | ValidationErrorKind::PropertyNames { .. } => {
            let name = match error.kind() {
                ValidationErrorKind::PropertyNames { error } => short(error.instance()),
                _ => short(error.instance()),
            };
            let hint =
                "A name consists of at most 64 letters, digits, `_` and `-`, and starts with a letter.";
            (format!("{name} is not a valid name."), Some(hint.to_owned()))
        }
        _ => (error.masked_with("What is here").to_string(), None),
    }
}
