//! Resources that one upstream or one caller can take from all others: memory and responsiveness of the hub.

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::processes::resident_mb;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};

/// Maximum growth of the hub above its idle memory.
const MAX_GROWTH_MB: f64 = 150.0;
/// Maximum latency of `/health`. An unoptimized build on a busy machine is slower.
const MAX_HEALTH_LATENCY: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_500 } else { 100 });

/// Peak usage of a hub under load.
#[derive(Debug, Clone, Copy)]
struct PeakUsage {
    growth_mb: f64,
    health: Duration,
}

/// Samples a hub's memory and health until it is stopped.
struct Monitor {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<PeakUsage>>,
}

impl Monitor {
    fn start(server: &RunningHub) -> Result<Self> {
        let pid = server.process.id().context("the hub has ended")?;
        let url = format!("{}/health", server.base_url);
        let stop = Arc::new(AtomicBool::new(false));
        let (done, idle) = (Arc::clone(&stop), resident_mb(pid)?);
        let task = tokio::spawn(async move {
            let http = HttpClient::default();
            let mut peak = PeakUsage { growth_mb: 0.0, health: Duration::ZERO };
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let answer = http.get(&url, &[]).await?;
                ensure!(answer.status == 200, "health: {}", answer.status);
                answer.text().await?;
                peak.health = peak.health.max(begun.elapsed());
                peak.growth_mb = peak.growth_mb.max(resident_mb(pid)? - idle);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(peak)
        });
        Ok(Self { stop, task })
    }

