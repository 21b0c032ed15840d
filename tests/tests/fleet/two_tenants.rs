//! Two tenants at two fronts: neither one sees what belongs to the other.

use crate::test_fleet::{Database, TestFleet};
use anyhow::{Result, ensure};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::RunningHub;
use octo_tests::mcp_clients::LEGACY;
use serde_json::{Value, json};

const TENANTS: [&str; 2] = ["acme", "beta"];
const TOKENS: [&str; 2] = ["tenant-acme-token", "tenant-beta-token"];
const HASHES: [&str; 2] = [
    "c679b0f014f17c6631d76bdbbbd6a810730c98c25bbd9717ff187ba4a9535005",
    "6a5d690aacd84c03d5e233d40220420e19132db499a1f22ff09ab44e0d43de67",
];
/// Calls per minute of each caller.
const RATE_LIMIT: u64 = 5;

const WORKFLOW: &str = "version: 1
name: Now
steps:
  - {id: now, tool: time_now}
";

/// One caller at one front.
struct Caller<'a> {
    front: &'a RunningHub,
    token: &'a str,
}

impl Caller<'_> {
    async fn call(&self, tool: &str, arguments: Value) -> Result<(u16, Value)> {
        let bearer = format!("Bearer {}", self.token);
        let url = format!("{}/tools/{tool}", self.front.base_url);
        let reply = HttpClient::default().post(&url, &[("authorization", &bearer)], &arguments).await?;
        Ok((reply.status, reply.json().await?))
    }

    async fn result(&self, tool: &str, arguments: Value) -> Result<Value> {
        let (status, body) = self.call(tool, arguments).await?;
        ensure!(status == 200, "{tool}: {status} {body}");
        Ok(body["result"].clone())
    }

    /// Sends an MCP message of a legacy session, and returns the status and the id of the session.
    async fn mcp(&self, session: Option<&str>, method: &str, params: Value) -> Result<(u16, String)> {
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", bearer.as_str()), ("mcp-protocol-version", LEGACY)];
        headers.extend(session.map(|id| ("mcp-session-id", id)));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let url = format!("{}/mcp", self.front.base_url);
        let reply = HttpClient::default().post(&url, &headers, &body).await?;
        let id = reply.header("mcp-session-id").unwrap_or_default().to_owned();
        Ok((reply.status, id))
    }
}

fn settings() -> Value {
    let tokens: Vec<Value> = TENANTS
        .iter()
        .zip(HASHES)
        .map(|(tenant, sha256)| json!({"name": format!("of-{tenant}"), "tenant": tenant, "sha256": sha256}))
        .collect();
    json!({
        "auth": {"tokens": tokens},
        "limits": [{"tools": ["time_diff"], "per_minute": RATE_LIMIT}],
        "results": {"max_bytes": 4_000},
        "toolboxes": {"shell": true},
    })
}

#[tokio::test]
async fn tenants_are_separate_at_every_front() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let worker = fleet.worker("worker", Database::Shared, settings())?;
    let (home_one, one) = fleet.front("one", settings()).await?;
    let (home_two, two) = fleet.front("two", settings()).await?;
    for home in [&home_one, &home_two] {
        std::fs::write(home.workspace().join("now.yaml"), WORKFLOW)?;
    }
    std::fs::write(worker.home.workspace().join("large.txt"), "a line of a large file\n".repeat(2_000))?;
    let [acme, beta] = TOKENS.map(|token| [&one, &two].map(|front| Caller { front, token }));
    for caller in acme.iter().chain(&beta) {
        eventually("the worker serves", async || caller.result("fs_list", json!({})).await.ok()).await?;
    }

    // Memory: written at one front, read at the other.
    let entity = json!({"name": "plan", "type": "note", "observations": ["a secret of acme"]});
    acme[0].result("memory_upsert_entities", json!({"entities": [entity]})).await?;
    let found = acme[1].result("memory_query", json!({"query": "secret"})).await?;
    assert!(found.to_string().contains("a secret of acme"), "{found}");
    // A stored result.
    let large = acme[0].result("shell_exec", json!({"command": "cat large.txt"})).await?;
    let handle = large["handle"].as_str().unwrap_or_default().to_owned();
    ensure!(!handle.is_empty(), "not truncated: {large}");
    let page = acme[1].result("result_read", json!({"handle": handle, "from_line": 1_900})).await?;
    assert!(page["text"].to_string().contains("a line of a large file"), "{page}");
    // A workflow run.
    let run = acme[0].result("workflow_run", json!({"path": "now.yaml"})).await?;
    let resume = json!({"path": "now.yaml", "run_id": run["run_id"]});
    assert_eq!(acme[1].result("workflow_run", resume.clone()).await?["status"], "done");
    // A session.
    let hello =
        json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let (status, session) = acme[0].mcp(None, "initialize", hello).await?;
    assert_eq!((status, session.is_empty()), (200, false));
    assert_eq!(acme[1].mcp(Some(&session), "tools/list", json!({})).await?.0, 200);
    // A change of a file.
    acme[0].result("fs_write_text", json!({"path": "own.txt", "text": "of acme"})).await?;

    for other in &beta {
        let found = other.result("memory_query", json!({"query": "secret"})).await?;
        assert!(!found.to_string().contains("acme"), "{found}");
        assert_eq!(other.call("result_read", json!({"handle": handle})).await?.0, 404);
        assert_eq!(other.call("workflow_run", resume.clone()).await?.0, 404);
        let runs = other.result("workflow_runs", json!({})).await?;
        assert!(!runs.to_string().contains("now.yaml"), "{runs}");
        assert_eq!(other.mcp(Some(&session), "tools/list", json!({})).await?.0, 404);
        let undone = other.result("fs_undo", json!({"path": "own.txt"})).await?;
        assert_eq!(undone["undone"], false, "{undone}");
    }

    // Each has a rate limit of its own, which both fronts share.
    let spend = async |callers: &[Caller<'_>; 2]| -> Result<u64> {
        let mut allowed = 0;
        for number in 0..RATE_LIMIT * 3 {
            let at = usize::try_from(number)? % 2;
            let times = json!({"start": "2027-01-01", "end": "2027-01-31"});
            allowed += u64::from(callers[at].call("time_diff", times).await?.0 == 200);
        }
        Ok(allowed)
    };
    for callers in [&acme, &beta] {
        let allowed = spend(callers).await?;
        assert!((1..=RATE_LIMIT + 1).contains(&allowed), "{allowed}");
    }
    assert_eq!(acme[0].result("fs_undo", json!({"path": "own.txt"})).await?["undone"], true);
    Ok(())
}
