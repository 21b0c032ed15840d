//! Builds a request from an operation and values, by parts: no value can become another segment, parameter, header or
//! host.

pub(crate) mod multipart;
pub(crate) mod param_check;
pub(crate) mod param_style;
pub(crate) mod percent_encoding;
pub(crate) mod request_body;

use crate::Document;
use crate::operation::{ApiOperation, Param, ParamLocation};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use octo_toolkit::ToolError;
use serde_json::{Map, Value};
use url::Url;

/// How often a value is decoded to see what servers might make of it.
const MAX_DECODINGS: usize = 4;
/// Headers that affect the routing of a request.
pub(crate) const ROUTING_HEADERS: [&str; 8] = [
    "host",
    "forwarded",
    "x-forwarded-host",
    "x-host",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method-override",
    "x-method-override",
];

/// Values of one call.
#[derive(Debug, Clone, Default)]
pub struct RequestValues {
    pub path: Map<String, Value>,
    pub query: Map<String, Value>,
    pub headers: Map<String, Value>,
    pub cookies: Map<String, Value>,
    pub body: Option<Value>,
    /// Content type of the body; chosen automatically if unset.
    pub content_type: Option<String>,
}

/// A request that can be sent.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// Notices for the caller.
    pub notices: Vec<String>,
}

impl Document {
    /// Builds the request; `boundary` separates the fields of a multipart form and must not occur in them.
    pub fn request(
        &self,
        operation: &ApiOperation,
        base: &Url,
        given: &RequestValues,
        boundary: &str,
    ) -> Result<Request, ToolError> {
        let mut notices = Vec::new();
        let mut url = join_path(base, &path(self, operation, &given.path)?)?;
        let query = query(self, operation, &given.query, &mut notices)?;
        url.set_query((!query.is_empty()).then_some(query.as_str()));
        let mut headers = headers(self, operation, &given.headers)?;
        cookies(self, operation, given, &mut headers)?;
        let written = request_body::encode_body(
            self,
            operation.body.as_ref(),
            given.body.as_ref(),
            requested_content_type(given, &mut headers).as_deref(),
            boundary,
        )?;
        if let Some(written) = &written {
            headers.insert(CONTENT_TYPE, text_header("Content-Type", &written.content_type)?);
        }
        accept(operation, &mut headers)?;
        let method = Method::from_bytes(operation.method.as_bytes()).map_err(ToolError::internal)?;
        Ok(Request { method, url, headers, body: written.map(|written| written.bytes.into()), notices })
    }
}

/// The path with its values, encoded.
fn path(
    document: &Document,
    operation: &ApiOperation,
    given: &Map<String, Value>,
) -> Result<String, ToolError> {
    let mut used = Vec::new();
    let mut path = String::new();
    for segment in operation.path.trim_start_matches('/').split('/') {
        path.push('/');
        let mut rest = segment;
        while let Some((fixed, open)) = rest.split_once('{') {
            path.push_str(&percent_encoding::encode_path_literal(fixed));
            let (name, after) = open.split_once('}').unwrap_or((open, ""));
            path.push_str(&path_value(document, operation, name, given)?);
            used.push(name.to_owned());
            rest = after;
        }
        path.push_str(&percent_encoding::encode_path_literal(rest));
    }
    if let Some(odd) = given.keys().find(|name| !used.contains(name)) {
        let known = if used.is_empty() {
            "The path has none".to_owned()
        } else {
            format!("It has {}", used.join(", "))
        };
        return Err(ToolError::invalid(format!("The path has no parameter `{odd}`."))
            .hint(format!("{known}; pass others in query_params or headers.")));
    }
    Ok(path)
}

fn path_value(
    document: &Document,
    operation: &ApiOperation,
    name: &str,
    given: &Map<String, Value>,
) -> Result<String, ToolError> {
    let declared =
        operation.params.iter().find(|param| param.location == ParamLocation::Path && param.name == name);
    let undeclared = Param::undeclared_path_param(name);
    let param = declared.unwrap_or(&undeclared);
    let value = given.get(name).filter(|value| !value.is_null());
    let value = param_check::check_param(
        document,
        param,
        value.ok_or_else(|| param_check::missing_param_error(document, param))?,
    )?;
    check_path_value(name, &value)?;
    Ok(param_style::path(param, &value))
}

/// Rejects values that servers could interpret as a path step, however often they decode them.
fn check_path_value(name: &str, value: &Value) -> Result<(), ToolError> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            return items.iter().try_for_each(|item| check_path_value(name, item));
        }
        Value::Object(members) if !members.is_empty() => {
            return members.iter().try_for_each(|(key, value)| {
                check_path_value(name, &Value::from(key.as_str()))
                    .and_then(|()| check_path_value(name, value))
            });
        }
        _ => {}
    }
    let mut text = param_style::to_text(value);
    let refused = |why: &str| {
        Err(ToolError::invalid(format!("The path parameter `{name}` {why}."))
            .hint("Pass the plain value, such as an id or a name; it is encoded automatically."))
    };
    if text.is_empty() || text == "[]" || text == "{}" {
        return refused("is empty, which would request another path");
    }
    for _ in 0..MAX_DECODINGS {
        if text.chars().any(char::is_control) {
            return refused("has control characters");
        }
        if text.split(['/', '\\']).any(is_step) {
            return refused("would lead to another path (`.` or `..`)");
        }
        let plainer = percent_encoding::decode(&text);
        if plainer == text {
            break;
        }
        text = plainer;
    }
    Ok(())
}

