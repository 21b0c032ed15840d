//! Callers cannot use each other's sessions and tasks, and web pages cannot reach the hub. SDKs had these holes:
//! CVE-2026-52869 (sessions), CVE-2026-52870 (tasks) and CVE-2026-59950 (Host and Origin).

use super::{ANN_TOKEN, BOSS_TOKEN, ann_token, boss_token, call_tool, get_with_token};
use anyhow::{Context, Result};
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LEGACY, LegacyClient, MODERN, answer_nothing};
use serde_json::{Value, json};

/// A server whose `wait` takes two seconds.
const SLOW_SERVER: &str = r#"
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    method, result = message["method"], {}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "slow", "version": "1"}}
    if method == "tools/list":
        result = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]}
    if method == "tools/call":
        time.sleep(2)
        result = {"content": [{"type": "text", "text": "waited"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn a_session_belongs_to_the_caller_who_opened_it() -> Result<()> {
    let home = HubHome::new(&json!({"auth": {"tokens": [ann_token(), boss_token()]}}))?;
    let hub = home.serve().await?;
    let (ann, boss) = (bearer(ANN_TOKEN), bearer(BOSS_TOKEN));
    let client = LegacyClient::connect_as(
        &hub.mcp_url(),
        LEGACY,
        json!({}),
        answer_nothing,
        &[("authorization", ann.as_str())],
    )
    .await?;
    assert!(!client.session.is_empty());
    let http = HttpClient::default();
    let send = async |token: &str, method: &str, body: &Value| {
        let headers = [
            ("authorization", token),
            ("mcp-session-id", client.session.as_str()),
            ("mcp-protocol-version", LEGACY),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        http.send(method, &hub.mcp_url(), &headers, body.into()).await
    };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "time_now", "arguments": {}}});
    for (method, body) in [("POST", &call), ("GET", &Value::Null), ("DELETE", &Value::Null)] {
        let refused = send(&boss, method, body).await?;
        assert_eq!(refused.status, 404, "{method}");
    }
    let reply = send(&ann, "POST", &call).await?;
    assert_eq!(reply.status, 200, "the session still works");
    Ok(())
}

#[tokio::test]
async fn a_task_belongs_to_the_caller_who_started_it() -> Result<()> {
    let home = HubHome::new(&json!({
        "auth": {"tokens": [ann_token(), boss_token()]},
        "servers": {"slow": {"command": "python3", "args": ["-c", SLOW_SERVER]}},
    }))?;
    let hub = home.serve().await?;
    let http = HttpClient::default();
    let ask = async |token: &str, method: &str, mut params: Value| -> Result<Value> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default().to_owned();
        let token = bearer(token);
        let headers = [
            ("authorization", token.as_str()),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        http.post(&hub.mcp_url(), &headers, &body).await?.next_message().await?.context("no answer")
    };
    let started = octo_tests::eventually("the call becomes a task", async || {
        let reply =
            ask(ANN_TOKEN, "tools/call", json!({"name": "slow__wait", "arguments": {}})).await.ok()?;
        reply["result"]["taskId"].as_str().or(reply["result"]["task"]["taskId"].as_str()).map(str::to_owned)
    })
    .await?;
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = json!({"taskId": started, "inputResponses": {}});
        let refused = ask(BOSS_TOKEN, method, params).await?;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    let own = ask(ANN_TOKEN, "tasks/get", json!({"taskId": started})).await?;
    assert!(own.get("error").is_none(), "{own}");
    Ok(())
}

/// Another tenant would learn which servers there are, and why they fail.
#[tokio::test]
async fn a_caller_learns_nothing_of_a_server_that_it_may_not_use() -> Result<()> {
    let home = HubHome::new(&json!({
        "auth": {"tokens": [ann_token(), boss_token()]},
        "policy": {"default": "deny", "rules": [
            {"name": "all", "callers": ["boss"], "decision": "allow"},
            {"name": "some", "tools": ["time_now", "tools_call"], "decision": "allow"},
        ]},
        "servers": {
            "payroll": {"command": "python3", "args": ["-c", SLOW_SERVER], "connect": "always"},
            "merger": {"url": "http://127.0.0.1:9/secret-path", "connect": "always"},
        },
    }))?;
    let hub = home.serve().await?;
    let ready = async |token: &str| -> Option<Value> {
        get_with_token(&format!("{}/ready", hub.base_url), token).await.ok()?.json().await.ok()
    };
    let source = |ready: &Value, name: &str| {
        ready["sources"].as_array().unwrap().iter().find(|source| source["name"] == name).cloned()
    };
    octo_tests::eventually("one server is ready, the other one down", async || {
        let ready = ready(BOSS_TOKEN).await?;
        let is_up = source(&ready, "payroll")?["tools"] == 1;
        (is_up && source(&ready, "merger")?["reason"].is_string()).then_some(())
    })
    .await?;
    let seen = ready(ANN_TOKEN).await.context("no answer")?;
    assert!(source(&seen, "time").is_some(), "{seen}");
    for hidden in ["payroll", "merger", "refused", "reason"] {
        assert!(!seen.to_string().contains(hidden), "{hidden}: {seen}");
    }
    let answer = async |tool: &str, arguments: Value| -> Result<String> {
        let (status, mut reply) = call_tool(&hub, ANN_TOKEN, tool, arguments.clone()).await?;
        // What differs from call to call.
        reply["metadata"]["call_id"].take();
        reply["execution_time_ms"].take();
        Ok(format!("{status} {reply}"))
    };
    let unknown = answer("nothing__wait", json!({"x": 1})).await?;
    assert!(unknown.starts_with("404 "), "{unknown}");
    let denied = answer("payroll__wait", json!({"x": 1})).await?;
    assert_eq!(denied.replace("payroll", "nothing"), unknown);
    let call = |name: &str| json!({"name": name, "arguments": {"x": 1}});
    let unknown = answer("tools_call", call("nothing__wait")).await?;
    let denied = answer("tools_call", call("payroll__wait")).await?;
    assert_eq!(denied.replace("payroll", "nothing"), unknown);
    // Who may see all servers learns which rule it is, and the audit log has it in any case.
    let (_, log, _) = home.run(&["audit", "tail", "--json"]).await?;
    assert!(log.lines().any(|line| line.contains("payroll/wait") && line.contains("\"denied\"")), "{log}");
    Ok(())
}

#[tokio::test]
async fn web_pages_cannot_reach_the_hub() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    let http = HttpClient::default();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}});
    for (headers, status) in [
        (vec![("origin", "https://evil.test")], 403),
        (vec![("origin", "null")], 403),
        (vec![("host", "evil.test")], 421),
    ] {
        let reply = http.post(&hub.mcp_url(), &headers, &body).await?;
        assert_eq!(reply.status, status, "{headers:?}");
    }
    // There is no WebSocket transport to reach.
    let upgrade = [
        ("origin", "https://evil.test"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "mcp"),
    ];
    for path in ["/mcp", "/ws", "/"] {
        let reply = http.get(&format!("{}{path}", hub.base_url), &upgrade).await?;
        assert!(reply.status != 101 && reply.status != 200, "{path}: {}", reply.status);
    }
    Ok(())
}
