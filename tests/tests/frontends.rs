//! Every frontend returns the same reply, the same refusal and the same audit record for every kind of target.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result, bail, ensure};
use octo_tests::fixture_process::FixtureServer;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LegacyClient, ModernClient, answer_nothing};
use octo_tests::stdio_client::StdioClient;
use octo_tests::test_binaries::binary_path;
use serde_json::{Value, json};

const FRONTENDS: [&str; 5] = ["cli", "stdio", "http 2025", "http 2026", "rest"];

/// Outcome of a call, independent of the frontend.
#[derive(Debug, PartialEq)]
enum Outcome {
    Success(Value),
    Failed(String),
    Refused { kind: String, message: String, hint: Value },
}

struct FrontendFixture {
    home: HubHome,
    server: RunningHub,
    _fixtures: [FixtureServer; 2],
}

async fn start_fixture() -> Result<FrontendFixture> {
    let (legacy, modern) =
        (FixtureServer::http("legacy", &[]).await?, FixtureServer::http("modern", &[]).await?);
    let fixture = binary_path("mcp-fixture")?;
    let home = HubHome::new(&json!({
        "servers": {
            "child": {"command": fixture, "args": ["stdio"]},
            "old": {"url": legacy.url},
            "new": {"url": modern.url},
        },
        "policy": {"rules": [
            {"name": "no-pid", "tools": ["*fix_pid", "time_list_timezones"], "decision": "deny", "hint": "Ask for something else."},
        ]},
    }))?;
    let server = home.serve().await?;
    Ok(FrontendFixture { home, server, _fixtures: [legacy, modern] })
}

impl FrontendFixture {
    async fn call(&self, face: &str, tool: &str, arguments: &Value) -> Result<Outcome> {
        let params = json!({"name": tool, "arguments": arguments});
        match face {
            "cli" => {
                let (_, out, err) =
                    self.home.run(&["call", tool, "--args", &arguments.to_string(), "--json"]).await?;
                rest_outcome(&serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?)
            }
            "rest" => {
                let url = format!("{}/tools/{tool}", self.server.base_url);
                rest_outcome(&HttpClient::default().post(&url, &[], arguments).await?.json().await?)
            }
            "stdio" => {
                let mut pipes = StdioClient::open(self.home.command(&["stdio"])?)?;
                pipes.initialize(json!({})).await?;
                let answer = pipes.call("tools/call", params, answer_nothing).await?;
                pipes.close().await?;
                mcp_outcome(&answer)
            }
            "http 2025" => {
                let client = LegacyClient::connect(&self.server.mcp_url(), json!({}), answer_nothing).await?;
                mcp_outcome(&client.call("tools/call", params).await?.answer)
            }
            _ => mcp_outcome(
                &ModernClient::new(&self.server.mcp_url(), json!({}), answer_nothing)
                    .request("tools/call", params)
                    .await?
                    .answer,
            ),
        }
    }
}

fn rest_outcome(reply: &Value) -> Result<Outcome> {
    if reply["success"] == true {
        return Ok(Outcome::Success(reply["result"].clone()));
    }
    let error = &reply["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    if error["kind"] == "failed" {
        return Ok(Outcome::Failed(text("message")));
    }
    Ok(Outcome::Refused { kind: text("kind"), message: text("message"), hint: error["hint"].clone() })
}

fn mcp_outcome(answer: &Value) -> Result<Outcome> {
    if let Some(error) = answer.get("error") {
        // A name that nobody has is the one refusal that MCP wants as a protocol error.
        let (message, hint) = (error["message"].as_str().unwrap_or_default(), error["data"]["hint"].clone());
        let message = message.strip_suffix(hint.as_str().unwrap_or_default()).unwrap_or(message).trim_end();
        return Ok(Outcome::Refused { kind: "not_found".into(), message: message.to_owned(), hint });
    }
    let result = answer.get("result").context("neither result nor error")?;
    if result["isError"] != true {
        return Ok(Outcome::Success(result["structuredContent"].clone()));
    }
    let described = &result["_meta"]["octoprox/error"];
    let text = |key: &str| described[key].as_str().unwrap_or_default().to_owned();
    if described.is_null() {
        return Ok(Outcome::Failed(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()));
    }
    Ok(Outcome::Refused { kind: text("kind"), message: text("message"), hint: described["hint"].clone() })
}

