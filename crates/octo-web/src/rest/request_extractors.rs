//! Strict parsing of REST requests.

use crate::error_response::error_response;
use axum::RequestExt;
use axum::body::Body;
use axum::extract::{FromRequest, Path, Query, Request};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::BodyExt;
use octo_model::{Caller, Json, ToolError};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

pub const PROFILE_HEADER: &str = "x-octoprox-profile";
pub const TIMEOUT_HEADER: &str = "x-octoprox-timeout-ms";
const TRACE_HEADER: &str = "traceparent";

/// Response to a request that cannot be accepted.
pub struct RequestRejection(Box<Response>);

impl axum::response::IntoResponse for RequestRejection {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<ToolError> for RequestRejection {
    fn from(error: ToolError) -> Self {
        Self(Box::new(error_response(&error)))
    }
}

impl RequestRejection {
    fn with(status: StatusCode, error: &ToolError) -> Self {
        let mut response = error_response(error);
        *response.status_mut() = status;
        Self(Box::new(response))
    }
}

/// Caller and profile of a request.
pub struct CallerView {
    pub caller: Arc<Caller>,
    /// Empty for the whole catalogue.
    pub profile: String,
}

impl CallerView {
    fn from_parts(request: &Request) -> Result<Self, RequestRejection> {
        let Some(caller) = request.extensions().get::<Arc<Caller>>().cloned() else {
            tracing::error!("request passed the edge without a caller");
            return Err(ToolError::internal("no caller").into());
        };
        Ok(Self { caller, profile: profile(request.headers(), request.uri())? })
    }
}

impl<S: Sync> FromRequest<S> for CallerView {
    type Rejection = RequestRejection;

    async fn from_request(request: Request, _state: &S) -> Result<Self, RequestRejection> {
        Self::from_parts(&request)
    }
}

/// A call of a tool or prompt.
pub struct CallRequest {
    pub view: CallerView,
    pub name: String,
    pub arguments: Json,
    pub timeout: Option<Duration>,
    pub trace: Option<String>,
}

impl<S: Send + Sync> FromRequest<S> for CallRequest {
    type Rejection = RequestRejection;

    async fn from_request(mut request: Request, _state: &S) -> Result<Self, RequestRejection> {
        let view = CallerView::from_parts(&request)?;
        let timeout = timeout(request.headers())?;
        let trace = trace(request.headers());
        let Path(name) = request.extract_parts::<Path<String>>().await.map_err(|_| bad_name())?;
        let typed = is_json(request.headers());
        let text = read_body(request.into_body()).await?;
        if !typed.unwrap_or(text.is_empty()) {
            return Err(unsupported_media_type());
        }
        Ok(Self { view, name, arguments: parse_arguments(text)?, timeout, trace })
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ProfileQuery {
    profile: Option<String>,
}

/// Profile from the header or the query; two different ones are an error.
fn profile(headers: &HeaderMap, uri: &Uri) -> Result<String, RequestRejection> {
    let header = header_text(headers, PROFILE_HEADER)?.map(str::to_owned);
    let query = match uri.query() {
        None | Some("") => None,
        Some(_) => Query::<ProfileQuery>::try_from_uri(uri).map_err(|_| bad_query())?.0.profile,
    };
    match (header, query) {
        (Some(one), Some(other)) if one != other => Err(bad_query()),
        (header, query) => Ok(header.or(query).unwrap_or_default()),
    }
}

fn bad_query() -> RequestRejection {
    ToolError::invalid("Invalid query.")
        .hint("The only parameter is `profile`, at most once, and the same as in the header X-Octoprox-Profile.")
        .into()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RequestRejection> {
    let mut all = headers.get_all(name).iter();
    match (all.next().map(http::HeaderValue::to_str), all.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text)),
        _ => Err(ToolError::invalid(format!("Invalid header {name}."))
            .hint("Send it once, as plain text.")
            .into()),
    }
}

fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, RequestRejection> {
    let Some(text) = header_text(headers, TIMEOUT_HEADER)? else {
        return Ok(None);
    };
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(millis) if plain && millis > 0 => Ok(Some(Duration::from_millis(millis))),
        _ => Err(ToolError::invalid("X-Octoprox-Timeout-Ms is not a number of milliseconds.")
            .hint("Send an integer above 0; the settings may set a lower limit.")
            .into()),
    }
}

/// A malformed `traceparent` is ignored, as its specification requires; it never fails a request.
fn trace(headers: &HeaderMap) -> Option<String> {
    let text = header_text(headers, TRACE_HEADER).ok()??;
    let sizes = text.split('-').take(4).map(str::len);
    let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
    let zero = text.split('-').skip(1).take(2).any(|part| part.bytes().all(|byte| byte == b'0'));
    (hex && text.len() == 55 && sizes.eq([2, 32, 16, 2]) && !zero && !text.starts_with("ff"))
        .then(|| text.to_owned())
}

/// `None` if the request has no content type.
fn is_json(headers: &HeaderMap) -> Option<bool> {
    let mut all = headers.get_all(header::CONTENT_TYPE).iter();
    let named = all.next()?.to_str().unwrap_or_default();
    let plain = named.split(';').next().unwrap_or_default().trim();
    Some(plain.eq_ignore_ascii_case("application/json") && all.next().is_none())
}

fn unsupported_media_type() -> RequestRejection {
    let error = ToolError::invalid("The body must be JSON with a JSON content type.")
        .hint("Send `Content-Type: application/json`.");
    RequestRejection::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error)
}

pub fn bad_name() -> RequestRejection {
    ToolError::invalid("Invalid name in the path.").hint("Percent-encode it as UTF-8.").into()
}

/// The edge limits the body; the only remaining error is a client that disconnects.
async fn read_body(body: Body) -> Result<Bytes, RequestRejection> {
    let whole = body.collect().await.map_err(|error| {
        ToolError::invalid("The body is incomplete.").hint("Send the request again.").detail(error)
    })?;
    Ok(whole.to_bytes())
}

/// Arguments as an object; a missing body is an empty object.
fn parse_arguments(text: Bytes) -> Result<Json, RequestRejection> {
    let text = text.slice_ref(text.trim_ascii());
    if text.is_empty() {
        return Ok(Json::empty_object());
    }
    let json = Json::parse(text).map_err(|fault| {
        ToolError::invalid(format!("The body is not valid JSON: {fault}.")).hint(ARGUMENTS_HINT)
    })?;
    if json.is_object() {
        Ok(json)
    } else {
        Err(ToolError::invalid("The body is not a JSON object.").hint(ARGUMENTS_HINT).into())
    }
}

const ARGUMENTS_HINT: &str = "Send the arguments as one JSON object, such as {\"path\": \"README.md\"}.";

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), http::HeaderValue::from_static(value))])
    }

    #[test]
    fn keeps_only_a_traceparent_that_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace(&headers(TRACE_HEADER, good)).as_deref(), Some(good));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        ] {
            assert_eq!(trace(&headers(TRACE_HEADER, bad)), None, "{bad}");
        }
    }

    #[test]
    fn reads_the_type_of_a_body() {
        for (value, wanted) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/jsonp", false),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data; boundary=application/json", false),
            ("", false),
        ] {
            assert_eq!(is_json(&headers("content-type", value)), Some(wanted), "{value}");
        }
        assert_eq!(is_json(&HeaderMap::new()), None);
    }
}
