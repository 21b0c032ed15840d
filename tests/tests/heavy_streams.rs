//! Many clients that do nothing, and many that went away: what they cost, and that it comes back.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::http::Http;
use octo_tests::hub::{Home, Server};
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const STREAMS: usize = 10_000;
const ABANDONED: usize = 100_000;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"idle","version":"1"}}}"#;

/// A client as small as it can be: one connection, requests written by hand.
struct Wire {
    stream: TcpStream,
    host: Arc<str>,
}

impl Wire {
    async fn connect(host: &Arc<str>) -> Result<Self> {
        let stream = TcpStream::connect(&**host).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: Arc::clone(host) })
    }

    /// The head of the answer, and the body when it has a length.
    async fn exchange(&mut self, request: &str) -> Result<String> {
        self.stream.write_all(request.as_bytes()).await?;
        let mut text = Vec::new();
        loop {
            let mut chunk = [0; 2048];
            let count = self.stream.read(&mut chunk).await?;
            ensure!(count > 0, "the connection was closed");
            text.extend_from_slice(chunk.get(..count).unwrap_or_default());
            let seen = String::from_utf8_lossy(&text);
            let Some((head, body)) = seen.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0usize) {
                return Ok(head.to_owned());
            }
        }
    }

    async fn initialize(&mut self) -> Result<String> {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
            self.host,
            INITIALIZE.len()
        );
        let head = self.exchange(&request).await?;
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        Ok(session.with_context(|| format!("no session: {head}"))?.to_owned())
    }

    async fn listen(&mut self, session: &str) -> Result<()> {
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n",
            self.host
        );
        let head = self.exchange(&request).await?;
        ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
        Ok(())
    }
}

fn resident(server: &Server) -> Result<usize> {
    let pid = server.process.id().context("the hub has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<usize>()? * 1024)
}

async fn gauge(server: &Server, name: &str) -> Option<f64> {
    let text = Http::default().get(&format!("{}/metrics", server.base), &[]).await.ok()?.text().await.ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

async fn open_streams(host: &Arc<str>, count: usize) -> Result<Vec<Wire>> {
    let mut tasks = JoinSet::new();
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        if tasks.len() >= 64 {
            open.push(tasks.join_next().await.context("no task")???);
        }
        let host = Arc::clone(host);
        tasks.spawn(async move {
            let mut wire = Wire::connect(&host).await?;
            let session = wire.initialize().await?;
            wire.listen(&session).await?;
            anyhow::Ok(wire)
        });
    }
    while let Some(wire) = tasks.join_next().await {
        open.push(wire??);
    }
    Ok(open)
}

#[tokio::test]
async fn ten_thousand_idle_streams_are_small() -> Result<()> {
    let home = Home::new(&json!({}))?;
    let server = home.serve().await?;
    let host: Arc<str> = server.base.trim_start_matches("http://").into();
    let warm = open_streams(&host, 200).await?;
    let before = resident(&server)?;
    let open = open_streams(&host, STREAMS).await?;
    let each = resident(&server)?.saturating_sub(before) / STREAMS;
    println!("{STREAMS} idle streams: {each} bytes each");
    assert!(each <= 40 * 1024, "{each} bytes for each idle stream");
    drop((open, warm));
    Ok(())
}

async fn abandon(host: &Arc<str>, count: usize) -> Result<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let host = Arc::clone(host);
        tasks.spawn(async move {
            let mut wire = Wire::connect(&host).await?;
            for _ in 0..count / 16 {
                wire.initialize().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Waits until every session has been swept.
async fn all_gone(server: &Server) -> Result<()> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(90);
    while gauge(server, "octoprox_sessions").await != Some(0.0) {
        ensure!(tokio::time::Instant::now() < deadline, "sessions are still there");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Ok(())
}

#[tokio::test]
async fn abandoned_sessions_are_gone_after_their_idle_limit() -> Result<()> {
    let home = Home::new(&json!({"http": {"session_idle_seconds": 20}}))?;
    let server = home.serve().await?;
    let host: Arc<str> = server.base.trim_start_matches("http://").into();
    // What is compared with is a hub that has been used before, not one that has just been started.
    abandon(&host, 16_000).await?;
    all_gone(&server).await?;
    let before = resident(&server)?;
    abandon(&host, ABANDONED).await?;
    let peak = resident(&server)?;
    let most = gauge(&server, "octoprox_sessions").await.context("no gauge")?;
    all_gone(&server).await?;
    println!("{most} sessions at once; {before} bytes before, {peak} at the peak");
    ensure!(most > 50_000.0, "only {most} sessions were alive at once");
    let limit = before + before / 10;
    let back = eventually("memory is back", async || (resident(&server).ok()? <= limit).then_some(())).await;
    back.with_context(|| format!("{before} bytes before, {peak} at the peak, {:?} now", resident(&server)))?;
    Ok(())
}
