//! Validation of arguments against the tool's schema, with errors that tell how to fix them.

use crate::catalogue::item::Entry;
use crate::pipeline::call_request::timeout_error;
use crate::pipeline::coerce::{Coercions, coerce};
use crate::pipeline::compiled_schema::{CompiledSchema, Validity};
use jsonschema::error::ValidationErrorKind;
use octo_admission::{FairSlots, QueueLimits, SlotLimits};
use octo_model::nearest;
use octo_model::{Json, JsonObject, Operation, Principal, ToolError};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// An operation with the tool's own parameter names.
pub struct ValidatedCall {
    pub op: Operation,
    /// Members of the reply to empty.
    pub blank_fields: Vec<String>,
    /// Changes made so that the arguments are valid.
    pub coercions: Coercions,
}

/// Maximum bytes of arguments that are checked on the calling thread.
const MAX_INLINE_BYTES: usize = 16 << 10;
/// Maximum number of large arguments parsed at the same time: parsed values need many times the memory of
/// their text.
const MAX_CONCURRENT_CHECKS: usize = 2;

/// How long a check waits for its turn. Arguments wait within the timeout of their call; a reply is not shed in practice,
/// because the effects of its call have happened.
const MAX_TURN_WAIT: Duration = Duration::from_secs(3600);

/// Parses and checks large values off the runtime's threads. One caller has one check at a time.
pub struct ArgumentValidator(Arc<FairSlots>);

impl Default for ArgumentValidator {
    fn default() -> Self {
        Self(FairSlots::new(
            "large_values",
            SlotLimits {
                slots: MAX_CONCURRENT_CHECKS,
                // A tenant may use both, and a caller one.
                tenant_factor: 2,
                caller_factor: 1,
                // Each is part of a running call.
                queue: QueueLimits::UNLIMITED,
            },
        ))
    }
}

impl ArgumentValidator {
    /// Validates the arguments of a call. Small and cheap checks run on the calling thread.
    pub async fn validate(
        &self,
        who: &Principal,
        entry: &Entry,
        op: &Operation,
        allowed: Duration,
    ) -> Result<ValidatedCall, ToolError> {
        let size = op.params.get("arguments").map_or(0, |json| json.bytes().len());
        if size <= MAX_INLINE_BYTES && has_compiled_schemas(entry) {
            match validate_arguments(entry, op.clone(), CheckBudget::Inline) {
                Err(CheckError::OverBudget) => {}
                Err(CheckError::Invalid(error)) => return Err(error),
                Ok(checked) => return Ok(checked),
            }
        }
        let (entry, op) = (entry.clone(), op.clone());
        let done = self.run_blocking(who, move || match validate_arguments(&entry, op, CheckBudget::Full) {
            Ok(checked) => Ok(checked),
            Err(CheckError::Invalid(error)) => Err(error),
            Err(CheckError::OverBudget) => Err(ToolError::internal("a full check exceeded its budget")),
        });
        tokio::time::timeout(allowed, done).await.map_err(|_| timeout_error(allowed))?
    }

