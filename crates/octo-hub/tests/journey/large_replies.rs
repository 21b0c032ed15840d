//! Large replies of servers: nothing that a model may need is lost, and everything can be read.

use crate::hub_fixture::HubFixture;
use crate::limits::{UntrustedSource, definition, reply, tools};
use octo_hub::{Request, ResultLimits};
use octo_model::{BoxFuture, CallId, Caller, Effect, Frontend, Json, JsonObject, ToolError};
use octo_ports::{ResultStore, StoreResult};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
async fn nested_calls_get_the_whole_and_no_notes() {
    // Its schema permits no truncation.
    let schema =
        json!({"type": "object", "required": ["rows"], "properties": {"rows": {"minItems": 600_000}}});
    let structure = json!({"rows": vec![12_345_678; 600_000]});
    let bench = hub(schema, json!({"content": [], "structuredContent": structure}));
    assert!(shown(&bench).await.is_err());
    let request = Request { depth: 1, ..HubFixture::request("evil__do", json!({})) };
    let stored = bench.call_request(request).await.outcome.unwrap();
    assert!(!stored.is_true("isError"));
    let whole = bench.hub.untruncated(&Caller::local(), stored).await.unwrap();
    assert_eq!(whole.get("structuredContent").unwrap().as_str(), structure.to_string());

    // The audit log knows from the short one that the call failed.
    let text = json!({"type": "text", "text": "x".repeat(200_000)});
    let bench = hub(json!({"type": "object"}), json!({"content": [text], "isError": true}));
    let request = Request { depth: 1, ..HubFixture::request("evil__do", json!({})) };
    let failed = bench.call_request(request).await.outcome.unwrap();
    assert!(failed.is_true("isError") && failed.get("content").is_none());

    let input = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    let tool = json!({"name": "do", "inputSchema": input});
    let source = UntrustedSource::new(tools(vec![definition("do", tool, Effect::unknown())]), |_| {
        reply(json!({"content": [{"type": "text", "text": "{\"a\":1}"}]}))
    });
    let bench = HubFixture::new(vec![source], |_| {});
    for (depth, blocks) in [(0, 2), (1, 1)] {
        let request = Request { depth, ..HubFixture::request("evil__do", json!({"id": "7"})) };
        let result = bench.call_request(request).await.outcome.unwrap();
        assert_eq!(result.list("content").len(), blocks);
        assert!(result.object("_meta").get("octoprox/coerced").is_some());
    }
}

/// A store that loads the whole to open it, and remembers how many it opens at once.
#[derive(Default)]
struct LoadingStore {
    open: AtomicUsize,
    most: AtomicUsize,
}

impl ResultStore for LoadingStore {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async { Ok("r_1".to_owned()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(open, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.open.fetch_sub(1, Ordering::SeqCst);
            Ok(Json::from(json!({"content": [{"type": "text", "text": "the whole"}]})))
        })
    }
}

#[tokio::test]
async fn a_caller_opens_two_stored_replies_at_once() {
    let store = Arc::new(LoadingStore::default());
    let results = Arc::clone(&store);
    let bench = HubFixture::new(Vec::new(), |parts| parts.result_store = results);
    let reads = (0..40).map(|_| bench.call("result_read", json!({"handle": "r_1"})));
    for read in futures_util::future::join_all(reads).await {
        assert!(read.unwrap().to_json().as_str().contains("the whole"));
    }
    assert_eq!(store.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn many_small_blocks_are_shown_as_far_as_they_fit() {
    let blocks: Vec<Value> = (0..300)
        .map(|at| json!({"type": "text", "text": format!("block {at} {}", "x".repeat(90))}))
        .collect();
    let bench = hub(json!({"type": "object"}), json!({"content": blocks}));
    let result = shown(&bench).await.unwrap();
    let texts = texts(&result);
    assert!(texts.len() > 50 && texts[0].starts_with("block 0 "), "{texts:?}");
    assert!(texts.iter().any(|text| text.ends_with(" content blocks left out …]")), "{texts:?}");
    assert!(result.to_json().bytes().len() < MAX_BYTES);
    assert!(read_all(&bench, &result).await.contains("block 299 "));
}

#[tokio::test]
async fn a_warning_and_a_file_beside_the_structure_can_be_read() {
    let rows = json!({"rows": vec!["a row of a table"; 2_000]});
    let warning = json!({"type": "text", "text": "WARNING: incomplete"});
    let same = json!({"type": "text", "text": rows.to_string()});
    let file = json!({"type": "resource", "resource": {"uri": "file:///a", "text": "of the file"}});
    for (content, expected) in [(json!([warning, same]), "WARNING"), (json!([same, file]), "of the file")] {
        let bench =
            hub(json!({"type": "object"}), json!({"content": content, "structuredContent": rows.clone()}));
        let result = shown(&bench).await.unwrap();
        assert!(read_all(&bench, &result).await.contains(expected), "{expected}");
    }
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
