//! Encodes JSON values as text for the server.

use super::literal::quote;
use super::sql_types::{SqlType, TypeKind};
use octo_toolkit::ToolError;
use serde_json::Value;
use serde_json::value::RawValue;

/// Whether a value can be encoded without knowing its type.
pub fn is_scalar(value: &RawValue) -> bool {
    !value.get().trim_start().starts_with(['[', '{'])
}

/// A scalar: strings unchanged, numbers digit by digit.
pub fn scalar(value: &RawValue) -> Result<Option<String>, ToolError> {
    let text = value.get().trim();
    match text.as_bytes().first() {
        Some(b'"') => reject_nul(serde_json::from_str(text).map_err(ToolError::internal)?).map(Some),
        _ if text == "null" => Ok(None),
        _ => Ok(Some(text.to_owned())),
    }
}

fn reject_nul(text: String) -> Result<String, ToolError> {
    if text.contains('\0') {
        return Err(ToolError::invalid(
            "A parameter has a NUL character, which PostgreSQL text cannot contain.",
        )
        .hint("Pass bytes as \\x… hexadecimal text."));
    }
    Ok(text)
}

/// Encodes any value for a parameter of this type.
pub fn encode_param(value: &RawValue, kind: Option<&SqlType>) -> Result<Option<String>, ToolError> {
    if is_scalar(value) {
        return scalar(value);
    }
    let value: Value = serde_json::from_str(value.get()).map_err(|_| {
        ToolError::invalid("A parameter is nested too deeply.")
            .hint("Pass it as text, with a cast in the statement.")
    })?;
    write(&value, kind.map_or(&TypeKind::Text, |kind| &kind.kind))
}

fn write(value: &Value, kind: &TypeKind) -> Result<Option<String>, ToolError> {
    let text = match (value, kind) {
        (Value::Null, _) => return Ok(None),
        (Value::String(text), _) => reject_nul(text.clone())?,
        (Value::Bool(_) | Value::Number(_), _) => value.to_string(),
        (_, TypeKind::Json) => value.to_string(),
        (Value::Array(items), TypeKind::Array(element, delimiter)) => {
            braces(items, &element.kind, *delimiter)?
        }
        (Value::Object(parts), TypeKind::Array(element, delimiter)) => {
            let values = parts.get("values").and_then(Value::as_array);
            let (Some(bounds), Some(values)) = (parts.get("bounds").and_then(bounds), values) else {
                return Err(misfit("array", "Pass an array, or {\"bounds\": [[2, 3]], \"values\": […]}."));
            };
            format!("{bounds}={}", braces(values, &element.kind, *delimiter)?)
        }
        (Value::Array(items), TypeKind::Vector(_)) => {
            join_parts(items.iter().map(|item| Ok(item.to_string())), " ")?
        }
        (Value::Object(parts), TypeKind::Composite(fields)) => {
            if let Some(other) = parts.keys().find(|key| !fields.iter().any(|(name, _)| name == *key)) {
                return Err(misfit("row", "Use the names of its fields.").detail(other));
            }
            let values =
                fields.iter().map(|(name, kind)| field(parts.get(name).unwrap_or(&Value::Null), &kind.kind));
            format!("({})", join_parts(values, ",")?)
        }
        (Value::Array(items), TypeKind::Composite(fields)) if items.len() == fields.len() => {
            let values = items.iter().zip(fields).map(|(item, (_, kind))| field(item, &kind.kind));
            format!("({})", join_parts(values, ",")?)
        }
        (Value::Array(items), TypeKind::Record) => {
            format!("({})", join_parts(items.iter().map(|item| field(item, &TypeKind::Text)), ",")?)
        }
        (Value::Object(_), TypeKind::Range(element)) => range(value, &element.kind)?,
        (Value::Array(items), TypeKind::Multirange(over)) => {
            let TypeKind::Range(element) = &over.kind else { return Ok(Some(value.to_string())) };
            format!("{{{}}}", join_parts(items.iter().map(|item| range(item, &element.kind)), ",")?)
        }
        (Value::Object(parts), TypeKind::Hstore) => {
            let one = |(key, value): (&String, &Value)| {
                Ok(match write(value, &TypeKind::Text)? {
                    Some(text) => format!("{}=>{}", quote(key), quote(&text)),
                    None => format!("{}=>NULL", quote(key)),
                })
            };
            join_parts(parts.iter().map(one), ", ")?
        }
        (Value::Array(_) | Value::Object(_), _) => value.to_string(),
    };
    Ok(Some(text))
}

fn join_parts(
    parts: impl Iterator<Item = Result<String, ToolError>>,
    with: &str,
) -> Result<String, ToolError> {
    Ok(parts.collect::<Result<Vec<_>, _>>()?.join(with))
}

/// `[2:3]`
fn bounds(value: &Value) -> Option<String> {
    let one = |pair: &Value| {
        let (lower, upper) = (pair.get(0)?.as_i64()?, pair.get(1)?.as_i64()?);
        Some(format!("[{lower}:{upper}]"))
    };
    value.as_array()?.iter().map(one).collect()
}

fn braces(items: &[Value], kind: &TypeKind, delimiter: char) -> Result<String, ToolError> {
    let one = |item: &Value| match (item, kind) {
        // A json value may itself be an array; any other nested array is a dimension.
        (Value::Array(inner), kind)
            if !matches!(
                kind,
                TypeKind::Json | TypeKind::Multirange(_) | TypeKind::Record | TypeKind::Vector(_)
            ) =>
        {
            braces(inner, kind, delimiter)
        }
        _ => Ok(write(item, kind)?.map_or_else(|| "NULL".to_owned(), |text| quote(&text))),
    };
    Ok(format!("{{{}}}", join_parts(items.iter().map(one), &delimiter.to_string())?))
}

/// Field of a row: empty means NULL.
fn field(value: &Value, kind: &TypeKind) -> Result<String, ToolError> {
    Ok(write(value, kind)?.map_or_else(String::new, |text| quote(&text)))
}

fn range(value: &Value, kind: &TypeKind) -> Result<String, ToolError> {
    let wrong =
        || misfit("range", "Pass {\"lower\": 1, \"upper\": 5, \"bounds\": \"[)\"} or {\"empty\": true}.");
    if value.get("empty") == Some(&Value::Bool(true)) {
        return Ok("empty".to_owned());
    }
    let bounds = value.get("bounds").map_or(Some("[)"), Value::as_str).ok_or_else(wrong)?;
    let ("[" | "(", "]" | ")") = bounds.split_at_checked(1).ok_or_else(wrong)? else { return Err(wrong()) };
    let (open, close) = bounds.split_at(1);
    let end = |name: &str| field(value.get(name).unwrap_or(&Value::Null), kind);
    Ok(format!("{open}{},{}{close}", end("lower")?, end("upper")?))
}

fn misfit(what: &str, hint: &'static str) -> ToolError {
    ToolError::invalid(format!("A parameter does not fit the {what} that the statement expects.")).hint(hint)
}
