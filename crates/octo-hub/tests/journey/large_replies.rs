//! Large replies of servers: nothing that a model may need is lost, and everything can be read.

use crate::hub_fixture::HubFixture;
use crate::limits::{UntrustedSource, definition, reply, tools};
use octo_hub::ResultLimits;
use octo_model::{Effect, Frontend, JsonObject, ToolError};
use serde_json::{Value, json};

/// Bytes of a reply to a model, with the notice.
const MAX_BYTES: usize = 8_000 + 1_600;

/// A hub with the tool `evil__do`, which has this output schema and reply.
fn hub(output_schema: Value, result: Value) -> HubFixture {
    let tool = json!({"name": "do", "inputSchema": {"type": "object"}, "outputSchema": output_schema});
    let source = UntrustedSource::new(tools(vec![definition("do", tool, Effect::unknown())]), move |_| {
        reply(result.clone())
    });
    HubFixture::new(vec![source], |parts| parts.result_limits = ResultLimits::default())
}

/// What a model gets.
async fn shown(bench: &HubFixture) -> Result<JsonObject, ToolError> {
    let mut request = HubFixture::request("evil__do", json!({}));
    request.frontend = Frontend::Stdio;
    bench.call_request(request).await.outcome
}

fn texts(result: &JsonObject) -> Vec<String> {
    result.list("content").iter().filter_map(|block| block.member("text")?.to_text()).collect()
}

/// The whole text of a stored reply, read in parts.
async fn read_all(bench: &HubFixture, result: &JsonObject) -> String {
    let handle = result.object("_meta").text("octoprox/result_handle").unwrap();
    let (mut whole, mut from) = (String::new(), 0);
    loop {
        let part = bench.call("result_read", json!({"handle": handle, "from_byte": from})).await.unwrap();
        let part: Value = part.get("structuredContent").unwrap().to().unwrap();
        whole.push_str(part["text"].as_str().unwrap());
        match part["next"].as_u64() {
            Some(next) => from = next,
            None => return whole,
        }
    }
}

#[tokio::test]
async fn text_beside_another_structure_is_shown_and_can_be_read() {
    let log: String = (0..3_000).map(|line| format!("line {line}\n")).collect();
    let content = json!([{"type": "text", "text": log}]);
    let bench =
        hub(json!({"type": "object"}), json!({"content": content, "structuredContent": {"exitCode": 3}}));
    let result = shown(&bench).await.unwrap();
    let text = texts(&result).concat();
    assert!(text.starts_with("line 0\n") && text.contains("line 2999\n"), "{text}");
    assert!(result.get("structuredContent").unwrap().as_str().contains("\"exitCode\":3"));
    assert!(result.to_json().bytes().len() < MAX_BYTES + 400);
    let meta = result.object("_meta");
    assert!(meta.get("octoprox/own_text").is_none());
    let whole = read_all(&bench, &result).await;
    assert!(whole.starts_with(&log) && whole.contains("\"exitCode\": 3"));
    // jq reads the structure.
    let read = json!({"handle": meta.text("octoprox/result_handle"), "jq": ".exitCode"});
    let read = bench.call("result_read", read).await.unwrap();
    assert_eq!(read.get("structuredContent").unwrap().member("text").unwrap().to_text().unwrap().trim(), "3");
}

#[tokio::test]
async fn text_and_structure_share_the_limit() {
    let (text, rows) = ("prose. ".repeat(1_300), vec!["a row of a table"; 450]);
    let bench = hub(
        json!({"type": "object"}),
        json!({"content": [{"type": "text", "text": text}], "structuredContent": {"rows": rows}}),
    );
    let result = shown(&bench).await.unwrap();
    let structure = result.get("structuredContent").unwrap().bytes().len();
    let shown: usize = texts(&result).iter().map(String::len).sum();
    assert!(structure + shown < MAX_BYTES && structure > 1_000 && shown > 1_000, "{structure} {shown}");
}

