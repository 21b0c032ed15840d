//! Third-party programs use the hub: a linter and two client generators its OpenAPI documents, Prometheus its metrics,
//! reverse proxies its port.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "third_party_consumers/openapi_clients.rs"]
mod openapi_clients;
#[path = "third_party_consumers/prometheus.rs"]
mod prometheus;
#[path = "third_party_consumers/proxies.rs"]
mod proxies;

use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::test_binaries::binary_path;
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const TOKEN: &str = "boss-token-for-tests";
const TOKEN_SHA256: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";
/// The host of the guide's examples.
const PUBLIC_HOST: &str = "hub.example.com";
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);

/// A hub with every toolbox, an upstream, an administrator and a public name.
async fn start_hub() -> Result<(HubHome, RunningHub)> {
    let home = HubHome::new(&json!({
        "auth": {"tokens": [{"name": "boss", "sha256": TOKEN_SHA256, "scopes": ["admin"]}]},
        "http": {"allowed_hosts": [PUBLIC_HOST]},
        "toolboxes": {"shell": true, "browser": true, "database": true},
        "profiles": {"few": {"servers": ["time", "child"]}},
        "llm": {"url": "http://127.0.0.1:9/v1"},
        "servers": {"child": {"command": binary_path("mcp-fixture")?, "args": ["stdio"]}},
    }))?;
    let hub = home.serve().await?;
    Ok((home, hub))
}

/// Runs a program in a directory; returns its output if it succeeds.
async fn run_program(program: &str, args: &[&str], folder: &Path) -> Result<String> {
    let child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PROGRAM_TIMEOUT, child)
        .await
        .with_context(|| format!("{program} {args:?} does not end"))??;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {args:?}: {said}");
    Ok(said)
}
