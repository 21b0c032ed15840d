//! The reference server answers through the hub as it does directly.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

#[path = "../peers/mod.rs"]
mod peers;

use anyhow::{Context, Result};
use octo_tests::binaries::service;
use octo_tests::hub::Home;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What a server is told on its way in is kept in a file.
const TAP: &str = r#"tee "$0" | exec "$@""#;

struct Everything {
    folder: tempfile::TempDir,
    node: String,
    script: String,
}

impl Everything {
    fn new() -> Result<Self> {
        let folder = tempfile::TempDir::with_prefix("everything")?;
        Ok(Self { folder, node: service("NODE24")?, script: service("EVERYTHING")? })
    }

    fn told(&self, way: &str) -> PathBuf {
        self.folder.path().join(way)
    }

    fn server(&self, way: &str) -> Value {
        let args = json!(["-c", TAP, self.told(way), self.node, self.script, "stdio"]);
        json!({"command": "/bin/sh", "args": args, "env": {"GIVEN": "yes"}})
    }

    fn hub(&self, way: &str) -> Result<Home> {
        Home::new(&json!({
            "servers": {"every": self.server(way)},
            "profiles": {"bare": {"servers": ["every"], "without_prefix": true}},
        }))
    }

    async fn use_all(&self, target: Value) -> Result<Value> {
        peers::run(&self.node, "everything.mjs", &json!({"target": target})).await
    }
}

/// Every place where two values differ.
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
    } else if one != other {
        found.push(format!("{at}\n    directly:        {one}\n    through the hub: {other}"));
    }
}

/// Whether the server heard that exactly the long call was cancelled.
fn heard_of_the_cancellation(told: &Path) -> Result<bool> {
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
    let everything = Everything::new()?;
    let direct = everything.use_all(everything.server("direct")).await?;
    assert!(heard_of_the_cancellation(&everything.told("direct"))?);
    assert_eq!(direct["tools"].as_array().map(Vec::len), Some(17), "{}", direct["tools"]);
    assert_eq!(direct["progress"].as_array().map(Vec::len), Some(3), "{}", direct["progress"]);
    assert_eq!(direct["asked"].as_array().map(Vec::len), Some(6), "{}", direct["asked"]);

    let http = everything.hub("http")?;
    let server = http.serve().await?;
    let stdio = everything.hub("stdio")?;
    let targets = [
        ("http", json!({"url": server.profile("bare")})),
        ("stdio", peers::pipes(&stdio.command(&["stdio", "--profile", "bare"])?)),
    ];
    let mut found = Vec::new();
    for (way, target) in targets {
        let through = everything.use_all(target).await?;
        differences(way, &direct, &through, &mut found);
        if !heard_of_the_cancellation(&everything.told(way))? {
            found.push(format!("{way}: the server did not hear of the cancellation"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}