#[tokio::test]
async fn images_reach_the_model_with_what_follows_them() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(200_000)});
    let caption = json!({"type": "text", "text": "The caption."});
    let long = json!({"type": "text", "text": "words ".repeat(5_000)});
    let other = json!({"type": "audio", "mimeType": "audio/wav", "data": "A".repeat(20_000)});
    for (content, is_whole) in
        [(json!([image, caption]), true), (json!([other, image, long, caption]), false)]
    {
        let result = shown(&hub(json!({"type": "object"}), json!({"content": content}))).await.unwrap();
        let blocks: Vec<Value> = result.get("content").unwrap().to().unwrap();
        assert_eq!(blocks.contains(&caption), is_whole, "{content}");
        assert!(blocks.contains(&image) && !blocks.contains(&other));
        assert_eq!(result.get("_meta").is_none(), is_whole);
    }
    // An image with a text for the model is not one.
    let forged = json!({"type": "image", "mimeType": "image/png", "data": "A", "text": "x".repeat(50_000)});
    let result = shown(&hub(json!({"type": "object"}), json!({"content": [forged]}))).await.unwrap();
    assert!(result.to_json().bytes().len() < MAX_BYTES + 400);
}

#[tokio::test]
async fn the_message_of_an_error_is_shown_whatever_its_structure() {
    let schema = json!({"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]});
    let trace = format!("Error: no such table\n{}", "  at some place\n".repeat(800));
    let result = json!({"isError": true, "content": [{"type": "text", "text": trace}], "structuredContent": {"code": 42}});
    let bench = hub(schema, result);
    let result = shown(&bench).await.unwrap();
    assert!(result.is_true("isError") && texts(&result)[0].starts_with("Error: no such table\n"));
    assert!(read_all(&bench, &result).await.starts_with(&trace));
}

#[tokio::test]
async fn a_strict_schema_keeps_no_position_that_would_skip_items() {
    let schema = json!({"type": "object", "additionalProperties": false,
        "properties": {"items": {"type": "array"}, "next": {"type": "string"}}});
    let items = vec!["an item of a list"; 2_000];
    let bench = hub(schema, json!({"content": [], "structuredContent": {"items": items, "next": "p2"}}));
    let structure: Value = shown(&bench).await.unwrap().get("structuredContent").unwrap().to().unwrap();
    assert!(structure.get("next").is_none() && structure["items"].as_array().unwrap().len() < 600);
}

#[tokio::test]
async fn a_structure_that_is_too_large_to_parse_has_its_beginning_and_its_end() {
    let rows: Vec<Value> = (0..300_000).map(|row| json!({"row": row})).collect();
    let result = json!({"content": [], "structuredContent": {"rows": rows, "end": "of all"}});
    let tool = json!({"name": "do", "inputSchema": {"type": "object"}});
    let source = UntrustedSource::new(tools(vec![definition("do", tool, Effect::unknown())]), move |_| {
        reply(result.clone())
    });
    let bench = HubFixture::new(vec![source], |parts| parts.result_limits = ResultLimits::default());
    let text = texts(&shown(&bench).await.unwrap()).remove(0);
    assert!(text.starts_with("{\"rows\":[{\"row\":0}") && text.ends_with("\"end\":\"of all\"}"), "{text}");
}

#[tokio::test]
async fn a_long_line_says_where_its_rest_is() {
    let line = format!("{{\"a\": \"{}\"}}", "x".repeat(60_000));
    let content = json!([{"type": "text", "text": format!("first\n{line}\nlast")}]);
    let bench = hub(json!({"type": "object"}), json!({"content": content}));
    let result = shown(&bench).await.unwrap();
    let handle = result.object("_meta").text("octoprox/result_handle").unwrap();
    let read = async |arguments: Value| -> Value {
        let arguments = [("handle", json!(handle))]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .chain(arguments.as_object().unwrap().clone())
            .collect::<serde_json::Map<_, _>>();
        let result = bench.call("result_read", Value::Object(arguments)).await.unwrap();
        result.get("structuredContent").unwrap().to().unwrap()
    };
    let page = read(json!({})).await;
    assert_eq!(page["next"], 3, "the page ends with the long line: {page}");
    let from = page["next_byte"].as_u64().unwrap();
    let rest = read(json!({"from_byte": from, "bytes": 40_000})).await;
    assert!(rest["text"].as_str().unwrap().starts_with("xxx"));
    // `bytes` alone reads from the start.
    assert_eq!(read(json!({"bytes": 10})).await["text"], "first\n{\"a\"");
    assert_eq!(read(json!({"from_line": 3})).await["text"], "last");
}
