//! Encodes a request body in one of the media types of its operation.

use crate::document::request::{multipart, param_style, percent_encoding};
use crate::operation::{Body, MediaType, essence, is_json};
use crate::schema_types::resolve_outer;
use crate::value_ext::ValueExt;
use crate::{Document, SampleMembers, sample};
use octo_toolkit::ToolError;
use serde_json::{Map, Value};

const FORM_URLENCODED: &str = "application/x-www-form-urlencoded";
pub(crate) const MULTIPART_FORM: &str = "multipart/form-data";

/// An encoded body and its content type.
pub(crate) struct EncodedBody {
    pub content_type: String,
    pub bytes: Vec<u8>,
}

pub(crate) fn encode_body(
    document: &Document,
    body: Option<&Body>,
    given: Option<&Value>,
    wanted: Option<&str>,
    boundary: &str,
) -> Result<Option<EncodedBody>, ToolError> {
    let given = given.filter(|given| !given.is_null());
    let Some(given) = given else {
        return match body {
            Some(body) if body.required => Err(missing(document, body)),
            _ => Ok(None),
        };
    };
    let undeclared = MediaType {
        content_type: wanted.unwrap_or("application/json").to_owned(),
        schema: Value::Null,
        example: None,
        encoding: Value::Null,
    };
    let media = match body {
        Some(body) if !body.media.is_empty() => choose_media_type(body, given, wanted)?,
        _ => &undeclared,
    };
    let kind = match wanted {
        Some(wanted) => wanted.to_owned(),
        None => concrete(&media.content_type),
    };
    if is_json(&kind) {
        check_members(document, media, given)?;
        return Ok(Some(EncodedBody { content_type: kind, bytes: given.to_string().into_bytes() }));
    }
    let bytes = match essence(&kind).as_str() {
        FORM_URLENCODED => form(members(given, FORM_URLENCODED)?, &media.encoding).into_bytes(),
        MULTIPART_FORM => {
            check_members(document, media, given)?;
            let bytes = multipart::encode(members(given, MULTIPART_FORM)?, &media.encoding, boundary)?;
            return Ok(Some(EncodedBody {
                content_type: format!("{MULTIPART_FORM}; boundary={boundary}"),
                bytes,
            }));
        }
        _ => raw(given, &kind)?,
    };
    Ok(Some(EncodedBody { content_type: kind, bytes }))
}

/// The requested media type; otherwise the first that fits the value: JSON, a form, then the rest.
fn choose_media_type<'a>(
    body: &'a Body,
    given: &Value,
    wanted: Option<&str>,
) -> Result<&'a MediaType, ToolError> {
    if let Some(wanted) = wanted {
        let found = body.media.iter().find(|media| matches(&media.content_type, &essence(wanted)));
        return found.ok_or_else(|| {
            let kinds: Vec<&str> = body.media.iter().map(|media| media.content_type.as_str()).collect();
            ToolError::invalid(format!("The operation does not accept `{wanted}`."))
                .hint(format!("It accepts {}.", kinds.join(", ")))
        });
    }
    let rank = |media: &&MediaType| match essence(&media.content_type).as_str() {
        kind if is_json(kind) => 0,
        MULTIPART_FORM | FORM_URLENCODED if given.is_object() => 1,
        "*/*" | "application/*" => 2,
        _ if given.is_string() => 1,
        _ => 3,
    };
    body.media.iter().min_by_key(rank).ok_or_else(|| ToolError::internal("a body without types"))
}

/// Whether a media type of the document, which may have wildcards, matches the wanted one.
fn matches(known: &str, wanted: &str) -> bool {
    let known = essence(known);
    let group = known.strip_suffix('*');
    known == wanted || known == "*/*" || group.is_some_and(|group| wanted.starts_with(group))
}

fn concrete(kind: &str) -> String {
    match essence(kind).as_str() {
        "*/*" | "application/*" => "application/json".to_owned(),
        "text/*" => "text/plain".to_owned(),
        star if star.contains('*') => "application/octet-stream".to_owned(),
        _ => kind.to_owned(),
    }
}

fn members<'a>(given: &'a Value, kind: &str) -> Result<&'a Map<String, Value>, ToolError> {
    given.as_object().ok_or_else(|| {
        ToolError::invalid(format!("The body is sent as {kind}, so it must be an object."))
            .hint("Pass an object with a member for each field.")
    })
}

/// Fields of a form. Arrays repeat their name; other nested values are JSON, unless the document declares `deepObject`.
fn form(form: &Map<String, Value>, encoding: &Value) -> String {
    let mut pairs: Vec<String> = Vec::new();
    for (name, value) in form.iter().filter(|(_, value)| !value.is_null()) {
        let said = encoding.member(name);
        let one = |value: &Value| {
            format!(
                "{}={}",
                percent_encoding::encode(name),
                percent_encoding::encode(&param_style::to_text(value))
            )
        };
        match value {
            Value::Object(members) if said.member("style") == "deepObject" => {
                pairs.extend(
                    members.iter().flat_map(|(key, value)| param_style::deep_object_pairs(name, key, value)),
                );
            }
            Value::Array(items) if said.member("explode") == false => {
                let items: Vec<String> =
                    items.iter().map(|item| percent_encoding::encode(&param_style::to_text(item))).collect();
                pairs.push(format!("{}={}", percent_encoding::encode(name), items.join(",")));
            }
            Value::Array(items) => pairs.extend(items.iter().map(one)),
            value => pairs.push(one(value)),
        }
    }
    pairs.join("&")
}

/// Text unchanged; bytes as `{"base64": "…"}`.
fn raw(given: &Value, kind: &str) -> Result<Vec<u8>, ToolError> {
    if let Some(text) = given.as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    if let Some(encoded) = given.member("base64").as_str() {
        return multipart::decode_base64("body", encoded);
    }
    Err(ToolError::invalid(format!("The body is sent as {kind}, so it must be text."))
        .hint("Pass a string, or {\"base64\": \"…\"} for bytes."))
}

/// Checks the members that the schema itself requires; the rest is validated by the server.
fn check_members(document: &Document, media: &MediaType, given: &Value) -> Result<(), ToolError> {
    let (schema, Some(members)) = (resolve_outer(document, &media.schema), given.as_object()) else {
        return Ok(());
    };
    let required = schema.member("required").as_array().into_iter().flatten().filter_map(Value::as_str);
    let absent: Vec<&str> = required.filter(|name| !members.contains_key(*name)).collect();
    // Read-only members are set by the server.
    let absent: Vec<&str> = absent
        .into_iter()
        .filter(|name| schema.member("properties").member(name).member("readOnly") != true)
        .collect();
    if absent.is_empty() {
        return Ok(());
    }
    Err(ToolError::invalid(format!("The body is missing {}.", absent.join(", ")))
        .hint(format!("Example: {}.", example_text(document, media))))
}

fn missing(document: &Document, body: &Body) -> ToolError {
    let error = ToolError::invalid("The operation needs a body.");
    match crate::signature::preferred_media_type(&body.media) {
        Some(media) => error.hint(format!(
            "Pass body ({}), such as {}.",
            media.content_type,
            example_text(document, media)
        )),
        None => error.hint("Pass body."),
    }
}

fn example_text(document: &Document, media: &MediaType) -> String {
    let example =
        media.example.clone().unwrap_or_else(|| sample(document, &media.schema, SampleMembers::Required));
    example.to_string().chars().take(400).collect()
}