fn cases() -> Vec<(&'static str, String, Value)> {
    let convert =
        json!({"datetime": "2026-11-14T22:00:00", "from_timezone": "UTC", "to_timezone": "Asia/Tokyo"});
    let mut cases = vec![
        ("ok", "time_convert".to_owned(), convert),
        ("invalid", "time_convert".to_owned(), json!({"datetime": 3, "to_timezone": "UTC"})),
        ("denied", "time_list_timezones".to_owned(), json!({})),
        ("not_found", "time_convrt".to_owned(), json!({})),
    ];
    for server in ["child", "old", "new"] {
        cases.push(("ok", format!("{server}__fix_echo"), json!({"text": "hello \u{1F40B}"})));
        cases.push(("failed", format!("{server}__fix_fail"), json!({"message": "as asked"})));
        cases.push(("invalid", format!("{server}__fix_echo"), json!({"text": 3})));
        cases.push(("denied", format!("{server}__fix_pid"), json!({})));
    }
    cases
}

#[tokio::test]
async fn every_face_says_the_same_about_every_target() -> Result<()> {
    let bench = start_fixture().await?;
    for (outcome, tool, arguments) in cases() {
        let mut first: Option<(Outcome, Value)> = None;
        for face in FRONTENDS {
            let said = bench.call(face, &tool, &arguments).await.with_context(|| format!("{face} {tool}"))?;
            let line =
                audit_line(&bench.home, face, outcome).await.with_context(|| format!("{face} {tool}"))?;
            match &first {
                None => first = Some((said, line)),
                Some((expected, expected_line)) => {
                    ensure_same(expected, &said).with_context(|| format!("{face} {tool} {arguments}"))?;
                    assert_eq!(&line, expected_line, "{face} {tool} {arguments}");
                }
            }
        }
        let (said, _) = first.context("no face")?;
        let fits = match outcome {
            "ok" => matches!(said, Outcome::Success(_)),
            "failed" => matches!(said, Outcome::Failed(_)),
            kind => matches!(&said, Outcome::Refused { kind: given, .. } if given == kind),
        };
        assert!(fits, "{tool} {arguments}: {said:?} is not {outcome}");
    }
    let (code, out, err) = bench.home.run(&["audit", "verify"]).await?;
    assert_eq!(code, 0, "{out} {err}");
    Ok(())
}

fn ensure_same(expected: &Outcome, said: &Outcome) -> Result<()> {
    if expected == said { Ok(()) } else { bail!("expected {expected:?}, it said {said:?}") }
}

/// Arguments with one reading are coerced, and the caller is notified.
#[tokio::test]
async fn every_face_says_how_arguments_were_read() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let server = home.serve().await?;
    let arguments = json!({"pattern": "*.none", "max_results": "5"});
    let told = json!(["`max_results` read as an integer"]);

    let url = format!("{}/tools/fs_glob", server.base_url);
    let reply: Value = HttpClient::default().post(&url, &[], &arguments).await?.json().await?;
    ensure!(reply["success"] == true && reply["metadata"]["coerced"] == told, "{reply}");
    let (_, out, _) = home.run(&["call", "fs_glob", "--args", &arguments.to_string(), "--json"]).await?;
    let reply: Value = serde_json::from_str(&out)?;
    ensure!(reply["success"] == true && reply["metadata"]["coerced"] == told, "{reply}");

    let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let params = json!({"name": "fs_glob", "arguments": arguments});
    let result = client.request("tools/call", params).await?.answer["result"].clone();
    let last = result["content"].as_array().and_then(|blocks| blocks.last()).cloned().unwrap_or_default();
    ensure!(last["text"] == "[Arguments adjusted: `max_results` read as an integer.]", "{result}");
    ensure!(result["_meta"]["octoprox/coerced"] == told, "{result}");

    let both = json!({"path": "a.txt", "file_path": "b.txt"});
    let reply: Value = HttpClient::default()
        .post(&format!("{}/tools/fs_read_text", server.base_url), &[], &both)
        .await?
        .json()
        .await?;
    ensure!(reply["error"]["message"] == "`file_path` and `path` are the same parameter.", "{reply}");
    Ok(())
}

