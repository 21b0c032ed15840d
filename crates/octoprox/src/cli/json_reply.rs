//! Reply of `octoprox call --json`, in the format of REST.

use octo_hub::{CallOutcome, Entry};
use octo_model::{Json, JsonObject, Kind, ToolError};
use std::time::Duration;

pub const INPUT_REQUIRED_MESSAGE: &str = "The call needs more input, which a command cannot provide.";
pub const INPUT_REQUIRED_HINT: &str = "Call it over MCP, with a client that can answer questions.";

/// `{success, result, error, metadata, execution_time_ms}`.
pub fn json_reply(called: &CallOutcome, asked: &str, entry: Option<&Entry>) -> Json {
    let mut metadata = JsonObject::new()
        .with("call_id", called.id.to_string().as_str())
        .with("tool", entry.map_or(asked, |entry| &*entry.listed_name))
        .with("server", entry.map_or_else(Json::null, |entry| Json::text(entry.source_name())));
    let (result, error) = match &called.outcome {
        Err(error) => (Json::null(), Some(error_object(error))),
        Ok(result) => result_and_error(result, entry.is_some_and(|entry| entry.item.vouched), &mut metadata),
    };
    let millis = called.took.as_micros() as f64 / 1000.0;
    JsonObject::new()
        .with("success", error.is_none())
        .with("result", result)
        .with("error", error.map_or_else(Json::null, Json::from))
        .with("metadata", metadata)
        .with("execution_time_ms", Json::of(&millis))
        .to_json()
}

/// Splits a result into its value and, if the target reports a failure, an error.
fn result_and_error(
    result: &JsonObject,
    typed: bool,
    metadata: &mut JsonObject,
) -> (Json, Option<JsonObject>) {
    let structure = result.get("structuredContent");
    let cut = copy_truncation(result, metadata);
    let failed = result.is_true("isError");
    if if structure.is_some() { cut || !typed } else { failed } {
        copy_attachments(result, metadata);
    }
    if is_input_required(result) {
        return (
            Json::null(),
            Some(error_fields("failed", INPUT_REQUIRED_MESSAGE, Some(INPUT_REQUIRED_HINT))),
        );
    }
    if failed {
        let said = error_fields("failed", &error_text(result), None);
        return (structure.cloned().unwrap_or_else(Json::null), Some(said));
    }
    (result_value(result), None)
}

/// Returns whether the target needs input that only a client can give.
pub fn is_input_required(result: &JsonObject) -> bool {
    result.text("resultType").as_deref() == Some("input_required")
}

/// Copies truncation, result handle and coercions to the metadata; returns whether the result was truncated.
fn copy_truncation(result: &JsonObject, metadata: &mut JsonObject) -> bool {
    let meta = result.object("_meta");
    let cut = meta.is_true("octoprox/truncated");
    if cut {
        metadata.set("truncated", true);
    }
    if let Some(handle) = meta.get("octoprox/result_handle") {
        metadata.set("result_handle", handle.clone());
    }
    if let Some(coerced) = meta.get("octoprox/coerced") {
        metadata.set("coerced", coerced.clone());
    }
    cut
}

/// Copies images, audio and links beside structured content or a failure to the metadata.
fn copy_attachments(result: &JsonObject, metadata: &mut JsonObject) {
    let blocks = result.list("content");
    let rest: Vec<&Json> = blocks.iter().filter(|block| block_text(block).is_none()).collect();
    if !rest.is_empty() {
        metadata.set("content", Json::array(rest));
    }
}

fn block_text(block: &Json) -> Option<String> {
    let members = block.members().ok()?;
    members.text("text").filter(|_| members.text("type").as_deref() == Some("text"))
}

/// Error text of a failed target.
pub fn error_text(result: &JsonObject) -> String {
    let words: Vec<String> = result.list("content").iter().filter_map(block_text).collect();
    if words.is_empty() { "The tool failed and does not say why.".to_owned() } else { words.join("\n") }
}

fn error_object(error: &ToolError) -> JsonObject {
    let members = error_fields(error.kind.as_str(), &error.message, error.hint.as_deref());
    let unknown =
        matches!(error.kind, Kind::Unavailable | Kind::RateLimited).then_some(Duration::from_secs(1));
    match error.retry_after.or(unknown) {
        Some(wait) => {
            members.with("retry_after_s", Json::of(&(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))))
        }
        None => members,
    }
}

fn error_fields(kind: &str, message: &str, hint: Option<&str>) -> JsonObject {
    let hint = hint.map_or_else(Json::null, Json::text);
    JsonObject::new().with("kind", kind).with("message", message).with("hint", hint)
}

/// Structured content, or else the whole result without members of the protocol.
fn result_value(result: &JsonObject) -> Json {
    if let Some(structure) = result.get("structuredContent") {
        return structure.clone();
    }
    let own = |key: &str| matches!(key, "_meta" | "isError" | "resultType" | "ttlMs" | "cacheScope");
    let said = result.iter().filter(|(key, _)| !own(key));
    said.map(|(key, value)| (key.to_owned(), value.clone())).collect::<JsonObject>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::CallId;
    use serde_json::{Value, json};

    fn reply(outcome: Result<&str, ToolError>) -> Value {
        let outcome = outcome.map(|text| JsonObject::parse(text.to_owned()).unwrap());
        let called =
            CallOutcome { id: CallId::fresh(), took: Duration::from_micros(1500), entry: None, outcome };
        json_reply(&called, "a", None).to().unwrap()
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
