//! What a request carries, in one of the types that its operation takes.

use crate::member::Member;
use crate::operation::{Body, Media, essence, is_json};
use crate::schema::outer;
use crate::{Document, Sampled, encode, multipart, sample, style};
use octo_toolkit::ToolError;
use serde_json::{Map, Value};

const FORM: &str = "application/x-www-form-urlencoded";
pub(crate) const MULTIPART: &str = "multipart/form-data";

/// A body and the type that its header names.
pub(crate) struct Written {
    pub kind: String,
    pub bytes: Vec<u8>,
}

pub(crate) fn written(
    document: &Document,
    body: Option<&Body>,
    given: Option<&Value>,
    wanted: Option<&str>,
    boundary: &str,
) -> Result<Option<Written>, ToolError> {
    let given = given.filter(|given| !given.is_null());
    let Some(given) = given else {
        return match body {
            Some(body) if body.required => Err(missing(document, body)),
            _ => Ok(None),
        };
    };
    let undeclared = Media {
        kind: wanted.unwrap_or("application/json").to_owned(),
        schema: Value::Null,
        example: None,
        encoding: Value::Null,
    };
    let media = match body {
        Some(body) if !body.media.is_empty() => chosen(body, given, wanted)?,
        _ => &undeclared,
    };
    let kind = match wanted {
        Some(wanted) => wanted.to_owned(),
        None => concrete(&media.kind),
    };
    if is_json(&kind) {
        check_members(document, media, given)?;
        return Ok(Some(Written { kind, bytes: given.to_string().into_bytes() }));
    }
    let bytes = match essence(&kind).as_str() {
        FORM => form(members(given, FORM)?, &media.encoding).into_bytes(),
        MULTIPART => {
            check_members(document, media, given)?;
            let bytes = multipart::written(members(given, MULTIPART)?, &media.encoding, boundary)?;
            return Ok(Some(Written { kind: format!("{MULTIPART}; boundary={boundary}"), bytes }));
        }
        _ => raw(given, &kind)?,
    };
    Ok(Some(Written { kind, bytes }))
}

/// The type that was asked for; otherwise the first that the value fits: JSON, a form, then the rest.
fn chosen<'a>(body: &'a Body, given: &Value, wanted: Option<&str>) -> Result<&'a Media, ToolError> {
    if let Some(wanted) = wanted {
        let found = body.media.iter().find(|media| matches(&media.kind, &essence(wanted)));
        return found.ok_or_else(|| {
            let kinds: Vec<&str> = body.media.iter().map(|media| media.kind.as_str()).collect();
            ToolError::invalid(format!("The operation does not take `{wanted}`."))
                .hint(format!("It takes {}.", kinds.join(", ")))
        });
    }
    let rank = |media: &&Media| match essence(&media.kind).as_str() {
        kind if is_json(kind) => 0,
        MULTIPART | FORM if given.is_object() => 1,
        "*/*" | "application/*" => 2,
        _ if given.is_string() => 1,
        _ => 3,
    };
    body.media.iter().min_by_key(rank).ok_or_else(|| ToolError::internal("a body without types"))
}

/// Whether a type of the document, which may have stars, is the wanted one.
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
            .hint("Give an object with a member for each field.")
    })
}

/// A form's fields. Lists repeat their name; other nested values are JSON, unless the document says `deepObject`.
fn form(form: &Map<String, Value>, encoding: &Value) -> String {
    let mut pairs: Vec<String> = Vec::new();
    for (name, value) in form.iter().filter(|(_, value)| !value.is_null()) {
        let said = encoding.member(name);
        let one = |value: &Value| format!("{}={}", encode::value(name), encode::value(&style::plain(value)));
        match value {
            Value::Object(members) if said.member("style") == "deepObject" => {
                pairs.extend(members.iter().flat_map(|(key, value)| style::deep(name, key, value)));
            }
            Value::Array(items) if said.member("explode") == false => {
                let items: Vec<String> =
                    items.iter().map(|item| encode::value(&style::plain(item))).collect();
                pairs.push(format!("{}={}", encode::value(name), items.join(",")));
            }
            Value::Array(items) => pairs.extend(items.iter().map(one)),
            value => pairs.push(one(value)),
        }
    }
    pairs.join("&")
}

/// Text as it is; bytes as `{"base64": "…"}`.
fn raw(given: &Value, kind: &str) -> Result<Vec<u8>, ToolError> {
    if let Some(text) = given.as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    if let Some(encoded) = given.member("base64").as_str() {
        return multipart::decoded("body", encoded);
    }
    Err(ToolError::invalid(format!("The body is sent as {kind}, so it must be text."))
        .hint("Give a string, or {\"base64\": \"…\"} for bytes."))
}

/// The members that the schema itself requires; the rest is the server's to judge.
fn check_members(document: &Document, media: &Media, given: &Value) -> Result<(), ToolError> {
    let (schema, Some(members)) = (outer(document, &media.schema), given.as_object()) else { return Ok(()) };
    let required = schema.member("required").as_array().into_iter().flatten().filter_map(Value::as_str);
    let absent: Vec<&str> = required.filter(|name| !members.contains_key(*name)).collect();
    // A server fills in what only it can write.
    let absent: Vec<&str> = absent
        .into_iter()
        .filter(|name| schema.member("properties").member(name).member("readOnly") != true)
        .collect();
    if absent.is_empty() {
        return Ok(());
    }
    Err(ToolError::invalid(format!("The body lacks {}.", absent.join(", ")))
        .hint(format!("A body looks like {}.", shown(document, media))))
}

fn missing(document: &Document, body: &Body) -> ToolError {
    let error = ToolError::invalid("The operation needs a body.");
    match crate::signature::preferred(&body.media) {
        Some(media) => error.hint(format!("Give body ({}), such as {}.", media.kind, shown(document, media))),
        None => error.hint("Give body."),
    }
}

fn shown(document: &Document, media: &Media) -> String {
    let example = media.example.clone().unwrap_or_else(|| sample(document, &media.schema, Sampled::Least));
    example.to_string().chars().take(400).collect()
}
