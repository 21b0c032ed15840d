//! The one reply of every call: `{success, result, error, metadata, execution_time_ms}`.
//!
//! Results are relayed as the text they are, never parsed for it. A tool that ran and says that it failed
//! answers with status 200 and `success: false`: HTTP worked, the tool did not.

use super::metadata::{Metadata, Target, text_of};
use crate::fault::{described, error_object, mark};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, header};
use octo_hub::CallOutcome;
use octo_model::{Json, JsonObject};
use std::io::Write;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MORE_INPUT: &str = "It asks for more input, which a REST call cannot give.";
const USE_MCP: &str = "Call it over MCP, with a client that can answer questions.";

/// The parts of a reply that depend on how the call ended. Without an error it was a success.
struct Parts {
    result: Option<Json>,
    error: Option<Json>,
}

pub fn reply(called: &CallOutcome, target: Target<'_>) -> Response {
    let mut metadata = Metadata::new(target);
    let parts = match &called.outcome {
        Err(error) => Parts { result: None, error: Some(error_object(error).into()) },
        Ok(result) => ended(result, &mut metadata),
    };
    let mut id = [0; 32];
    let id = &*called.id.0.as_simple().encode_lower(&mut id);
    let mut response = Response::new(Body::from(parts.text(called, id, &metadata)));
    if let Err(error) = &called.outcome {
        mark(&mut response, error);
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

fn ended(result: &JsonObject, metadata: &mut Metadata<'_>) -> Parts {
    let structure = result.get("structuredContent").cloned();
    let failed = result.is_true("isError");
    metadata.read(result, structure.is_some() || failed);
    if result.text("resultType").as_deref() == Some("input_required") {
        let error = described("failed", MORE_INPUT, Some(USE_MCP));
        return Parts { result: None, error: Some(error.into()) };
    }
    if failed {
        return Parts { result: structure, error: Some(described("failed", &said(result), None).into()) };
    }
    Parts { result: Some(structure.unwrap_or_else(|| everything(result))), error: None }
}

/// All that an untyped target said, without the protocol's own members.
fn everything(result: &JsonObject) -> Json {
    let own = |key: &str| matches!(key, "_meta" | "isError" | "resultType" | "ttlMs" | "cacheScope");
    let said = result.iter().filter(|(key, _)| !own(key));
    said.map(|(key, value)| (key.to_owned(), value.clone())).collect::<JsonObject>().into()
}

/// What a failed target says in words.
fn said(result: &JsonObject) -> String {
    let words: Vec<String> = result.list("content").iter().filter_map(text_of).collect();
    if words.is_empty() { "The tool failed and does not say why.".to_owned() } else { words.join("\n") }
}

impl Parts {
    fn text(&self, called: &CallOutcome, id: &str, metadata: &Metadata<'_>) -> Vec<u8> {
        let (result, error) = (bytes_of(self.result.as_ref()), bytes_of(self.error.as_ref()));
        let mut text = Vec::with_capacity(result.len() + error.len() + 320);
        let success: &[u8] = if self.error.is_none() { b"true" } else { b"false" };
        for part in
            [b"{\"success\":", success, b",\"result\":", result, b",\"error\":", error, b",\"metadata\":"]
        {
            text.extend_from_slice(part);
        }
        metadata.write(id, &mut text);
        let micros = called.took.as_micros();
        let _ = write!(text, ",\"execution_time_ms\":{}.{:03}}}", micros / 1_000, micros % 1_000);
        text
    }
}

fn bytes_of(json: Option<&Json>) -> &[u8] {
    json.map_or(b"null", |json| json.bytes())
}