    /// Runs `work` on a blocking thread, in turn with other callers.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        who: &Principal,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let turn = self.0.acquire(who, Instant::now() + MAX_TURN_WAIT).await;
        let turn = turn.map_err(|reason| reason.error("The hub"))?;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        work.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

/// Budget of a check.
#[derive(Clone, Copy)]
enum CheckBudget {
    Inline,
    Full,
}

/// Why a check ended early.
enum CheckError {
    Invalid(ToolError),
    /// The inline budget was exceeded.
    OverBudget,
}

impl From<ToolError> for CheckError {
    fn from(error: ToolError) -> Self {
        Self::Invalid(error)
    }
}

/// Returns whether the schemas of a tool are compiled already or native.
fn has_compiled_schemas(entry: &Entry) -> bool {
    entry.item.is_native()
        || (entry.item.has_compiled_input()
            && entry.tool_override.as_ref().is_none_or(|recast| recast.is_ready()))
}

/// Validates the arguments against the profile's schema, then against the tool's.
fn validate_arguments(
    entry: &Entry,
    mut op: Operation,
    pace: CheckBudget,
) -> Result<ValidatedCall, CheckError> {
    let (mut emptied, mut changes) = (Vec::new(), Coercions::default());
    if let Some(recast) = &entry.tool_override {
        op = validate_against(entry, recast.input(), op, pace, &mut changes)?;
        let outer = op.params.get("arguments").and_then(|json| json.to().ok()).unwrap_or_default();
        let inner;
        (inner, emptied) = recast.tool_arguments(outer)?;
        op.params.set("arguments", Json::from(Value::Object(inner)));
    }
    let op = validate_against(entry, entry.item.input(), op, pace, &mut changes)?;
    Ok(ValidatedCall { op, blank_fields: emptied, coercions: changes })
}

/// Validates arguments against a schema and drops nulls for absent parameters of native tools. Invalid
/// arguments are coerced where there is one reading.
fn validate_against(
    entry: &Entry,
    checker: Option<&CompiledSchema>,
    mut op: Operation,
    pace: CheckBudget,
    changes: &mut Coercions,
) -> Result<Operation, CheckError> {
    let Some(checker) = checker else {
        return Ok(op);
    };
    let mut arguments: Value = match op.params.get("arguments") {
        Some(json) => {
            json.to().map_err(|error| ToolError::invalid(format!("Invalid arguments: {error}.")))?
        }
        None => Value::Object(Map::new()),
    };
    if !arguments.is_object() {
        let error = ToolError::invalid("The arguments must be a JSON object.");
        return Err(error.hint(parameter_hint(&checker.schema)).into());
    }
    if entry.item.is_native() && drop_nulls(&mut arguments, &checker.schema) {
        op.params.set("arguments", Json::from(arguments.clone()));
    }
    let verdict = |arguments: &Value| match pace {
        CheckBudget::Inline => checker.check_inline(arguments),
        CheckBudget::Full => checker.check(arguments, || entry.item.target()),
    };
    match (verdict(&arguments), pace) {
        (Validity::Valid, _) => return Ok(op),
        (Validity::Invalid, _) => {}
        (Validity::Unchecked, CheckBudget::Inline) => return Err(CheckError::OverBudget),
        // Values that could not be checked are left to the server.
        (Validity::Unchecked, CheckBudget::Full) => return Ok(op),
    }
    let before = arguments.clone();
    let coerced = coerce(&mut arguments, &checker.schema, entry.item.is_native())?;
    match (verdict(&arguments), pace) {
        (Validity::Valid, _) if !coerced.is_empty() => {}
        (Validity::Unchecked, CheckBudget::Inline) => return Err(CheckError::OverBudget),
        _ => return Err(schema_error(checker, &arguments).into()),
    }
    op.params.set("arguments", merge_changes(&op.params.object("arguments"), &before, &arguments)?);
    changes.append(coerced);
    Ok(op)
}

/// Applies the changes and keeps everything else as received: parsed values do not represent every number
/// exactly.
fn merge_changes(given: &JsonObject, before: &Value, after: &Value) -> Result<Json, ToolError> {
    let after = after.as_object().into_iter().flatten();
    let written = after.map(|(name, value)| match given.get(name) {
        Some(same) if before.get(name) == Some(value) => (name.clone(), same.clone()),
        _ => (name.clone(), Json::of(value)),
    });
    let arguments = written.collect::<JsonObject>().to_json();
    // Strings parsed as JSON may not nest deeper than a message may.
    Json::parse(arguments.bytes().clone())
        .map_err(|fault| ToolError::invalid(format!("Invalid arguments: {fault}.")))
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

fn schema_error(checker: &CompiledSchema, arguments: &Value) -> ToolError {
    if let Some((unknown, hint)) = unknown_parameter(&checker.schema, arguments) {
        return ToolError::invalid(format!("Unknown parameter `{}`.", truncate(&unknown))).hint(hint);
    }
    let errors = checker.errors(arguments, |error| {
        let at = truncate(error.instance_path().as_str());
        let text = match error.kind() {
            ValidationErrorKind::Enum { options } => enum_error(error.instance(), options),
            _ => truncate(&error.to_string()),
        };
        if at.is_empty() { text } else { format!("{}: {text}", at.trim_start_matches('/')) }
    });
    let message = match errors.as_slice() {
        [] => "The arguments do not match the tool's schema.".to_owned(),
        errors => format!("Invalid arguments: {}.", errors.join("; ")),
    };
    ToolError::invalid(message).hint(parameter_hint(&checker.schema))
}

/// Lists every allowed value, so that the next attempt can succeed.
fn enum_error(given: &Value, options: &Value) -> String {
    let options: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
    truncate(&format!("{given} is not one of {}", options.join(", ")))
}

fn truncate(text: &str) -> String {
    truncate_to(text, 300)
}

fn truncate_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
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
        Some(close) => format!("Did you mean `{close}`? {}", parameter_hint(schema)),
        None => parameter_hint(schema),
    };
    Some((unknown.clone(), hint))
}

fn parameter_hint(schema: &Value) -> String {
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
        format!("Its parameters: {}.", truncate_to(&names.join(", "), 2_000))
    }
}
