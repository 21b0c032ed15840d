//! Reply of every call: `{success, result, error, metadata, execution_time_ms}`.
//!
//! Results are passed through as text, never parsed. A tool that ran and reported a failure returns status 200 and
//! `success: false`: HTTP worked, the tool did not.

use super::reply_metadata::{CallTarget, ReplyMetadata};
use crate::error_response::{error_fields, error_object, set_error_status};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, header};
use octo_hub::{CallOutcome, ResultFailure};
use octo_model::{Json, JsonObject};
use std::io::Write;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Parts of a reply that depend on the outcome. No error means success.
struct ReplyParts {
    result: Option<Json>,
    error: Option<Json>,
}

pub fn call_reply(called: &CallOutcome, target: CallTarget<'_>) -> Response {
    let mut response = Response::new(Body::from(reply_body(called, target)));
    if let Err(error) = &called.outcome {
        set_error_status(&mut response, error);
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(&called.id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// Reply to a call of a tool, for commands that print what REST returns.
pub fn tool_reply(called: &CallOutcome, name: &str) -> String {
    String::from_utf8_lossy(&reply_body(called, CallTarget::of(called, "tool", name))).into_owned()
}

fn reply_body(called: &CallOutcome, target: CallTarget<'_>) -> Vec<u8> {
    let mut metadata = ReplyMetadata::new(target);
    let parts = match &called.outcome {
        Err(error) => ReplyParts { result: None, error: Some(error_object(error).into()) },
        Ok(result) => reply_parts(result, &mut metadata),
    };
    parts.to_json_bytes(called, &called.id.to_string(), &metadata)
}

fn reply_parts(result: &JsonObject, metadata: &mut ReplyMetadata<'_>) -> ReplyParts {
    let structure = result.get("structuredContent").cloned();
    let failure = ResultFailure::of(result);
    metadata.read(result, structure.is_some() || failure.is_some());
    match failure {
        Some(ResultFailure { message, hint }) => {
            ReplyParts { result: structure, error: Some(error_fields("failed", &message, hint).into()) }
        }
        None => ReplyParts { result: Some(structure.unwrap_or_else(|| untyped_result(result))), error: None },
    }
}

/// Complete result of an untyped target, without members of the protocol.
fn untyped_result(result: &JsonObject) -> Json {
    let own = |key: &str| matches!(key, "_meta" | "isError" | "resultType" | "ttlMs" | "cacheScope");
    let said = result.iter().filter(|(key, _)| !own(key));
    said.map(|(key, value)| (key.to_owned(), value.clone())).collect::<JsonObject>().into()
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

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::{CallId, ToolError};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn reply(outcome: Result<&str, ToolError>) -> Value {
        let outcome = outcome.map(|text| JsonObject::parse(text.to_owned()).unwrap());
        let called = CallOutcome {
            id: CallId::fresh(),
            took: Duration::from_micros(1500),
            entry: None,
            from_app: false,
            outcome,
        };
        serde_json::from_str(&tool_reply(&called, "a")).unwrap()
    }

    #[test]
    fn replies() {
        let late = ToolError::unavailable("Busy.").retry_after(Duration::from_millis(1200));
        for (outcome, success, result, error) in [
            (Ok(r#"{"structuredContent":{"x":1},"content":[]}"#), true, json!({"x": 1}), json!(null)),
            (Ok(r#"{"content":[],"_meta":{}}"#), true, json!({"content": []}), json!(null)),
            (
                Ok(r#"{"isError":true,"content":[{"type":"text","text":"no"}]}"#),
                false,
                json!(null),
                json!({"kind": "failed", "message": "no", "hint": null}),
            ),
            (
                Err(late),
                false,
                json!(null),
                json!({"kind": "unavailable", "message": "Busy.", "hint": null, "retry_after_s": 2}),
            ),
        ] {
            let reply = reply(outcome);
            assert_eq!((&reply["result"], &reply["error"]), (&result, &error));
            assert_eq!((&reply["success"], &reply["execution_time_ms"]), (&json!(success), &json!(1.5)));
        }
    }

    #[test]
    fn what_stands_beside_is_kept() {
        let reply = reply(Ok(
            r#"{"structuredContent":{},"content":[{"type":"text","text":"t"},{"type":"image"}],"_meta":{"octoprox/truncated":true,"octoprox/result_handle":"r_1"}}"#,
        ));
        assert_eq!(reply["metadata"]["content"], json!([{"type": "image"}]));
        assert_eq!(
            (&reply["metadata"]["truncated"], &reply["metadata"]["result_handle"]),
            (&json!(true), &json!("r_1"))
        );
    }
}
