//! Response bodies as shown to the caller.

use http::header::CONTENT_TYPE;
use octo_toolkit::hidden_text::strip_hidden;
use octo_toolkit::net::NetResponse;
use octo_toolkit::{Json, ToolError};
use serde_json::json;

/// Prefixes of binary media types.
const BINARY_TYPES: [&str; 7] =
    ["image/", "audio/", "video/", "font/", "application/octet-stream", "application/pdf", "application/zip"];

/// JSON stays JSON, with its numbers unchanged; other text is a string; binary data is only described.
pub fn body(answer: &NetResponse) -> Json {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if answer.body.is_empty() {
        return Json::null();
    }
    let Some(text) = text(answer, kind) else {
        let size = answer.body.len();
        return Json::from(json!({"binary": true, "content_type": kind, "bytes": size}));
    };
    if kind.contains("json")
        && !answer.truncated
        && let Ok(json) = Json::parse(text.trim().to_owned())
    {
        return json;
    }
    Json::text(&strip_hidden(text).text)
}

/// The body as JSON, whatever its content type; an empty body is null.
pub fn parse_json_body(answer: &NetResponse) -> Result<Json, ToolError> {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no type");
    if answer.body.is_empty() {
        return Ok(Json::null());
    }
    let text = std::str::from_utf8(&answer.body).map_err(|_| "not UTF-8");
    let json = text.and_then(|text| Json::parse(text.trim().to_owned()).map_err(|fault| fault.0));
    json.map_err(|fault| {
        let status = answer.status.as_u16();
        ToolError::invalid(format!("The reply (status {status}, {kind}) is not JSON: {fault}."))
            .hint("Call it without jq to get it as text.")
    })
}

/// The body as text, if it is text; a character truncated at the end is dropped.
fn text<'a>(answer: &'a NetResponse, kind: &str) -> Option<&'a str> {
    let body: &[u8] = &answer.body;
    let whole = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) if answer.truncated && error.error_len().is_none() => {
            body.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok())?
        }
        Err(_) => return None,
    };
    let named_binary = BINARY_TYPES.iter().any(|start| kind.starts_with(start));
    (!named_binary && !whole.contains('\0')).then_some(whole)
}
