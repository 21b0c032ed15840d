//! Signature of an operation on one line: `getUser(id: int, fields?: str) -> User`.

use crate::document::OperationSummary;
use crate::json_pointer;
use crate::operation::{ApiOperation, MediaType, ParamLocation, is_json};
use crate::schema_types::types;
use crate::value_ext::ValueExt;
use octo_toolkit::hidden_text::strip_hidden;
use serde_json::Value;

/// Parameters that are named; the rest are counted.
const MAX_PARAMS: usize = 12;
/// Members shown of an unnamed body.
const MAX_BODY_MEMBERS: usize = 10;
const MAX_NAME_LEN: usize = 60;

pub(crate) fn summarize(operation: &ApiOperation) -> OperationSummary {
    let summary = match operation.summary.trim() {
        "" => operation.description.trim().lines().next().unwrap_or_default(),
        summary => summary,
    };
    OperationSummary {
        method: operation.method.clone(),
        path: operation.path.clone(),
        id: operation.id.clone(),
        summary: strip_hidden(summary).text.chars().take(160).collect(),
        tags: operation.tags.clone(),
        deprecated: operation.deprecated,
        signature: signature(operation),
    }
}

fn signature(operation: &ApiOperation) -> String {
    let mut params: Vec<(bool, String)> = operation
        .params
        .iter()
        .filter(|param| {
            matches!(param.location, ParamLocation::Path | ParamLocation::Query) || param.required
        })
        .map(|param| {
            (
                param.required,
                format!("{}{}: {}", param.name, optional_mark(param.required), kind(&param.schema, 2)),
            )
        })
        .collect();
    // Required parameters first, then in the order of the document.
    params.sort_by_key(|(required, _)| !required);
    let more = params.len().saturating_sub(MAX_PARAMS);
    params.truncate(MAX_PARAMS);
    let mut parts: Vec<String> = params.into_iter().map(|(_, part)| part).collect();
    if more > 0 {
        parts.push(format!("…{more} more"));
    }
    if let Some(body) = &operation.body {
        let what = preferred_media_type(&body.media).map(|media| members(&media.schema));
        parts.push(format!(
            "body{}: {}",
            optional_mark(body.required),
            what.unwrap_or_else(|| "any".to_owned())
        ));
    }
    let given = answer(operation).map(|kind| format!(" -> {kind}")).unwrap_or_default();
    let name: String = operation.id.chars().take(MAX_NAME_LEN).collect();
    format!("{name}({}){given}", parts.join(", "))
}

fn optional_mark(required: bool) -> &'static str {
    if required { "" } else { "?" }
}

/// JSON if available, otherwise the first media type.
pub(crate) fn preferred_media_type(media: &[MediaType]) -> Option<&MediaType> {
    media.iter().find(|media| is_json(&media.content_type)).or_else(|| media.first())
}

fn answer(operation: &ApiOperation) -> Option<String> {
    let good = operation.responses.iter().find(|answer| answer.status.starts_with('2'));
    let good = good.or_else(|| operation.responses.iter().find(|answer| answer.status == "default"))?;
    let media = preferred_media_type(&good.media)?;
    (!media.schema.is_null()).then(|| kind(&media.schema, 2))
}

/// Short name of a type. References are shown by name and not resolved.
fn kind(schema: &Value, deep: usize) -> String {
    if let Some(reference) = schema.member("$ref").as_str() {
        let name = json_pointer::tokens(reference).and_then(|tokens| tokens.last().cloned());
        return name.unwrap_or_else(|| "any".to_owned()).chars().take(MAX_NAME_LEN).collect();
    }
    if deep == 0 {
        return "any".to_owned();
    }
    if let Some(values) = schema.member("enum").as_array() {
        let shown: Vec<String> = values.iter().take(4).map(ToString::to_string).collect();
        let more = if values.len() > 4 { "|…" } else { "" };
        return format!("{}{more}", shown.join("|").replace('"', "'"));
    }
    for (combination, joint) in [("oneOf", "|"), ("anyOf", "|"), ("allOf", "&")] {
        if let Some(parts) = schema.member(combination).as_array() {
            let mut kinds: Vec<String> = parts.iter().take(3).map(|part| kind(part, deep - 1)).collect();
            kinds.dedup();
            return kinds.join(joint);
        }
    }
    let named = types(schema);
    match named.first().map(String::as_str) {
        Some("integer") => "int".to_owned(),
        Some("number") => "num".to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("string") if schema.member("format") == "binary" => "file".to_owned(),
        Some("string") => "str".to_owned(),
        Some("array") => format!("{}[]", kind(schema.member("items"), deep - 1)),
        Some("object") => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

/// A body by its name, or by the names of its members.
fn members(schema: &Value) -> String {
    let Some(properties) =
        schema.member("properties").as_object().filter(|properties| !properties.is_empty())
    else {
        return kind(schema, 3);
    };
    let required = schema.member("required").as_array();
    let needed = |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
    let mut named: Vec<(bool, String)> = properties
        .iter()
        .map(|(name, property)| {
            (needed(name), format!("{name}{}: {}", optional_mark(needed(name)), kind(property, 2)))
        })
        .collect();
    named.sort_by_key(|(needed, _)| !needed);
    let more = if named.len() > MAX_BODY_MEMBERS { ", …" } else { "" };
    named.truncate(MAX_BODY_MEMBERS);
    let named: Vec<String> = named.into_iter().map(|(_, member)| member).collect();
    format!("{{{}{more}}}", named.join(", "))
}
