//! Operating a hub: reload, signals, tokens, probes, logs, metrics, traces and the audit log.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "operations/audit_ops.rs"]
mod audit_ops;
#[path = "operations/caller_isolation.rs"]
mod caller_isolation;
#[path = "operations/descriptors.rs"]
mod descriptors;
#[path = "operations/hostile_programs.rs"]
mod hostile_programs;
#[path = "operations/local_servers.rs"]
mod local_servers;
#[path = "operations/log_lines.rs"]
mod log_lines;
#[path = "operations/model_pack.rs"]
mod model_pack;
#[path = "operations/probes.rs"]
mod probes;
#[path = "operations/reload_ops.rs"]
mod reload_ops;
#[path = "operations/service_manager.rs"]
mod service_manager;
#[path = "operations/span_contents.rs"]
mod span_contents;
#[path = "operations/start_dirs.rs"]
mod start_dirs;
#[path = "operations/surfaces.rs"]
mod surfaces;
#[path = "operations/token_ops.rs"]
mod token_ops;

use anyhow::{Context, Result};
use octo_tests::http_client::{HttpClient, HttpReply};
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::{Value, json};

const ANN_TOKEN: &str = "anns-token-for-tests";
const BOSS_TOKEN: &str = "boss-token-for-tests";
const ANN_SHA256: &str = "87c272b4612ce783026bcb53d51116a9bf8b8b1e5415e8fac68a73dab887473f";
const BOSS_SHA256: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";

fn ann_token() -> Value {
    json!({"name": "ann", "sha256": ANN_SHA256})
}

fn boss_token() -> Value {
    json!({"name": "boss", "sha256": BOSS_SHA256, "scopes": ["admin"]})
}

/// Overwrites the settings of a home, as `HubHome::new` writes them.
fn rewrite_settings(home: &HubHome, settings: &Value) -> Result<()> {
    let mut settings = settings.clone();
    settings["admin"] = json!({"port": 0});
    settings["workspace"] = json!("workspace");
    Ok(std::fs::write(home.dir.path().join("octoprox.yaml"), settings.to_string())?)
}

/// Sends a request, with a token unless it is empty.
async fn get_with_token(url: &str, token: &str) -> Result<HttpReply> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    HttpClient::default().get(url, if token.is_empty() { &[] } else { &headers }).await
}

/// Calls a tool over REST: status and reply.
async fn call_tool(hub: &RunningHub, token: &str, tool: &str, arguments: Value) -> Result<(u16, Value)> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let headers = if token.is_empty() { &headers[..0] } else { &headers };
    let answer =
        HttpClient::default().post(&format!("{}/tools/{tool}", hub.base_url), headers, &arguments).await?;
    Ok((answer.status, answer.json().await?))
}

/// Output of `octoprox doctor`.
async fn doctor(home: &HubHome) -> Result<(i32, Value)> {
    let (code, out, err) = home.run(&["doctor", "--json"]).await?;
    Ok((code, serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?))
}

/// Sends a signal to a hub.
fn send_signal(hub: &RunningHub, signal: rustix::process::Signal) -> Result<()> {
    let pid = i32::try_from(hub.process.id().context("the hub has ended")?)?;
    let pid = rustix::process::Pid::from_raw(pid).context("no process")?;
    Ok(rustix::process::kill_process(pid, signal)?)
}
