//! The one reply of every call: `{success, result, error, metadata, execution_time_ms}`.
//!
//! Results are relayed as the text they are, never parsed for it. A tool that ran and says that it failed
//! answers with status 200 and `success: false`: HTTP worked, the tool did not.

use crate::fault::{described, error_object, mark};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, header};
use octo_hub::Called;
use octo_model::{Json, Members};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MORE_INPUT: &str = "It asks for more input, which a REST call cannot give.";
const USE_MCP: &str = "Call it over MCP, with a client that can answer questions.";

/// What was called.
pub struct Target<'a> {
    /// The word for it in the metadata.
    pub member: &'static str,
    pub name: &'a str,
    pub server: Option<&'a str>,
    /// Whether its structure says everything, so that its content is the same once more.
    pub typed: bool,
}

/// The parts of a reply that depend on how the call ended.
struct Parts {
    success: bool,
    result: Json,
    error: Json,
    metadata: Members,
}

pub fn reply(called: &Called, target: &Target<'_>) -> Response {
    let metadata = metadata(called, target);
    let parts = match &called.outcome {
        Err(error) => {
            Parts { success: false, result: Json::null(), error: error_object(error).into(), metadata }
        }
        Ok(result) => ended(result, target, metadata),
    };
    let mut response = Response::new(Body::from(parts.text(called)));
    if let Err(error) = &called.outcome {
        mark(&mut response, error);
    }
    label(&mut response, called);
    response
}

fn label(response: &mut Response, called: &Called) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut id = [0; 32];
    if let Ok(id) = HeaderValue::from_str(called.id.0.as_simple().encode_lower(&mut id)) {
        headers.insert(REQUEST_ID, id);
    }
}

fn metadata(called: &Called, target: &Target<'_>) -> Members {
    Members::new()
        .with("call_id", called.id.to_string().as_str())
        .with(target.member, target.name)
        .with("server", target.server.map_or_else(Json::null, Json::text))
}

fn ended(result: &Members, target: &Target<'_>, mut metadata: Members) -> Parts {
    let structure = result.get("structuredContent");
    let cut = mark_cut(result, &mut metadata);
    if structure.is_some() && (cut || !target.typed) {
        keep_the_rest(result, &mut metadata);
    }
    if result.text("resultType").as_deref() == Some("input_required") {
        let error = described("failed", MORE_INPUT, Some(USE_MCP)).into();
        return Parts { success: false, result: Json::null(), error, metadata };
    }
    if result.is_true("isError") {
        if structure.is_none() {
            keep_the_rest(result, &mut metadata);
        }
        let error = described("failed", &said(result), None).into();
        return Parts {
            success: false,
            result: structure.cloned().unwrap_or_else(Json::null),
            error,
            metadata,
        };
    }
    Parts { success: true, result: answer(result), error: Json::null(), metadata }
}

/// The typed answer, or else everything the target said, without the protocol's own members.
fn answer(result: &Members) -> Json {
    if let Some(structure) = result.get("structuredContent") {
        return structure.clone();
    }
    let own = |key: &str| matches!(key, "_meta" | "isError" | "resultType" | "ttlMs" | "cacheScope");
    let said: Members = result
        .iter()
        .filter(|(key, _)| !own(key))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    said.into()
}

/// Says where the rest of a cut result is.
fn mark_cut(result: &Members, metadata: &mut Members) -> bool {
    let Some(meta) = result.get("_meta").and_then(|meta| meta.members().ok()) else {
        return false;
    };
    let cut = meta.is_true("octoprox/truncated");
    if cut {
        metadata.set("truncated", true);
    }
    if let Some(handle) = meta.get("octoprox/result_handle") {
        metadata.set("result_handle", handle.clone());
    }
    cut
}

/// Pictures, sounds and links that stand beside a structure or a failure.
fn keep_the_rest(result: &Members, metadata: &mut Members) {
    let blocks = result.list("content");
    let rest: Vec<&Json> = blocks.iter().filter(|block| text_of(block).is_none()).collect();
    if !rest.is_empty() {
        metadata.set("content", Json::array(rest));
    }
}

fn text_of(block: &Json) -> Option<String> {
    let members = block.members().ok()?;
    members.text("text").filter(|_| members.text("type").as_deref() == Some("text"))
}

/// What a failed target says in words.
fn said(result: &Members) -> String {
    let words: Vec<String> = result.list("content").iter().filter_map(text_of).collect();
    if words.is_empty() { "The tool failed and does not say why.".to_owned() } else { words.join("\n") }
}

impl Parts {
    fn text(&self, called: &Called) -> Vec<u8> {
        let size = self.result.bytes().len() + self.error.bytes().len();
        let mut text = Vec::with_capacity(size + 384);
        text.extend_from_slice(if self.success { b"{\"success\":true" } else { b"{\"success\":false" });
        for (key, value) in [(&b",\"result\":"[..], &self.result), (b",\"error\":", &self.error)] {
            text.extend_from_slice(key);
            text.extend_from_slice(value.bytes());
        }
        text.extend_from_slice(b",\"metadata\":");
        self.metadata.write(&mut text);
        let micros = called.took.as_micros();
        text.extend_from_slice(
            format!(",\"execution_time_ms\":{}.{:03}}}", micros / 1_000, micros % 1_000).as_bytes(),
        );
        text
    }
}
