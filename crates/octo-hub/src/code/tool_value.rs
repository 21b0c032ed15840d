//! What a call returns to a program.

use crate::results::result_failure::{ResultFailure, block_text};
use octo_code::{CallError, MAX_RESULT_BYTES};
use octo_model::{Json, JsonObject, ToolError};
use octo_toolkit::CallContext;

/// Code of a failure that the tool itself reports.
const FAILED_CODE: &str = "failed";

/// Longest result that is decoded on the calling thread.
const MAX_INLINE_BYTES: usize = 256 << 10;

/// The value of a result: its structure, or its text, as JSON if it is a JSON object or list. A result with other content,
/// such as images, is returned as it is.
pub async fn tool_value(result: JsonObject) -> Result<Json, CallError> {
    let size = result.get("structuredContent").map_or_else(|| result.size(), |value| value.bytes().len());
    if size > MAX_RESULT_BYTES {
        return Err(CallError::result_too_large());
    }
    if result.size() <= MAX_INLINE_BYTES {
        return decoded(&result);
    }
    let decoding = tokio::task::spawn_blocking(move || decoded(&result));
    decoding.await.unwrap_or_else(|error| {
        let message = format!("The result cannot be decoded: {error}.");
        Err(CallError { code: FAILED_CODE.to_owned(), message, data: None })
    })
}

fn decoded(result: &JsonObject) -> Result<Json, CallError> {
    if let Some(failure) = ResultFailure::of(result) {
        let message = match failure.hint {
            Some(hint) => format!("{} {hint}", failure.message),
            None => failure.message,
        };
        return Err(CallError { code: FAILED_CODE.to_owned(), message, data: None });
    }
    if let Some(structure) = result.get("structuredContent") {
        return Ok(structure.clone());
    }
    let blocks = result.list("content");
    let texts: Vec<String> = blocks.iter().filter_map(block_text).collect();
    if texts.len() < blocks.len() {
        return Ok(result.to_json());
    }
    let text = texts.join("\n");
    let is_json = text.trim_start().starts_with(['{', '[']);
    let parsed = if is_json { Json::parse(text.clone()).ok() } else { None };
    Ok(parsed.unwrap_or_else(|| Json::of(&text)))
}

/// An error of the hub as the program sees it.
pub fn call_error(cx: &CallContext, error: &ToolError) -> CallError {
    let text = error.text();
    let message = match &error.remedy {
        Some(remedy) => cx.append_remedy(&text, remedy),
        None => text,
    };
    CallError { code: error.kind.as_str().to_owned(), message, data: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn values_of_results() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        for (result, expected) in [
            (json!({"structuredContent": {"n": 1}, "content": [text("x")]}), Ok(json!({"n": 1}))),
            (json!({"content": [text("{\"n\": 1}")]}), Ok(json!({"n": 1}))),
            (json!({"content": [text("[1]")]}), Ok(json!([1]))),
            (json!({"content": [text("5")]}), Ok(json!("5"))),
            (json!({"content": [text("{no"), text("more")]}), Ok(json!("{no\nmore"))),
            (json!({"content": []}), Ok(json!(""))),
            (json!({"content": [image]}), Ok(json!({"content": [image]}))),
            (json!({"isError": true, "content": [text("no")]}), Err("no")),
            (json!({"resultType": "input_required"}), Err("needs more input")),
        ] {
            let value = tool_value(JsonObject::parse(result.to_string()).unwrap()).await;
            match expected {
                Ok(expected) => assert_eq!(value.unwrap().to::<Value>().unwrap(), expected, "{result}"),
                Err(message) => assert!(value.unwrap_err().message.contains(message), "{result}"),
            }
        }
    }

    #[tokio::test]
    async fn large_results() {
        let text = |bytes: usize| {
            JsonObject::new().with("content", json!([{"type": "text", "text": "x".repeat(bytes)}]))
        };
        let value = tool_value(text(MAX_INLINE_BYTES)).await.unwrap();
        assert_eq!(value.bytes().len(), MAX_INLINE_BYTES + 2);
        let error = tool_value(text(MAX_RESULT_BYTES)).await.unwrap_err();
        assert_eq!(error.code, "result_too_large");
        // The text of a structure does not count.
        let value = tool_value(text(MAX_RESULT_BYTES).with("structuredContent", json!({"n": 1}))).await;
        assert_eq!(value.unwrap().as_str(), r#"{"n":1}"#);
    }
}
