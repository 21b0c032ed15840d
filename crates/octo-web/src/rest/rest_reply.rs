//! Reply of every call: `{success, result, error, metadata, execution_time_ms}`.
//!
//! Results are passed through as text, never parsed. A tool that ran and reported a failure returns status 200 and
//! `success: false`: HTTP worked, the tool did not.

use super::reply_metadata::{CallTarget, ReplyMetadata, block_text};
use crate::error_response::{error_fields, error_object, set_error_status};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, header};
use octo_hub::CallOutcome;
use octo_model::{Json, JsonObject};
use std::io::Write;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const INPUT_REQUIRED_MESSAGE: &str = "The call needs more input, which REST cannot provide.";
const INPUT_REQUIRED_HINT: &str = "Call it over MCP, with a client that can answer questions.";

/// Parts of a reply that depend on the outcome. No error means success.
struct ReplyParts {
    result: Option<Json>,
    error: Option<Json>,
}

pub fn call_reply(called: &CallOutcome, target: CallTarget<'_>) -> Response {
    let mut metadata = ReplyMetadata::new(target);
    let parts = match &called.outcome {
        Err(error) => ReplyParts { result: None, error: Some(error_object(error).into()) },
        Ok(result) => reply_parts(result, &mut metadata),
    };
    let mut id = [0; 32];
    let id = &*called.id.0.as_simple().encode_lower(&mut id);
    let mut response = Response::new(Body::from(parts.to_json_bytes(called, id, &metadata)));
    if let Err(error) = &called.outcome {
        set_error_status(&mut response, error);
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

fn reply_parts(result: &JsonObject, metadata: &mut ReplyMetadata<'_>) -> ReplyParts {
    let structure = result.get("structuredContent").cloned();
    let failed = result.is_true("isError");
    metadata.read(result, structure.is_some() || failed);
    if result.text("resultType").as_deref() == Some("input_required") {
        let error = error_fields("failed", INPUT_REQUIRED_MESSAGE, Some(INPUT_REQUIRED_HINT));
        return ReplyParts { result: None, error: Some(error.into()) };
    }
    if failed {
        return ReplyParts {
            result: structure,
            error: Some(error_fields("failed", &error_text(result), None).into()),
        };
    }
    ReplyParts { result: Some(structure.unwrap_or_else(|| untyped_result(result))), error: None }
}

/// Complete result of an untyped target, without members of the protocol.
fn untyped_result(result: &JsonObject) -> Json {
    let own = |key: &str| matches!(key, "_meta" | "isError" | "resultType" | "ttlMs" | "cacheScope");
    let said = result.iter().filter(|(key, _)| !own(key));
    said.map(|(key, value)| (key.to_owned(), value.clone())).collect::<JsonObject>().into()
}

/// Text of a failed target.
fn error_text(result: &JsonObject) -> String {
    let words: Vec<String> = result.list("content").iter().filter_map(block_text).collect();
    if words.is_empty() { "The tool failed and does not say why.".to_owned() } else { words.join("\n") }
}

impl ReplyParts {
    fn to_json_bytes(&self, called: &CallOutcome, id: &str, metadata: &ReplyMetadata<'_>) -> Vec<u8> {
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