/// The newest opened and closed records of this frontend, without what differs by nature: frontend, time, ids.
async fn audit_line(home: &HubHome, face: &str, outcome: &str) -> Result<Value> {
    let face = face.split(' ').next().unwrap_or_default();
    octo_tests::eventually("the call is closed in the audit", async || {
        let records = home.audit_tail(6).await.ok()?;
        let opened =
            records.iter().rev().find(|record| record["kind"] == "open" && record["frontend"] == face)?;
        let closed =
            records.iter().find(|record| record["kind"] == "close" && record["call"] == opened["call"])?;
        (closed["outcome"] == outcome).then(|| {
            json!({
                "subject": opened["subject"], "method": opened["method"], "name": opened["name"],
                "arguments": opened["arguments"], "target": closed["target"], "rule": closed["rule"],
                "outcome": closed["outcome"],
            })
        })
    })
    .await
}

/// A message is refused for what it is, not for how it begins, and never uses more memory than its limit.
#[tokio::test]
async fn what_is_no_message_is_refused_over_http_and_stdio() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let server = home.serve().await?;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for (kind, status) in [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/jsonx", 415),
        ("application/json-patch+json", 415),
        ("text/plain", 415),
    ] {
        let headers = [("content-type", kind), ("accept", "application/json, text/event-stream")];
        let body = ping.clone().into();
        let answer = HttpClient::default().send("POST", &server.mcp_url(), &headers, body).await?;
        ensure!(answer.status == status, "{kind}: {}", answer.status);
    }
    let mut pipes = StdioClient::open(home.command(&["stdio"])?)?;
    pipes.initialize(json!({})).await?;
    let long = json!({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": "y".repeat(5 << 20)}});
    pipes.send(&long).await?;
    let refused = pipes.next_message().await?;
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    ensure!(why.contains("Send less at once"), "{refused}");
    let alive = pipes.call("ping", json!({}), answer_nothing).await?;
    ensure!(alive["result"] == json!({}), "{alive}");
    pipes.close().await
}

/// A page whose screenshot is larger than the text limit of a reply.
const NOISE_PAGE: &str = "<!doctype html><title>Noise</title><body style='margin:0'><canvas id=c width=1280 height=720></canvas>\
<script>const x = c.getContext('2d'), d = x.createImageData(1280, 720); let s = 7; for (let i = 0; i < d.data.length; i++) \
{ s = (Math.imul(s, 1103515245) + 12345) & 0x7fffffff; d.data[i] = i % 4 === 3 ? 255 : (s >> 16) & 255 } x.putImageData(d, 0, 0)</script>";

#[tokio::test]
async fn pictures_come_over_every_face() -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let page = format!("http://{}/", listener.local_addr()?);
    let noise = axum::Router::new().fallback(|| async { axum::response::Html(NOISE_PAGE) });
    tokio::spawn(async move { axum::serve(listener, noise).await });
    let home = HubHome::new(&json!({"net": {"allow": ["127.0.0.1"]}, "toolboxes": {"browser": true}}))?;
    let server = home.serve().await?;
    let open = json!({"url": page, "screenshot": true});
    let (navigate, take) = ("browser_navigate", "browser_screenshot");
    let post = async |tool: &str, arguments: &Value| -> Result<Value> {
        let url = format!("{}/tools/{tool}", server.base_url);
        HttpClient::default().post(&url, &[], arguments).await?.json().await
    };
    let opened = post(navigate, &open).await?;
    check_picture(&opened["metadata"]["content"]).with_context(|| format!("{:.300}", opened.to_string()))?;
    assert!(opened["result"]["title"] == "Noise" && opened["metadata"]["truncated"] != true);
    let taken = post(take, &json!({})).await?;
    check_picture(&taken["result"]["content"])?;
    let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    for (tool, arguments) in [(navigate, open), (take, json!({"full_page": true}))] {
        check_picture(&client.call_tool(tool, arguments).await?.result()?["content"])?;
    }
    Ok(())
}

fn check_picture(content: &Value) -> Result<()> {
    let blocks = content.as_array().context("no content")?;
    let picture = blocks.iter().find(|block| block["type"] == "image").context("no picture")?;
    ensure!(picture["data"].as_str().is_some_and(|data| data.len() > 100_000), "a small picture");
    Ok(())
}
