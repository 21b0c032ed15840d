//! The reference server replies through the hub as it does directly.

use anyhow::{Context, Result};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::LegacyClient;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Copies the input of a server to a file.
const TEE_SCRIPT: &str = r#"tee "$0" | exec "$@""#;

struct EverythingServer {
    folder: tempfile::TempDir,
    node: String,
    script: String,
}

impl EverythingServer {
    fn new() -> Result<Self> {
        let folder = tempfile::TempDir::with_prefix("everything")?;
        Ok(Self { folder, node: service_variable("NODE24")?, script: service_variable("EVERYTHING")? })
    }

    fn received_file(&self, way: &str) -> PathBuf {
        self.folder.path().join(way)
    }

    fn server(&self, way: &str) -> Value {
        let args = json!(["-c", TEE_SCRIPT, self.received_file(way), self.node, self.script, "stdio"]);
        json!({"command": "/bin/sh", "args": args, "env": {"GIVEN": "yes"}})
    }

    fn hub(&self, way: &str) -> Result<HubHome> {
        let mut every = self.server(way);
        every["questions"] = json!(["elicitation", "roots", "sampling"]);
        every["question_hosts"] = json!(["example.com"]);
        HubHome::new(&json!({
            "servers": {"every": every},
            "profiles": {"bare": {"servers": ["every"], "without_prefix": true}},
        }))
    }

    async fn run_client(&self, target: Value) -> Result<Value> {
        crate::peer_scripts::run_script(&self.node, "everything.mjs", &json!({"target": target})).await
    }
}

/// Whether the hub has put the name of the server before its text.
fn is_in_the_server_s_name(text: &Value, named: &Value) -> bool {
    let (Some(text), Some(named)) = (text.as_str(), named.as_str()) else { return false };
    let prefixed = ["every: ", "every:"].iter().any(|prefix| named.strip_prefix(prefix) == Some(text));
    prefixed || (named.starts_with("`every`") && named.ends_with(text))
}

/// All paths at which two values differ.
fn differences(at: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    if let (Value::Object(one), Value::Object(other)) = (one, other) {
        let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
        for key in keys {
            let null = Value::Null;
            let pair = (one.get(key).unwrap_or(&null), other.get(key).unwrap_or(&null));
            differences(&format!("{at} / {key}"), pair.0, pair.1, found);
        }
    } else if let (Value::Array(one), Value::Array(other)) = (one, other)
        && one.len() == other.len()
    {
        for (index, (one, other)) in one.iter().zip(other).enumerate() {
            differences(&format!("{at} / {index}"), one, other, found);
        }
    } else if one != other && !is_in_the_server_s_name(one, other) {
        found.push(format!("{at}\n    directly:        {one}\n    through the hub: {other}"));
    }
}

/// Whether the server was notified that exactly the long call was cancelled.
fn received_cancellation(told: &Path) -> Result<bool> {
    let text = std::fs::read_to_string(told)?;
    let messages: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let long = messages
        .iter()
        .find(|message| message["params"]["arguments"]["duration"] == 8)
        .context("the long call did not arrive")?;
    let cancelled: Vec<&Value> =
        messages.iter().filter(|message| message["method"] == "notifications/cancelled").collect();
    Ok(matches!(cancelled.as_slice(), [only] if only["params"]["requestId"] == long["id"]))
}

#[tokio::test]
async fn the_reference_server_answers_as_it_does_directly() -> Result<()> {
    let everything = EverythingServer::new()?;
    let direct = everything.run_client(everything.server("direct")).await?;
    assert!(received_cancellation(&everything.received_file("direct"))?);
    assert_eq!(direct["tools"].as_array().map(Vec::len), Some(17), "{}", direct["tools"]);
    assert_eq!(direct["progress"].as_array().map(Vec::len), Some(3), "{}", direct["progress"]);
    assert_eq!(direct["asked"].as_array().map(Vec::len), Some(6), "{}", direct["asked"]);

    let http = everything.hub("http")?;
    let server = http.serve().await?;
    let stdio = everything.hub("stdio")?;
    let targets = [
        ("http", json!({"url": server.profile_url("bare")})),
        ("stdio", crate::peer_scripts::stdio_target(&stdio.command(&["stdio", "--profile", "bare"])?)),
    ];
    let mut found = Vec::new();
    for (way, target) in targets {
        let through = everything.run_client(target).await?;
        differences(way, &direct, &through, &mut found);
        if !received_cancellation(&everything.received_file(way))? {
            found.push(format!("{way}: the server did not hear of the cancellation"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// A tool that can only be called as a task works for clients without tasks, also when its definition is not known yet.
#[tokio::test]
async fn a_tool_that_requires_a_task_is_called_as_one() -> Result<()> {
    let server = EverythingServer::new()?;
    let home = server.hub("tasks")?;
    let answer = |_: &str, _: &Value| json!({"action": "accept", "content": {"interpretation": "technical"}});
    // The second hub lists the server from its store, and has not seen the definitions itself.
    for _ in 0..2 {
        let hub = home.serve().await?;
        hub.until_listed("every__simulate-research-query").await?;
        let client = LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {}}), answer).await?;
        let call = json!({"name": "every__simulate-research-query", "arguments": {"topic": "python", "ambiguous": true},
            "_meta": {"progressToken": 1}});
        let turn = client.call("tools/call", call).await?;
        let text = turn.result()?["content"][0]["text"].as_str().context("no text")?;
        assert!(text.starts_with("# Research Report: python (technical)"), "{text}");
        let progress = turn.notifications("notifications/progress");
        assert!(
            progress.iter().any(|note| note["params"]["message"] == "`every`: Gathering sources..."),
            "{progress:?}"
        );
    }
    Ok(())
}
