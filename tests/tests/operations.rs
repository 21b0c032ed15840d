//! Running a hub: changed settings, signals, tokens, probes, logs, numbers, traces and the audit.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "operations/audit.rs"]
mod audit;
#[path = "operations/local_servers.rs"]
mod local_servers;
#[path = "operations/logs.rs"]
mod logs;
#[path = "operations/probes.rs"]
mod probes;
#[path = "operations/reload.rs"]
mod reload;
#[path = "operations/tokens.rs"]
mod tokens;
#[path = "operations/traces.rs"]
mod traces;

use anyhow::{Context, Result};
use octo_tests::http::{Answer, Http};
use octo_tests::hub::{Home, Server};
use serde_json::{Value, json};

const ANN: &str = "anns-token-for-tests";
const BOSS: &str = "boss-token-for-tests";
const ANNS_HASH: &str = "87c272b4612ce783026bcb53d51116a9bf8b8b1e5415e8fac68a73dab887473f";
const BOSS_HASH: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";

fn ann() -> Value {
    json!({"name": "ann", "sha256": ANNS_HASH})
}

fn boss() -> Value {
    json!({"name": "boss", "sha256": BOSS_HASH, "scopes": ["admin"]})
}

/// Writes settings over those of a home, as `Home::new` writes them.
fn rewrite(home: &Home, settings: &Value) -> Result<()> {
    let mut settings = settings.clone();
    settings["admin"] = json!({"port": 0});
    settings["workspace"] = json!("workspace");
    Ok(std::fs::write(home.folder.path().join("octoprox.yaml"), settings.to_string())?)
}

/// A request with a token, or without.
async fn ask(url: &str, token: &str) -> Result<Answer> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    Http::default().get(url, if token.is_empty() { &[] } else { &headers }).await
}

/// Calls a tool over REST: status and reply.
async fn call(hub: &Server, token: &str, tool: &str, arguments: Value) -> Result<(u16, Value)> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let headers = if token.is_empty() { &headers[..0] } else { &headers };
    let answer = Http::default().post(&format!("{}/tools/{tool}", hub.base), headers, &arguments).await?;
    Ok((answer.status, answer.json().await?))
}

/// What `octoprox doctor` finds.
async fn doctor(home: &Home) -> Result<(i32, Value)> {
    let (code, out, err) = home.run(&["doctor", "--json"]).await?;
    Ok((code, serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?))
}

/// Sends a signal to a hub.
fn signal(hub: &Server, signal: rustix::process::Signal) -> Result<()> {
    let pid = i32::try_from(hub.process.id().context("the hub has ended")?)?;
    let pid = rustix::process::Pid::from_raw(pid).context("no process")?;
    Ok(rustix::process::kill_process(pid, signal)?)
}
