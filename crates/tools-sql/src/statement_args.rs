//! Common to the tools: defaults, limits and durations.

use crate::engine::Statement;
use octo_grants::sql::SqlLimits;
use octo_toolkit::{CallContext, ToolError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Schema of any value: an object, because several clients do not accept `true`.
pub struct AnyJson;

impl JsonSchema for AnyJson {
    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "Any JSON value."})
    }
}

pub fn default_connection() -> String {
    "default".to_owned()
}

pub fn default_max_rows() -> usize {
    100
}

pub fn default_timeout_s() -> u64 {
    30
}

/// Builds a statement within the limits of the operator and the caller's deadline.
pub fn statement(
    sql: String,
    params: Option<Vec<Box<RawValue>>>,
    max_rows: usize,
    timeout_s: u64,
    limits: &SqlLimits,
    cx: &CallContext,
) -> Result<Statement, ToolError> {
    if sql.trim().is_empty() {
        return Err(ToolError::invalid("`sql` is empty.").hint("Pass one SQL statement."));
    }
    if sql.contains('\0') {
        return Err(
            ToolError::invalid("`sql` has a NUL character.").hint("Pass it as a parameter of type bytea.")
        );
    }
    if timeout_s == 0 {
        return Err(ToolError::invalid("`timeout_s` is 0.").hint("Use at least 1 second."));
    }
    let asked = Duration::from_secs(timeout_s);
    Ok(Statement {
        sql,
        params: params.unwrap_or_default(),
        timeout: asked.min(limits.statement_timeout).min(cx.time_left()),
        max_rows: max_rows.min(limits.max_rows),
    })
}

/// Milliseconds with one decimal.
pub fn elapsed_ms(began: Instant) -> f64 {
    (began.elapsed().as_secs_f64() * 10_000.0).round() / 10.0
}