/// `.` and `..`, also with parameters that some servers strip.
fn is_step(segment: &str) -> bool {
    matches!(segment.split(';').next().unwrap_or_default().trim(), "." | "..")
}

/// Joins base and path; rejected unless the resulting URL is exactly that.
fn join_path(base: &Url, path: &str) -> Result<Url, ToolError> {
    let whole = format!("{}{path}", base.path().trim_end_matches('/'));
    let mut url = base.clone();
    url.set_path(&whole);
    url.set_fragment(None);
    let steps = path.split('/').any(|segment| is_step(&percent_encoding::decode(segment)));
    if steps || url.path() != whole || url.origin() != base.origin() {
        return Err(ToolError::invalid("The values would change the requested path.")
            .hint("Pass plain values; `.` and `..` are rejected."));
    }
    Ok(url)
}

fn query(
    document: &Document,
    operation: &ApiOperation,
    given: &Map<String, Value>,
    notices: &mut Vec<String>,
) -> Result<String, ToolError> {
    let mut parts = Vec::new();
    for param in operation.params.iter().filter(|param| param.location == ParamLocation::Query) {
        match given.get(&param.name).filter(|value| !value.is_null()) {
            Some(value) => {
                parts.extend(param_style::query(param, &param_check::check_param(document, param, value)?))
            }
            None if param.required => return Err(param_check::missing_param_error(document, param)),
            None => {}
        }
    }
    let known = |name: &str| {
        operation.params.iter().any(|param| param.location == ParamLocation::Query && param.name == name)
    };
    let mut odd = Vec::new();
    for (name, value) in given.iter().filter(|(name, value)| !known(name) && !value.is_null()) {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            parts.push(format!(
                "{}={}",
                percent_encoding::encode(name),
                percent_encoding::encode(&param_style::to_text(value))
            ));
        }
        odd.push(name.as_str());
    }
    if !odd.is_empty() {
        notices
            .push(format!("Sent query parameters that the document does not declare: {}.", odd.join(", ")));
    }
    Ok(parts.join("&"))
}

fn headers(
    document: &Document,
    operation: &ApiOperation,
    given: &Map<String, Value>,
) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    let declared: Vec<&Param> =
        operation.params.iter().filter(|param| param.location == ParamLocation::Header).collect();
    for param in declared.iter().filter(|param| param.required) {
        if !given.keys().any(|name| name.eq_ignore_ascii_case(&param.name)) {
            return Err(param_check::missing_param_error(document, param));
        }
    }
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let param = declared.iter().find(|param| param.name.eq_ignore_ascii_case(name));
        let steering = ROUTING_HEADERS.contains(&name.trim().to_ascii_lowercase().as_str());
        if steering && param.is_none() {
            return Err(ToolError::invalid(format!("The header `{name}` cannot be set."))
                .hint("It could change where the request is routed."));
        }
        let text = match param {
            Some(param) => param_style::header(param, &param_check::check_param(document, param, value)?),
            None => param_style::to_text(value),
        };
        let header = HeaderName::try_from(name.trim()).map_err(|_| {
            ToolError::invalid(format!("`{}` is not a valid header name.", name.escape_debug()))
                .hint("Names are letters, digits and hyphens.")
        })?;
        headers.append(header, text_header(name, &text)?);
    }
    Ok(headers)
}

fn text_header(name: &str, text: &str) -> Result<HeaderValue, ToolError> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        ToolError::invalid(format!("The value of header `{name}` is invalid."))
            .hint("Values are one line without control characters.")
    })
}

fn cookies(
    document: &Document,
    operation: &ApiOperation,
    given: &RequestValues,
    headers: &mut HeaderMap,
) -> Result<(), ToolError> {
    let mut cookies = Vec::new();
    let declared: Vec<&Param> =
        operation.params.iter().filter(|param| param.location == ParamLocation::Cookie).collect();
    for param in &declared {
        match given.cookies.get(&param.name).filter(|value| !value.is_null()) {
            Some(value) => {
                cookies.push(param_style::cookie(param, &param_check::check_param(document, param, value)?))
            }
            None if param.required && !headers.contains_key(COOKIE) => {
                return Err(param_check::missing_param_error(document, param));
            }
            None => {}
        }
    }
    let odd = given.cookies.iter().filter(|(name, _)| !declared.iter().any(|param| param.name == **name));
    for (name, value) in odd {
        cookies.push(format!(
            "{}={}",
            percent_encoding::encode(name),
            percent_encoding::encode(&param_style::to_text(value))
        ));
    }
    if !cookies.is_empty() {
        headers.append(COOKIE, text_header("Cookie", &cookies.join("; "))?);
    }
    Ok(())
}

/// Content type that the caller wants, from the argument or the header.
fn requested_content_type(given: &RequestValues, headers: &mut HeaderMap) -> Option<String> {
    let header = headers.remove(CONTENT_TYPE);
    given.content_type.clone().or_else(|| header?.to_str().ok().map(ToOwned::to_owned))
}

/// Sets `Accept` to the media type of the operation's response, JSON preferred.
fn accept(operation: &ApiOperation, headers: &mut HeaderMap) -> Result<(), ToolError> {
    if headers.contains_key(ACCEPT) {
        return Ok(());
    }
    let good = operation.responses.iter().find(|answer| answer.status.starts_with('2'));
    if let Some(media) = good.and_then(|answer| crate::signature::preferred_media_type(&answer.media)) {
        headers.insert(ACCEPT, text_header("Accept", &format!("{}, */*;q=0.5", media.content_type))?);
    }
    Ok(())
}
