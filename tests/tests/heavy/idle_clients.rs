//! Clients that are idle, gone, never read or request far too much: their cost, and that it is released.

use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const STREAM_COUNT: usize = 10_000;
const ABANDONED_SESSIONS: usize = 100_000;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"idle","version":"1"}}}"#;

/// Minimal client: one connection, raw requests.
struct RawClient {
    stream: TcpStream,
    host: Arc<str>,
}

impl RawClient {
    async fn connect(host: &Arc<str>) -> Result<Self> {
        let stream = TcpStream::connect(&**host).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: Arc::clone(host) })
    }

    /// Head of the response, and the body if it has a length.
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

fn resident_bytes(server: &RunningHub) -> Result<usize> {
    let pid = server.process.id().context("the hub has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<usize>()? * 1024)
}

async fn gauge(server: &RunningHub, name: &str) -> Option<f64> {
    let text = HttpClient::default()
        .get(&format!("{}/metrics", server.base_url), &[])
        .await
        .ok()?
        .text()
        .await
        .ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

async fn open_streams(host: &Arc<str>, count: usize) -> Result<Vec<RawClient>> {
    let mut tasks = JoinSet::new();
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        if tasks.len() >= 64 {
            open.push(tasks.join_next().await.context("no task")???);
        }
        let host = Arc::clone(host);
        tasks.spawn(async move {
            let mut wire = RawClient::connect(&host).await?;
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
    let home = HubHome::new(&json!({}))?;
    let server = home.serve().await?;
    let host: Arc<str> = server.base_url.trim_start_matches("http://").into();
    let warm = open_streams(&host, 200).await?;
    let before = resident_bytes(&server)?;
    let open = open_streams(&host, STREAM_COUNT).await?;
    let each = resident_bytes(&server)?.saturating_sub(before) / STREAM_COUNT;
    println!("{STREAM_COUNT} idle streams: {each} bytes each");
    assert!(each <= 40 * 1024, "{each} bytes for each idle stream");
    drop((open, warm));
    Ok(())
}

async fn abandon_sessions(host: &Arc<str>, count: usize) -> Result<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let host = Arc::clone(host);
        tasks.spawn(async move {
            let mut wire = RawClient::connect(&host).await?;
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

/// Waits until every session has expired.
async fn wait_for_no_sessions(server: &RunningHub) -> Result<()> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(90);
    while gauge(server, "octoprox_sessions").await != Some(0.0) {
        ensure!(tokio::time::Instant::now() < deadline, "sessions are still there");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Ok(())
}

#[tokio::test]
async fn abandoned_sessions_are_gone_after_their_idle_limit() -> Result<()> {
    let home = HubHome::new(&json!({"http": {"session_idle_seconds": 20}}))?;
    let server = home.serve().await?;
    let host: Arc<str> = server.base_url.trim_start_matches("http://").into();
    // What is compared with is a hub that has been used before, not one that has just been started.
    abandon_sessions(&host, 16_000).await?;
    wait_for_no_sessions(&server).await?;
    let before = resident_bytes(&server)?;
    abandon_sessions(&host, ABANDONED_SESSIONS).await?;
    let peak = resident_bytes(&server)?;
    let most = gauge(&server, "octoprox_sessions").await.context("no gauge")?;
    wait_for_no_sessions(&server).await?;
    println!("{most} sessions at once; {before} bytes before, {peak} at the peak");
    ensure!(most > 50_000.0, "only {most} sessions were alive at once");
    let limit = before + before / 10;
    let back =
        eventually("memory is back", async || (resident_bytes(&server).ok()? <= limit).then_some(())).await;
    back.with_context(|| {
        format!("{before} bytes before, {peak} at the peak, {:?} now", resident_bytes(&server))
    })?;
    Ok(())
}

/// Bytes above idle that one caller may make the hub use.
const MAX_GROWTH_BYTES: usize = 150 << 20;

/// Runs `work` while sampling the hub's memory and `/health`: the growth, and the slowest response.
async fn watch_hub<T>(
    server: &RunningHub,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, usize, Duration)> {
    let (before, mut peak, mut slowest) = (resident_bytes(server)?, 0, Duration::ZERO);
    let (http, health) = (HttpClient::default(), format!("{}/health", server.base_url));
    let mut work = std::pin::pin!(work);
    loop {
        let asked = Instant::now();
        http.get(&health, &[]).await?.text().await?;
        slowest = slowest.max(asked.elapsed());
        peak = peak.max(resident_bytes(server)?);
        tokio::select! {
            done = &mut work => {
                peak = peak.max(resident_bytes(server)?);
                return Ok((done?, peak.saturating_sub(before), slowest));
            }
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
}

const MCP_HEADERS: &[(&str, &str)] = &[("accept", "application/json, text/event-stream")];

/// A session of the revision that has batches.
async fn batch_session(server: &RunningHub) -> Result<String> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26",
        "capabilities": {}, "clientInfo": {"name": "batch", "version": "1"}}});
    let answer = HttpClient::default().post(&server.mcp_url(), MCP_HEADERS, &hello).await?;
    Ok(answer.header("mcp-session-id").context("no session")?.to_owned())
}

#[tokio::test]
async fn a_batch_costs_no_more_than_its_bounds() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let server = home.serve().await?;
    let http = HttpClient::default();
    let list = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let batch = |count: usize| serde_json::Value::from((0..count).map(list).collect::<Vec<_>>());
    let session = batch_session(&server).await?;
    let named = [MCP_HEADERS[0], ("mcp-session-id", session.as_str())];

    let ((), growth, slowest) = watch_hub(&server, async {
        // As large as a body may be, without a session and with one.
        for headers in [MCP_HEADERS, &named] {
            let answer = http.post(&server.mcp_url(), headers, &batch(80_000)).await?;
            ensure!(answer.status == 400, "{}", answer.status);
            ensure!(answer.text().await?.contains("at most 50 messages"));
        }
        let answer = http.post(&server.mcp_url(), MCP_HEADERS, &batch(2)).await?;
        ensure!(answer.status == 400 && answer.text().await?.contains("needs a session"));
        let text = http.post(&server.mcp_url(), &named, &batch(50)).await?.text().await?;
        let answers: Vec<serde_json::Value> = serde_json::from_str(&text)?;
        ensure!(
            answers.len() == 50 && text.len() < 4 << 20,
            "{} answers, {} bytes",
            answers.len(),
            text.len()
        );
        ensure!(answers[0]["result"]["tools"].is_array(), "{}", answers[0]);
        ensure!(answers[49]["error"]["message"].as_str().is_some_and(|why| why.contains("Send it again")));
        Ok(())
    })
    .await?;
    println!("batches: {growth} bytes above idle, /health within {slowest:?}");
    ensure!(growth < MAX_GROWTH_BYTES, "{growth} bytes");
    Ok(())
}

#[tokio::test]
async fn refused_subscriptions_leave_nothing_behind_and_are_recorded() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let server = home.serve().await?;
    let http = HttpClient::default();
    let session = batch_session(&server).await?;
    let named = [MCP_HEADERS[0], ("mcp-session-id", session.as_str())];
    let subscribe = |uri: String| json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}});
    let url = server.mcp_url();
    let ((), growth, slowest) = watch_hub(&server, async {
        let long = "x".repeat(3_900_000);
        for headers in [MCP_HEADERS, &named] {
            for _ in 0..20 {
                let uri = format!("octoprox://results/{long}");
                let answer = http.post(&url, headers, &subscribe(uri)).await?.text().await?;
                ensure!(answer.len() < 2_000 && answer.contains("\"error\""), "{} bytes", answer.len());
            }
        }
        let mut tasks = JoinSet::new();
        for part in 0..8 {
            let (url, session) = (url.clone(), session.clone());
            tasks.spawn(async move {
                let http = HttpClient::default();
                let named = [MCP_HEADERS[0], ("mcp-session-id", session.as_str())];
                for number in 0..REFUSED_SUBSCRIPTIONS / 8 {
                    let uri = format!("octoprox://results/{part}-{number}");
                    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}});
                    let answer = http.post(&url, &named, &body).await?.text().await?;
                    ensure!(answer.contains("\"error\""), "{answer}");
                }
                Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    })
    .await?;
    println!(
        "{REFUSED_SUBSCRIPTIONS} refused subscriptions: {growth} bytes above idle, /health within {slowest:?}"
    );
    ensure!(growth < MAX_GROWTH_BYTES, "{growth} bytes");
    drop(server);
    let records = home.audit_tail(20).await?;
    ensure!(records.iter().any(|record| record.to_string().contains("resources/subscribe")), "{records:?}");
    Ok(())
}

