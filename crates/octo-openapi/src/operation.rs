//! One operation, independent of the version of the format.

use crate::document::request::param_style::Style;
use crate::document::{Document, Version, text_of};
use crate::swagger;
use crate::value_ext::ValueExt;
use octo_toolkit::ToolError;
use serde_json::{Map, Value, json};

/// Methods as written in documents.
pub(crate) const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamLocation {
    Path,
    Query,
    Header,
    Cookie,
}

impl ParamLocation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// A value sent with a request, outside of its body.
#[derive(Debug, Clone)]
pub struct Param {
    pub name: String,
    pub location: ParamLocation,
    pub required: bool,
    pub description: String,
    /// With unresolved references.
    pub schema: Value,
    pub example: Option<Value>,
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) allow_reserved: bool,
    /// The value is sent as JSON text.
    pub(crate) is_json: bool,
}

impl Param {
    /// A path parameter that the document does not declare.
    pub(crate) fn undeclared_path_param(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: ParamLocation::Path,
            required: true,
            description: String::new(),
            schema: json!({"type": "string"}),
            example: None,
            style: Style::Simple,
            explode: false,
            allow_reserved: false,
            is_json: false,
        }
    }
}

/// A body in one media type.
#[derive(Debug, Clone)]
pub struct MediaType {
    /// `application/json`
    pub content_type: String,
    /// With unresolved references.
    pub schema: Value,
    pub example: Option<Value>,
    /// Encoding of form members, by name.
    pub(crate) encoding: Value,
}

#[derive(Debug, Clone)]
pub struct Body {
    pub required: bool,
    pub description: String,
    pub media: Vec<MediaType>,
}

/// A possible response of an operation.
#[derive(Debug, Clone)]
pub struct Response {
    /// `200`, `4XX` or `default`.
    pub status: String,
    pub description: String,
    pub media: Vec<MediaType>,
}

#[derive(Debug, Clone)]
pub struct ApiOperation {
    /// In upper case.
    pub method: String,
    pub path: String,
    pub id: String,
    pub summary: String,
    pub description: String,
    pub tags: Vec<String>,
    pub deprecated: bool,
    pub params: Vec<Param>,
    pub body: Option<Body>,
    pub responses: Vec<Response>,
    /// Its own servers, or those of its path; empty for the document's.
    pub(crate) servers: Vec<Value>,
}

/// Parses a listed operation.
pub(crate) fn read(document: &Document, path: &str, method: &str) -> Result<ApiOperation, ToolError> {
    let item = document.value_at(&["paths", path]).ok_or_else(|| "it is nested too deep".to_owned());
    item.and_then(|item| document.resolve(&item))
        .and_then(|item| parse(document, path, &method.to_lowercase(), &item))
        .map_err(|why| {
            ToolError::invalid(format!("{method} {path} is invalid in the document: {why}."))
                .hint("Send the request with http_request instead.")
        })
}

pub(crate) fn parse(
    document: &Document,
    path: &str,
    method: &str,
    item: &Value,
) -> Result<ApiOperation, String> {
    let said = item.get(method).filter(|said| said.is_object()).ok_or("not an object")?;
    let id = match text_of(said.member("operationId")) {
        id if id.trim().is_empty() => generated_id(method, path),
        id => id,
    };
    let mut operation = ApiOperation {
        method: method.to_uppercase(),
        path: path.to_owned(),
        id,
        summary: text_of(said.member("summary")),
        description: text_of(said.member("description")),
        tags: texts(said.member("tags")),
        deprecated: said.member("deprecated") == true,
        params: Vec::new(),
        body: None,
        responses: Vec::new(),
        servers: [said, item]
            .iter()
            .find_map(|from| from.member("servers").as_array())
            .cloned()
            .unwrap_or_default(),
    };
    let given = params(document, item, said)?;
    if document.version == Version::V2 {
        let consumes = swagger::media_types(document, said, "consumes");
        let produces = swagger::media_types(document, said, "produces");
        operation.body = swagger::body(&given, &consumes);
        operation.params = given.iter().filter_map(swagger::param).collect();
        operation.responses = answers(document, said, |answer| swagger::media(answer, &produces));
    } else {
        operation.params = given.iter().filter_map(param).collect();
        operation.body = body(document, said.member("requestBody"))?;
        operation.responses = answers(document, said, |answer| media(document, answer.member("content")));
    }
    Ok(operation)
}