    async fn stop(self) -> Result<PeakUsage> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

/// An upstream that answers `tools/list` and `tools/call` as a test defines.
pub async fn start_upstream(tools: Value, call: fn(&str) -> Value) -> Result<String> {
    let answer = move |body: Bytes| {
        let tools = tools.clone();
        async move { answer(&tools, call, &body) }
    };
    let app = Router::new().route("/mcp", axum::routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

fn answer(tools: &Value, call: fn(&str) -> Value, body: &[u8]) -> Response {
    let request: Value = serde_json::from_slice(body).unwrap();
    let Some(id) = request.get("id") else {
        return http::StatusCode::ACCEPTED.into_response();
    };
    let result = match request["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "stranger", "version": "1"},
        }),
        "tools/list" => json!({"tools": tools}),
        "tools/call" => call(request["params"]["name"].as_str().unwrap_or_default()),
        "ping" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

/// A hub with that upstream, once its tools are listed.
async fn start_hub_with(home: &HubHome, tool: &str) -> Result<RunningHub> {
    let server = home.serve().await?;
    let url = format!("{}/tools/{tool}", server.base_url);
    let http = HttpClient::default();
    eventually("the server is listed", async || {
        http.get(&url, &[]).await.ok().filter(|answer| answer.status == 200).map(|_| ())
    })
    .await?;
    Ok(server)
}

fn settings(url: &str) -> Value {
    json!({"servers": {"stranger": {"url": url}}})
}

async fn call(http: &HttpClient, server: &RunningHub, tool: &str, arguments: &Value) -> Result<String> {
    http.post(&format!("{}/tools/{tool}", server.base_url), &[], arguments).await?.text().await
}

fn nested_schema(levels: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        let branch = json!({"properties": {"a": next}});
        defs.insert(format!("l{level}"), json!({"anyOf": [branch, branch]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs})
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_of_a_stranger_stop_nobody() -> Result<()> {
    let pattern =
        json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(?:(?=.*b).)*c$"}}});
    let large =
        json!({"type": "object", "properties": {"s": {"pattern": "^(?:(?:a|b)*a(?:a|b){60}){60}x$"}}});
    let tools = json!([
        {"name": "pattern", "inputSchema": pattern},
        {"name": "large", "inputSchema": large},
        {"name": "tower", "inputSchema": nested_schema(20)},
        {"name": "promise", "inputSchema": {"type": "object"}, "outputSchema": {
            "type": "object", "properties": {"s": {"type": "string", "pattern": "^(?:(?=.*a).)*c$"}}}},
    ]);
    let url = start_upstream(tools, |name| match name {
        "promise" => json!({"content": [], "structuredContent": {"s": "a".repeat(300_000)}}),
        _ => json!({"content": []}),
    })
    .await?;
    let home = HubHome::new(&settings(&url))?;
    let server = Arc::new(start_hub_with(&home, "stranger__tower").await?);
    let monitor = Monitor::start(&server)?;
    let begun = Instant::now();
    let nested = (0..22).fold(json!(1), |inner, _| json!({"a": inner}));
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        for (tool, arguments) in [
            ("pattern", json!({"s": "b".repeat(100_000)})),
            ("large", json!({"s": "ab".repeat(100_000)})),
            ("tower", nested.clone()),
            ("promise", json!({})),
        ] {
            let server = Arc::clone(&server);
            let name = format!("stranger__{tool}");
            calls.spawn(async move { call(&HttpClient::default(), &server, &name, &arguments).await });
        }
    }
    while let Some(done) = calls.join_next().await {
        done??;
    }
    let (took, peak) = (begun.elapsed(), monitor.stop().await?);
    println!("schemas of a stranger: {took:?}, {peak:?}");
    assert!(peak.growth_mb <= MAX_GROWTH_MB && peak.health <= MAX_HEALTH_LATENCY, "{peak:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    Ok(())
}

/// Sixty megabytes of text and of structured content.
fn large_result(name: &str) -> Value {
    match name {
        "text" => {
            let line = format!("{}\n", "x".repeat(199));
            json!({"content": [{"type": "text", "text": line.repeat(300_000)}]})
        }
        _ => {
            let rows: Vec<Value> = (0..600).map(|n| json!({"n": n, "text": "y".repeat(100_000)})).collect();
            json!({"content": [], "structuredContent": {"rows": rows}})
        }
    }
}

fn handle_in(text: &str) -> Result<String> {
    let at = text.find("r_").with_context(|| text.chars().take(500).collect::<String>())?;
    Ok(text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "two results of 60 MB, which takes minutes in a build that is not optimised"]
async fn ten_readers_of_large_results_stay_small() -> Result<()> {
    let tools = json!([
        {"name": "text", "inputSchema": {"type": "object"}},
        {"name": "rows", "inputSchema": {"type": "object"}},
    ]);
    let home = HubHome::new(&settings(&start_upstream(tools, large_result).await?))?;
    let server = start_hub_with(&home, "stranger__text").await?;
    let http = HttpClient::default();
    let mut handles = Vec::new();
    for tool in ["stranger__text", "stranger__rows"] {
        handles.push(handle_in(&call(&http, &server, tool, &json!({})).await?)?);
    }
    drop(server);
    // A hub that has not handled them itself has nothing left of them in memory.
    let server = Arc::new(start_hub_with(&home, "stranger__text").await?);
    let monitor = Monitor::start(&server)?;
    let mut readers = JoinSet::new();
    for reader in 0..10_u64 {
        let (server, handles) = (Arc::clone(&server), handles.clone());
        readers.spawn(async move {
            let http = HttpClient::default();
            for handle in &handles {
                for read in [
                    json!({"handle": handle, "from_byte": 40_000_000 + reader, "bytes": 10}),
                    json!({"handle": handle, "from_line": 1_500 + reader, "lines": 2}),
                    json!({"handle": handle, "pattern": "nothing-like-it"}),
                    json!({"handle": handle, "jq": "."}),
                ] {
                    let text = call(&http, &server, "result_read", &read).await?;
                    let too_large = read.get("jq").is_some() && text.contains("too_large");
                    ensure!(text.contains("total_bytes") || too_large, "{read}: {text}");
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = readers.join_next().await {
        done??;
    }
    let peak = monitor.stop().await?;
    println!("ten readers of 60 MB: {peak:?}");
    assert!(peak.growth_mb <= MAX_GROWTH_MB && peak.health <= MAX_HEALTH_LATENCY, "{peak:?}");
    Ok(())
}
