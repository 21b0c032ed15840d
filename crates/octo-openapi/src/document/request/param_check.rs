//! Checks whether a value fits a parameter. Values that are equal in a URL are equal here: `"42"` is an integer, `7` is
//! a string.

use crate::document::request::param_style::to_text;
use crate::operation::Param;
use crate::schema_types::{choices, resolve_outer, type_name, types};
use crate::value_ext::ValueExt;
use crate::{Document, sample};
use octo_toolkit::ToolError;
use serde_json::Value;
use std::cell::Cell;

const MAX_DEPTH: usize = 6;
/// Maximum schemas checked for one value; beyond that the server validates.
const MAX_SCHEMAS: usize = 500;

/// Returns the value to send, or an error with the parameter, its type and an example.
pub(crate) fn check_param(document: &Document, param: &Param, value: &Value) -> Result<Value, ToolError> {
    let schema = resolve_outer(document, &param.schema);
    let listed = !param.is_json && types(&schema) == ["array"] && !value.is_array();
    let value = if listed { Value::Array(vec![value.clone()]) } else { value.clone() };
    if param.is_json || fits(&Cell::new(MAX_SCHEMAS), document, &schema, &value, MAX_DEPTH) {
        return Ok(value);
    }
    let shown: String = value.to_string().chars().take(80).collect();
    Err(ToolError::invalid(format!(
        "The {} parameter `{}` is {shown}, but must be {}.",
        param.location.as_str(),
        param.name,
        article(&type_name(document, &param.schema))
    ))
    .hint(format!("For example {}.", example(document, param))))
}

/// Error for a missing required parameter.
pub(crate) fn missing_param_error(document: &Document, param: &Param) -> ToolError {
    let what = article(&type_name(document, &param.schema));
    let about: String = param.description.lines().next().unwrap_or_default().chars().take(120).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    ToolError::invalid(format!(
        "The {} parameter `{}` is required: {what}{about}.",
        param.location.as_str(),
        param.name
    ))
    .hint(format!("Pass it in {}, for example {}.", member(param), example(document, param)))
}

fn member(param: &Param) -> &'static str {
    match param.location {
        crate::ParamLocation::Path => "path_params",
        crate::ParamLocation::Query => "query_params",
        crate::ParamLocation::Header => "headers",
        crate::ParamLocation::Cookie => "cookie_params",
    }
}

fn example(document: &Document, param: &Param) -> String {
    let example = param
        .example
        .clone()
        .unwrap_or_else(|| sample(document, &param.schema, sample::SampleMembers::Required));
    let example: String = example.to_string().chars().take(120).collect();
    format!("{{\"{}\": {example}}}", param.name)
}

fn article(kind: &str) -> String {
    match kind.chars().next() {
        _ if kind.starts_with("one of") => kind.to_owned(),
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn fits(left: &Cell<usize>, document: &Document, schema: &Value, value: &Value, deep: usize) -> bool {
    if deep == 0 || left.get() == 0 || value.is_null() {
        return true;
    }
    left.set(left.get() - 1);
    let schema = resolve_outer(document, schema);
    if let Some(allowed) = schema.member("enum").as_array()
        && !allowed.iter().any(|one| to_text(one) == to_text(value))
    {
        return false;
    }
    if let Some(choices) = choices(&schema)
        && !choices.iter().any(|choice| fits(left, document, choice, value, deep - 1))
    {
        return false;
    }
    if let Some(all) = schema.member("allOf").as_array()
        && !all.iter().all(|one| fits(left, document, one, value, deep - 1))
    {
        return false;
    }
    let kinds = types(&schema);
    kinds.is_empty() || kinds.iter().any(|kind| has_type(left, document, kind, &schema, value, deep))
}

fn has_type(
    left: &Cell<usize>,
    document: &Document,
    kind: &str,
    schema: &Value,
    value: &Value,
    deep: usize,
) -> bool {
    match (kind, value) {
        ("string", Value::Array(_) | Value::Object(_)) => false,
        ("string", _) => true,
        ("boolean", Value::Bool(_)) => true,
        ("boolean", Value::String(text)) => matches!(text.as_str(), "true" | "false"),
        ("integer", Value::Number(number)) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        ("integer", Value::String(text)) => text.parse::<i128>().is_ok(),
        ("number", Value::Number(_)) => true,
        ("number", Value::String(text)) => text.parse::<f64>().is_ok(),
        ("array", Value::Array(items)) => {
            let of = schema.member("items");
            items.iter().all(|item| of.is_null() || fits(left, document, of, item, deep - 1))
        }
        ("object", Value::Object(_)) => true,
        ("boolean" | "integer" | "number" | "array" | "object", _) => false,
        // An unknown type keyword decides nothing.
        _ => true,
    }
}
