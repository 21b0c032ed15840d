//! A workflow held against the published schema. What the schema says is what is accepted.

use crate::problem::Problem;
use crate::source::{Source, escaped};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use octo_model::nearest;
use serde_json::Value;
use std::sync::OnceLock;

/// The published schema of a workflow, version 1.
pub const SCHEMA: &str = include_str!("../schema/workflow.json");

const ACTIONS: &str = "A step has exactly one of `tool`, `llm`, `steps`, `parallel` and `fail`.";

struct Shape {
    schema: Value,
    validator: Validator,
}

fn shape() -> Option<&'static Shape> {
    static SHAPE: OnceLock<Option<Shape>> = OnceLock::new();
    let made = SHAPE.get_or_init(|| {
        let schema: Value = serde_json::from_str(SCHEMA).ok()?;
        let validator = jsonschema::options().build(&schema).ok()?;
        Some(Shape { schema, validator })
    });
    made.as_ref()
}

/// Everything that does not fit, in the order of the lines.
pub fn check(source: &Source) -> Vec<Problem> {
    let Some(shape) = shape() else {
        return vec![Problem::at_root("The schema of workflows cannot be used.")];
    };
    let errors = shape.validator.iter_errors(&source.value).flat_map(|error| shape.told(source, &error));
    let mut problems: Vec<Problem> = errors.collect();
    problems.sort_by_key(|problem| problem.mark);
    problems.dedup();
    problems
}

impl Shape {
    fn told(&self, source: &Source, error: &ValidationError<'_>) -> Vec<Problem> {
        let pointer = error.instance_path().to_string();
        if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            let known = self.names_beside(error);
            let told = |name: &String| {
                let close = nearest(name, known.iter().map(String::as_str));
                let hint = match close {
                    Some(close) => format!("Did you mean `{close}`?"),
                    None => format!("Known here: {}.", known.join(", ")),
                };
                let pointer = format!("{pointer}/{}", escaped(name));
                Problem {
                    mark: source.mark(&pointer),
                    pointer,
                    message: format!("There is no `{name}` here."),
                    hint: Some(hint),
                }
            };
            return unexpected.iter().map(told).collect();
        }
        let (message, hint) = said(error);
        vec![Problem { mark: source.mark(&pointer), pointer, message, hint }]
    }

    /// The names that an object may have, from the schema that refused one.
    fn names_beside(&self, error: &ValidationError<'_>) -> Vec<String> {
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

fn said(error: &ValidationError<'_>) -> (String, Option<String>) {
    let short = |value: &Value| {
        let text: String = value.to_string().chars().take(60).collect();
        text
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            (format!("`{name}` is missing."), None)
        }
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::OneOfMultipleValid { .. } => {
            (ACTIONS.to_owned(), None)
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            (format!("{} is no {wanted}.", short(error.instance())), None)
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
            let hint = "A name has letters, digits, `_` and `-`, at most 64, and begins with a letter.";
            (format!("{name} is no name."), Some(hint.to_owned()))
        }
        _ => (error.masked_with("What is here").to_string(), None),
    }
}
