//! Definitions and results are relayed unchanged, including unknown members.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result};
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LegacyClient, ModernClient, answer_nothing};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const CASES: usize = 300;

/// All visible characters. Hidden characters are removed on the way (`octo-toolkit/src/hidden_text.rs`), which has its own
/// tests, so none is here: no controls but tab and line breaks, nothing of zero width, no private use, no
/// non-characters, no selectors and no tags.
const VISIBLE_TEXT: &str = "[\\t\\n\\r -~\u{a0}-\u{ac}\u{ae}-\u{34e}\u{350}-\u{61b}\u{61d}-\u{115e}\u{1161}-\u{17b3}\u{17b6}-\u{180a}\
    \u{1810}-\u{200a}\u{2010}-\u{2029}\u{202f}-\u{205f}\u{2070}-\u{3163}\u{3165}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{fdff}\
    \u{fe10}-\u{fefe}\u{ff00}-\u{ff9f}\u{ffa1}-\u{fff8}\u{fffc}\u{fffd}\u{10000}-\u{1f3f3}\u{1f3f5}-\u{1fffd}\u{20000}-\u{2fffd}]{0,32}";

/// Any JSON, with keys and texts of all kinds.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        VISIBLE_TEXT.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-zA-Z_/. \u{e9}-]{1,12}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Members that no revision defines.
fn unknown_members() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::hash_map("x-[a-z]{1,8}", any_json(), 0..4)
        .prop_map(|members| members.into_iter().collect())
}

fn with_members(mut base: Value, strangers: Map<String, Value>) -> Value {
    if let Some(members) = base.as_object_mut() {
        members.extend(strangers);
    }
    base
}

fn a_tool() -> impl Strategy<Value = Value> {
    (VISIBLE_TEXT, unknown_members(), unknown_members(), unknown_members(), unknown_members()).prop_map(
        |(description, outer, annotations, schema, meta)| {
            with_members(
                json!({
                    "description": description,
                    "inputSchema": with_members(json!({"type": "object", "properties": {"case": {"type": "integer"}}}), schema),
                    "annotations": with_members(json!({"readOnlyHint": true}), annotations),
                    "execution": {"taskSupport": "optional"},
                    "_meta": meta,
                }),
                outer,
            )
        },
    )
}

fn a_result() -> impl Strategy<Value = Value> {
    let block = (VISIBLE_TEXT, unknown_members(), unknown_members()).prop_map(|(text, outer, notes)| {
        with_members(json!({"type": "text", "text": text, "annotations": notes}), outer)
    });
    let stranger = unknown_members().prop_map(|members| with_members(json!({"type": "x-hologram"}), members));
    let content = prop::collection::vec(prop_oneof![block, stranger], 0..4);
    (content, any_json(), any::<bool>(), unknown_members(), unknown_members()).prop_map(
        |(content, structure, failed, outer, meta)| {
            with_members(
                json!({"content": content, "structuredContent": structure, "isError": failed, "_meta": meta}),
                outer,
            )
        },
    )
}

struct Cases {
    tools: Vec<Value>,
    results: Vec<Value>,
}

fn cases() -> Cases {
    let mut runner = TestRunner::deterministic();
    let mut tools = Vec::new();
    let mut results = Vec::new();
    for n in 0..CASES {
        let mut tool = a_tool().new_tree(&mut runner).unwrap().current();
        tool["name"] = json!(format!("tool_{n:03}"));
        tools.push(tool);
        results.push(a_result().new_tree(&mut runner).unwrap().current());
    }
    Cases { tools, results }
}

/// A handwritten server, so that no types are between the cases and the hub.
async fn start_server(cases: Arc<Cases>, modern: bool) -> Result<String> {
    let app = Router::new().route(
        "/mcp",
        axum::routing::post(move |body: Bytes| {
            let cases = Arc::clone(&cases);
            async move { answer(&cases, modern, &body) }
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

fn answer(cases: &Cases, modern: bool, body: &[u8]) -> Response {
    let request: Value = serde_json::from_slice(body).unwrap();
    let Some(id) = request.get("id") else {
        return http::StatusCode::ACCEPTED.into_response();
    };
    let result = match request["method"].as_str().unwrap() {
        "server/discover" if modern => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        }),
        "initialize" if !modern => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": cases.tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        }
        "tools/call" => {
            cases.results[request["params"]["arguments"]["case"].as_u64().unwrap() as usize].clone()
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

/// Removes what the hub must add on a modern edge.
fn without_additions(mut result: Value) -> Value {
    if let Some(members) = result.as_object_mut() {
        members.remove("resultType");
        if let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.remove("io.modelcontextprotocol/serverInfo");
        }
    }
    result
}

#[tokio::test]
async fn definitions_and_results_come_through_equal() -> Result<()> {
    let cases = Arc::new(cases());
    for modern in [false, true] {
        let url = start_server(Arc::clone(&cases), modern).await?;
        let home =
            HubHome::new(&json!({"servers": {"up": {"url": url}}, "results": {"max_bytes": 10_000_000}}))?;
        let server = home.serve().await?;
        let old_client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
        let new_client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
        let lists = [
            old_client.call("tools/list", json!({})).await?.answer,
            new_client.call("tools/list", json!({})).await?.answer,
        ];
        for list in lists {
            let listed = list["result"]["tools"].as_array().context("no tools")?;
            for tool in &cases.tools {
                let mut expected = tool.clone();
                expected["name"] = json!(format!("up__{}", tool["name"].as_str().unwrap()));
                let found = listed.iter().find(|listed| listed["name"] == expected["name"]);
                assert_eq!(found, Some(&expected));
            }
        }
        for (case, expected) in cases.results.iter().enumerate() {
            let params = json!({"name": format!("up__tool_{case:03}"), "arguments": {"case": case}});
            let answer = old_client.call("tools/call", params.clone()).await?.answer;
            assert_eq!(&answer["result"], expected, "legacy client, case {case}");
            let answer = new_client.request("tools/call", params).await?.answer;
            assert_eq!(&without_additions(answer["result"].clone()), expected, "modern client, case {case}");
        }
    }
    Ok(())
}