/// Name of an operation without an id: `get_users_id`.
fn generated_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

/// Parameters of the path and of the operation; the latter take precedence.
fn params(document: &Document, item: &Value, said: &Value) -> Result<Vec<Value>, String> {
    let mut all: Vec<Value> = Vec::new();
    for given in [item, said].iter().flat_map(|from| from.member("parameters").as_array()).flatten() {
        let given = document.resolve(given)?;
        let same = |known: &Value| {
            known.member("name") == given.member("name") && known.member("in") == given.member("in")
        };
        match all.iter_mut().find(|known| same(known)) {
            Some(known) => *known = given,
            None => all.push(given),
        }
    }
    Ok(all)
}

/// A parameter of version 3. The format excludes three header names.
fn param(given: &Value) -> Option<Param> {
    let name = given.member("name").as_str()?.to_owned();
    let place = parse_location(given)?;
    if place == ParamLocation::Header
        && ["accept", "content-type", "authorization"].contains(&name.to_lowercase().as_str())
    {
        return None;
    }
    let content = given.member("content").as_object().and_then(|content| content.iter().next());
    let style = Style::from_name(given.member("style").as_str(), place);
    let schema = match content {
        Some((_, media)) => media.member("schema").clone(),
        None => given.member("schema").clone(),
    };
    Some(Param {
        required: place == ParamLocation::Path || given.member("required") == true,
        description: text_of(given.member("description")),
        example: example(given).or_else(|| content.and_then(|(_, media)| example(media))),
        explode: given.member("explode").as_bool().unwrap_or(style == Style::Form),
        allow_reserved: given.member("allowReserved") == true,
        is_json: content.is_some_and(|(kind, _)| is_json(kind)),
        name,
        location: place,
        schema,
        style,
    })
}

pub(crate) fn parse_location(given: &Value) -> Option<ParamLocation> {
    Some(match given.member("in").as_str()? {
        "path" => ParamLocation::Path,
        "query" => ParamLocation::Query,
        "header" => ParamLocation::Header,
        "cookie" => ParamLocation::Cookie,
        _ => return None,
    })
}

fn body(document: &Document, given: &Value) -> Result<Option<Body>, String> {
    if given.is_null() {
        return Ok(None);
    }
    let given = document.resolve(given)?;
    Ok(Some(Body {
        required: given.member("required") == true,
        description: text_of(given.member("description")),
        media: media(document, given.member("content")),
    }))
}

fn media(document: &Document, content: &Value) -> Vec<MediaType> {
    let content = content.as_object().into_iter().flatten();
    content
        .map(|(kind, said)| MediaType {
            content_type: kind.clone(),
            schema: said.member("schema").clone(),
            example: example(said).and_then(|example| document.resolve(&example).ok()),
            encoding: said.member("encoding").clone(),
        })
        .collect()
}

fn answers(document: &Document, said: &Value, media: impl Fn(&Value) -> Vec<MediaType>) -> Vec<Response> {
    let all = said.member("responses").as_object().into_iter().flatten();
    all.filter_map(|(status, answer)| {
        let answer = document.resolve(answer).ok()?;
        Some(Response {
            status: status.clone(),
            description: text_of(answer.member("description")),
            media: media(&answer),
        })
    })
    .collect()
}

/// `example`, or the value of the first of `examples`.
fn example(given: &Value) -> Option<Value> {
    given.get("example").cloned().or_else(|| {
        let first = given.member("examples").as_object()?.values().next()?;
        first.get("value").cloned()
    })
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

pub(crate) fn is_json(kind: &str) -> bool {
    let kind = essence(kind);
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

/// Media type without its parameters, in lower case.
pub(crate) fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Schema of an object with these members.
pub(crate) fn object(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}
