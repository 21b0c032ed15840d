//! Request headers: those constant for a connection, and those that mirror the body.

use crate::error::UpstreamError;
use crate::transport::TransportRequest;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use octo_model::JsonObject;
use octo_wire::{Era, Revision, header};
use std::collections::BTreeMap;

pub(super) const JSON_OR_EVENT_STREAM: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const OCTOPROX_AGENT: HeaderValue = HeaderValue::from_static(concat!("octoprox/", env!("CARGO_PKG_VERSION")));

/// Headers of every request of a connection. Values from the settings may be secrets.
pub(super) fn connection_headers(settings: &BTreeMap<String, String>) -> Result<HeaderMap, UpstreamError> {
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(USER_AGENT, OCTOPROX_AGENT);
    for (name, value) in settings {
        let wrong = || UpstreamError::NotSent(format!("invalid header in the settings: {name}"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON_OR_EVENT_STREAM);
    Ok(headers)
}

/// Headers that a modern server compares with the body.
pub(super) fn add_request_headers(request: &TransportRequest, headers: &mut HeaderMap) {
    if request.era != Era::Modern {
        return;
    }
    headers.insert(header::REVISION, HeaderValue::from_static(Revision::MODERN.as_str()));
    if let Ok(method) = HeaderValue::from_str(&request.method) {
        headers.insert(header::METHOD, method);
    }
    if let Some(name) = routed_name(&request.method, &request.params).and_then(|name| encode_value(&name)) {
        headers.insert(header::NAME, name);
    }
    for (name, value) in &request.param_headers {
        headers.insert(name.clone(), value.clone());
    }
}

/// Text as a header value, encoded if necessary.
pub(crate) fn encode_value(text: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(header::encode(text)).ok()
}

fn routed_name(method: &str, params: &JsonObject) -> Option<String> {
    match method {
        "tools/call" | "prompts/get" => params.text("name"),
        "resources/read" => params.text("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.text("taskId"),
        _ => None,
    }
}