/// Number of refused subscriptions; smaller for an unoptimized build.
const REFUSED_SUBSCRIPTIONS: usize = if cfg!(debug_assertions) { 4_000 } else { 100_000 };

/// Connections without a token are closed in favour of those with one.
#[tokio::test]
async fn silent_strangers_keep_nobody_out() -> Result<()> {
    let (_, token, said) = HubHome::new(&json!({}))?.run(&["token", "new", "ada"]).await?;
    let sha256 = said.split("sha256: ").nth(1).context("no hash")?.trim();
    let home = HubHome::new(&json!({"auth": {"tokens": [{"name": "ada", "sha256": sha256}]}}))?;
    let server = home.serve().await?;
    let host: Arc<str> = server.base_url.trim_start_matches("http://").into();
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut wire = RawClient::connect(&host).await?;
        // The preface of HTTP/2 and empty settings.
        wire.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
        silent.push(wire);
    }
    // One that has proven who it is stays, although it is as silent.
    let mut known = RawClient::connect(&host).await?;
    let request =
        format!("GET /tools HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\r\n", token.trim());
    ensure!(known.exchange(&request).await?.starts_with("HTTP/1.1 200"));
    let begun = Instant::now();
    for mut wire in silent {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), wire.stream.read_to_end(&mut rest)).await;
        ensure!(ended.is_ok(), "a silent connection is open after {:?}", begun.elapsed());
    }
    Ok(())
}
