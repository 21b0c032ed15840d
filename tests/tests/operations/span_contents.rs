//! Spans contain arguments and results only on request.

use super::call_tool;
use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A collector that stores what it receives, as text.
struct SpanCollector {
    base: String,
    received: Arc<Mutex<String>>,
}

impl SpanCollector {
    async fn start() -> Result<Self> {
        let received: Arc<Mutex<String>> = Arc::default();
        let kept = Arc::clone(&received);
        let router = Router::new().route(
            "/v1/traces",
            post(async move |body: Bytes| {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&body));
                ""
            }),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { base, received })
    }

    fn text(&self) -> String {
        self.received.lock().unwrap().clone()
    }
}

/// Calls a tool that succeeds and one that fails; returns what the collector received.
async fn traced_calls(settings: Value) -> Result<String> {
    let collector = SpanCollector::start().await?;
    let mut telemetry = settings;
    telemetry["otlp_endpoint"] = json!(collector.base);
    let home = HubHome::new(&json!({"telemetry": telemetry}))?;
    let hub = home.serve().await?;
    call_tool(&hub, "", "time_now", json!({"timezone": "Europe/Paris"})).await?;
    call_tool(&hub, "", "fs_read_text", json!({"path": "nowhere-to-be-found.txt"})).await?;
    eventually("both spans arrive", async || {
        let text = collector.text();
        (text.contains("time_now") && text.contains("fs_read_text")).then_some(text)
    })
    .await
}

#[tokio::test]
async fn a_span_says_how_it_went_and_not_what_was_said() -> Result<()> {
    let text = traced_calls(json!({})).await?;
    for name in [
        "tool.server_name",
        "tool.tags",
        "tool.success",
        "tool.duration_ms",
        "tool.error",
        "not_found",
        "gen_ai.tool.name",
    ] {
        assert!(text.contains(name), "{name}");
    }
    for content in ["Europe/Paris", "nowhere-to-be-found", "tool.parameters", "output.value"] {
        assert!(!text.contains(content), "{content}");
    }
    Ok(())
}

#[tokio::test]
async fn contents_are_traced_on_request() -> Result<()> {
    let text = traced_calls(json!({"trace_contents": true})).await?;
    for content in ["Europe/Paris", "nowhere-to-be-found", "tool.parameters", "output.value"] {
        assert!(text.contains(content), "{content}");
    }
    Ok(())
}
