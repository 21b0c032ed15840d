//! Upstream servers: pages, hangs, crashes, questions, cancellation.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "upstream_failures/server_questions.rs"]
mod server_questions;
#[path = "upstream_failures/sse_upstream.rs"]
mod sse_upstream;

use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::fixture_process::FixtureServer;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LegacyClient, ModernClient, accept_all, answer_nothing};
use octo_tests::stdio_client::StdioClient;
use octo_tests::test_binaries::binary_path;
use serde_json::{Value, json};
use sse_upstream::SseUpstream;
use std::time::{Duration, Instant};

async fn tool_names(server: &RunningHub) -> Result<Vec<String>> {
    let turn = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing)
        .request("tools/list", json!({}))
        .await?;
    let tools = turn.result()?["tools"].as_array().context("no tools")?.clone();
    Ok(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
}

fn fixture_entry(options: &[&str]) -> Result<Value> {
    let mut args = vec!["stdio"];
    args.extend_from_slice(options);
    Ok(json!({"command": binary_path("mcp-fixture")?, "args": args}))
}

#[tokio::test]
async fn every_page_is_followed() -> Result<()> {
    let home =
        HubHome::new(&json!({"servers": {"paged": fixture_entry(&["--pages", "5", "--per-page", "100"])?}}))?;
    let server = home.serve().await?;
    server.until_listed("paged__page_tool_0001").await?;
    let listed = tool_names(&server).await?;
    assert_eq!(listed.iter().filter(|name| name.starts_with("paged__page_tool_")).count(), 500);
    Ok(())
}

#[tokio::test]
async fn one_that_never_lists_delays_nobody() -> Result<()> {
    let home = HubHome::new(
        &json!({"servers": {"hangs": fixture_entry(&["--hang-list"])?, "works": fixture_entry(&[])?}}),
    )?;
    let server = home.serve().await?;
    // How soon the other child is ready depends on the machine; that no list waits for the first does not.
    eventually("the other server is listed", async || {
        let begun = Instant::now();
        let listed = tool_names(&server).await.ok()?;
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
        assert!(listed.contains(&"time_now".to_owned()));
        listed.contains(&"works__fix_echo".to_owned()).then_some(())
    })
    .await
}

async fn echo(client: &LegacyClient, tool: &str) -> Result<()> {
    let turn = client.call_tool(tool, json!({"text": "still here"})).await?;
    assert_eq!(turn.result()?["structuredContent"]["text"], "still here", "{}", turn.answer);
    Ok(())
}

#[tokio::test]
async fn one_killed_while_idle_is_back_for_the_next_call() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {"child": fixture_entry(&[])?}}))?;
    let server = home.serve().await?;
    let client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    for _ in 0..3 {
        let turn = client.call_tool("child__fix_pid", json!({})).await?;
        let pid = turn.result()?["structuredContent"]["pid"].as_i64().context("no pid")?;
        let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status()?;
        assert!(killed.success());
        // A process that was told to end can still read a little.
        let place = format!("/proc/{pid}");
        eventually("it is gone", async || (!std::path::Path::new(&place).exists()).then_some(())).await?;
        echo(&client, "child__fix_echo").await?;
    }
    Ok(())
}

#[tokio::test]
async fn one_that_restarts_or_forgets_its_sessions_is_not_noticed() -> Result<()> {
    let mut upstream = FixtureServer::http("legacy", &["--expire-sessions"]).await?;
    let home = HubHome::new(&json!({"servers": {"web": {"url": upstream.url}}}))?;
    let server = home.serve().await?;
    let client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    echo(&client, "web__fix_echo").await?;
    client.call_tool("web__fix_expire", json!({})).await?;
    echo(&client, "web__fix_echo").await?;
    let port: u16 = upstream.url.split(&[':', '/']).find_map(|part| part.parse().ok()).context("no port")?;
    upstream.process.kill().await?;
    upstream = FixtureServer::http_at(port, "legacy", &[]).await?;
    echo(&client, "web__fix_echo").await?;
    drop(upstream);
    Ok(())
}

/// Over HTTP+SSE all calls share a stream, and a lost session ends it for all of them.
#[tokio::test]
async fn a_running_call_is_not_repeated_because_another_one_was_refused() -> Result<()> {
    let upstream = SseUpstream::start().await?;
    let home = HubHome::new(&json!({"servers": {"old": {"url": upstream.url, "type": "sse"}}}))?;
    let server = home.serve().await?;
    server.until_listed("old__forget").await?;
    let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let running = client.call_tool("old__wait", json!({}));
    let refused = async {
        eventually("the first call runs", async || (upstream.waiting_calls() == 1).then_some(())).await?;
        client.call_tool("old__forget", json!({})).await
    };
    let (running, refused) = tokio::try_join!(running, refused)?;
    assert_eq!(refused.result()?["content"][0]["text"], "forgotten", "{}", refused.answer);
    assert!(running.answer.to_string().contains("may have taken effect"), "{}", running.answer);
    assert_eq!(upstream.waiting_calls(), 1);
    Ok(())
}

/// Both eras on both sides, and stdio: a question reaches the person, and the answer the server.
#[tokio::test]
async fn questions_cross_every_pair_of_eras() -> Result<()> {
    let (legacy, modern) =
        (FixtureServer::http("legacy", &[]).await?, FixtureServer::http("modern", &[]).await?);
    let mut servers = json!({
        "old": {"url": legacy.url}, "new": {"url": modern.url},
        "pipe25": fixture_entry(&["legacy"])?, "pipe26": fixture_entry(&["modern"])?,
    });
    for (_, server) in servers.as_object_mut().context("no servers")? {
        server["questions"] = json!(["elicitation", "sampling", "roots"]);
    }
    let home = HubHome::new(&json!({"servers": servers}))?;
    let server = home.serve().await?;
    let able = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let old_client = LegacyClient::connect(&server.mcp_url(), able.clone(), accept_all).await?;
    let new_client = ModernClient::new(&server.mcp_url(), able.clone(), accept_all);
    let mut pipes = StdioClient::open(home.command(&["stdio"])?)?;
    pipes.initialize(able).await?;
    for target in ["old", "new", "pipe25", "pipe26"] {
        for (tool, arguments, expected) in [
            ("fix_ask", json!({"question": "what?"}), "forty-two"),
            ("fix_sample", json!({"prompt": "say"}), "sampled"),
        ] {
            let params = json!({"name": format!("{target}__{tool}"), "arguments": arguments});
            let answers = [
                old_client.call("tools/call", params.clone()).await?.answer,
                new_client.call("tools/call", params.clone()).await?.answer,
                pipes.call("tools/call", params.clone(), accept_all).await?,
            ];
            for answer in answers {
                assert!(answer["result"].to_string().contains(expected), "{target} {tool}: {answer}");
                assert_ne!(answer["result"]["isError"], true, "{target} {tool}: {answer}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so() -> Result<()> {
    let legacy = FixtureServer::http("legacy", &[]).await?;
    let home =
        HubHome::new(&json!({"servers": {"old": {"url": legacy.url}, "pipe": fixture_entry(&["legacy"])?}}))?;
    let server = home.serve().await?;
    let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    for target in ["old", "pipe"] {
        let turn = client.call_tool(&format!("{target}__fix_ask"), json!({"question": "what?"})).await?;
        let failed = turn.answer.get("error").is_some() || turn.answer["result"]["isError"] == true;
        assert!(failed, "{}", turn.answer);
    }
    Ok(())
}

#[tokio::test]
async fn progress_comes_back_under_the_clients_own_token() -> Result<()> {
    let (legacy, modern) =
        (FixtureServer::http("legacy", &[]).await?, FixtureServer::http("modern", &[]).await?);
    let home = HubHome::new(&json!({"servers": {
        "old": {"url": legacy.url}, "new": {"url": modern.url}, "pipe": fixture_entry(&[])?,
    }}))?;
    let server = home.serve().await?;
    let old_client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let new_client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    for target in ["old", "new", "pipe"] {
        let params = json!({
            "name": format!("{target}__fix_progress"), "arguments": {"steps": 4}, "_meta": {"progressToken": "mine"},
        });
        for turn in [
            old_client.call("tools/call", params.clone()).await?,
            new_client.call("tools/call", params.clone()).await?,
        ] {
            let notices = turn.notifications("notifications/progress");
            assert!(notices.len() >= 3, "{target}: {turn:?}");
            assert!(
                notices.iter().all(|notice| notice["params"]["progressToken"] == "mine"),
                "{target}: {turn:?}"
            );
        }
    }
    Ok(())
}

/// Counts of calls of `fix_sleep` at one server: begun, cancelled.
async fn sleep_count(client: &ModernClient, target: &str, name: &str) -> Option<u64> {
    let turn = client.call_tool(&format!("{target}__fix_cancelled"), json!({})).await.ok()?;
    turn.result().ok()?["structuredContent"][name].as_u64()
}

/// Of three servers only the called one is notified of the cancellation.
#[tokio::test]
async fn cancellation_is_exact() -> Result<()> {
    const TARGETS: [&str; 3] = ["old", "new", "pipe"];
    let (legacy, modern) =
        (FixtureServer::http("legacy", &[]).await?, FixtureServer::http("modern", &[]).await?);
    let home = HubHome::new(&json!({"servers": {
        "old": {"url": legacy.url}, "new": {"url": modern.url}, "pipe": fixture_entry(&[])?,
    }}))?;
    let server = home.serve().await?;
    let new_client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let old_client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let observer = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let mut expected = [0, 0, 0];
    for (at, target) in TARGETS.into_iter().enumerate() {
        let params = json!({"name": format!("{target}__fix_sleep"), "arguments": {"ms": 300_000}});
        let begins = async |count| {
            eventually("the call runs", async || {
                (sleep_count(&observer, target, "begun").await? == count).then_some(())
            })
            .await
        };
        let cancelled = async |expected: [u64; 3]| {
            eventually("only the called server is notified", async || {
                let mut counts = [0; 3];
                for (count, target) in counts.iter_mut().zip(TARGETS) {
                    *count = sleep_count(&observer, target, "cancelled").await?;
                }
                (counts == expected).then_some(())
            })
            .await
        };
        // A modern client's disconnect is a cancel.
        tokio::select! {
            turn = new_client.request("tools/call", params.clone()) => panic!("{target}: {turn:?}"),
            begun = begins(1) => begun?,
        }
        expected[at] = 1;
        cancelled(expected).await?;
        // A legacy client says so, and stays connected.
        let mut call = std::pin::pin!(old_client.call_with_id(json!("to-cancel"), "tools/call", params));
        tokio::select! {
            turn = &mut call => panic!("{target}: {turn:?}"),
            begun = begins(2) => begun?,
        }
        expected[at] = 2;
        let notified = async {
            old_client.notify("notifications/cancelled", json!({"requestId": "to-cancel"})).await?;
            cancelled(expected).await
        };
        // The cancelled call gets no reply, or an end of its stream.
        let (notified, _) = tokio::join!(notified, tokio::time::timeout(Duration::from_secs(2), call));
        notified?;
    }
    Ok(())
}

#[tokio::test]
async fn list_changes_reach_clients_of_both_eras() -> Result<()> {
    let modern = FixtureServer::http("modern", &[]).await?;
    let home =
        HubHome::new(&json!({"servers": {"new": {"url": modern.url}, "pipe": fixture_entry(&["legacy"])?}}))?;
    let server = home.serve().await?;
    let old_client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let new_client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let session = [("mcp-session-id", old_client.session.as_str()), ("accept", "text/event-stream")];
    let mut old_stream = old_client.http.get(&server.mcp_url(), &session).await?;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut new_stream = new_client.post("subscriptions/listen", wanted).await?;
    let ack = new_stream.next_message().await?.context("no acknowledgement")?;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    for target in ["new", "pipe"] {
        new_client.call_tool(&format!("{target}__test_trigger_tool_change"), json!({})).await?;
        for stream in [&mut old_stream, &mut new_stream] {
            let message = tokio::time::timeout(Duration::from_secs(5), stream.next_message()).await??;
            assert_eq!(message.context("the stream ended")?["method"], "notifications/tools/list_changed");
        }
    }
    Ok(())
}

/// Over HTTP: a session, and a client without one.
#[tokio::test]
async fn lists_over_http_only_grow() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {"up": fixture_entry(&[])?}}))?;
    let server = home.serve().await?;
    let legacy = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let modern = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let lists = async || -> Result<[String; 2]> {
        let legacy = legacy.call("tools/list", json!({})).await?.result()?["tools"].to_string();
        Ok([legacy, modern.call("tools/list", json!({})).await?.result()?["tools"].to_string()])
    };
    octo_tests::eventually("the server is listed", async || {
        lists().await.ok()?.iter().all(|list| list.contains("up__fix_echo")).then_some(())
    })
    .await?;
    let before = lists().await?;
    assert!(!before[0].contains("test_dynamic_tool"));
    modern.call_tool("up__test_trigger_tool_change", json!({})).await?;
    let after = octo_tests::eventually("the tool is appended", async || {
        lists().await.ok().filter(|lists| lists.iter().all(|list| list.contains("test_dynamic_tool")))
    })
    .await?;
    for (before, after) in before.iter().zip(&after) {
        assert!(after.starts_with(before.trim_end_matches(']')), "{after}");
    }
    modern.call_tool("up__test_trigger_tool_change", json!({})).await?;
    octo_tests::eventually("a new session does not list it", async || {
        let fresh = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await.ok()?;
        let listed = fresh.call("tools/list", json!({})).await.ok()?.result().ok()?["tools"].to_string();
        (!listed.contains("test_dynamic_tool")).then_some(())
    })
    .await?;
    assert_eq!(lists().await?, after, "the others still do");
    let turn = legacy.call("tools/call", json!({"name": "up__test_dynamic_tool", "arguments": {}})).await?;
    assert!(turn.answer.to_string().contains("not found"), "{}", turn.answer);
    Ok(())
}

#[tokio::test]
async fn a_call_reports_that_its_server_starts() -> Result<()> {
    let fixture = binary_path("mcp-fixture")?;
    let script = format!("sleep 1; exec {} stdio", fixture.display());
    let home = HubHome::new(&json!({"servers": {"slow": {"command": "sh", "args": ["-c", script]}}}))?;
    // The first start lists the tools.
    let (code, out, err) = home.run(&["tools"]).await?;
    assert!(code == 0 && out.contains("slow__fix_echo"), "{out} {err}");
    let mut session = StdioClient::open(home.command(&["stdio"])?)?;
    session.initialize(json!({})).await?;
    let params =
        json!({"name": "slow__fix_echo", "arguments": {"text": "x"}, "_meta": {"progressToken": "p"}});
    session.send(&json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params})).await?;
    let mut messages = Vec::new();
    loop {
        let message = session.next_message().await?;
        if message["id"] == "c" {
            assert_eq!(message["result"]["structuredContent"]["text"], "x", "{message}");
            break;
        }
        messages.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
    }
    assert!(messages.iter().any(|message| message == "`slow`: Starting slow"), "{messages:?}");
    Ok(())
}

/// A client whose connection broke can reconnect immediately; a second stream beside an open one is refused.
#[tokio::test]
async fn a_session_has_one_stream_and_may_open_it_again() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let server = home.serve().await?;
    let client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let session = [("mcp-session-id", client.session.as_str()), ("accept", "text/event-stream")];
    for _ in 0..20 {
        let stream = client.http.get(&server.mcp_url(), &session).await?;
        assert_eq!(stream.status, 200);
    }
    let open = client.http.get(&server.mcp_url(), &session).await?;
    assert_eq!(client.http.get(&server.mcp_url(), &session).await?.status, 409);
    drop(open);
    Ok(())
}

#[tokio::test]
async fn a_child_sees_nothing_of_the_hub() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {"child": {
        "command": binary_path("mcp-fixture")?, "args": ["stdio"], "env": {"GIVEN": "yes"},
    }}}))?;
    let mut command = home.command(&["call", "child__fix_env", "--json"])?;
    command.env("CANARY_SECRET", "sesame").env("OCTOPROX_ENABLE_TIME", "true");
    let output = command.output().await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("GIVEN"), "{text}");
    assert!(!text.contains("CANARY") && !text.contains("OCTOPROX"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_very_large_result_is_kept_whole_and_read_in_parts() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {"child": fixture_entry(&[])?}}))?;
    let server = home.serve().await?;
    let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let turn = client.call_tool("child__fix_big", json!({"bytes": 60_000_000})).await?;
    let result = turn.result()?;
    assert!(result.to_string().len() < 120_000);
    let handle = result["_meta"]["octoprox/result_handle"].as_str();
    let handle = handle.with_context(|| format!("no handle: {result}"))?;
    let turn = client
        .call_tool("result_read", json!({"handle": handle, "from_byte": 59_999_990, "bytes": 100}))
        .await?;
    let read = &turn.result()?["structuredContent"];
    assert_eq!(read["text"].as_str().map(str::len), Some(10), "{read}");
    assert!(read.get("next").is_none());
    Ok(())
}

/// Hints for a call of a missing tool, over REST and in both eras of MCP.
async fn missing_tool_hints(server: &RunningHub, tool: &str) -> Result<Vec<String>> {
    let rest = async {
        let url = format!("{}/tools/{tool}", server.base_url);
        HttpClient::default().post(&url, &[], &json!({})).await
    };
    let legacy = async {
        let client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
        client.call_tool(tool, json!({})).await
    };
    let modern = async {
        ModernClient::new(&server.mcp_url(), json!({}), answer_nothing).call_tool(tool, json!({})).await
    };
    let (rest, legacy, modern) = tokio::try_join!(rest, legacy, modern)?;
    let mut hints = vec![rest.json().await?["error"]["hint"].as_str().unwrap_or_default().to_owned()];
    for turn in [legacy, modern] {
        let error = &turn.answer["error"];
        let (message, hint) = (error["message"].as_str(), error["data"]["hint"].as_str());
        let (message, hint) = (message.unwrap_or_default(), hint.unwrap_or_default());
        assert_eq!(error["code"], -32602, "{}", turn.answer);
        assert!(message.starts_with("Tool not found: ") && message.ends_with(hint), "{}", turn.answer);
        hints.push(hint.to_owned());
    }
    Ok(hints)
}

#[tokio::test]
async fn an_agent_is_told_why_a_tool_is_not_there() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {
        "sentry": {"url": "http://127.0.0.1:9/mcp"},
        "slow": fixture_entry(&["--hang-list"])?,
        "hubmcp": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${GITHUB_MCP_TOKEN}"}},
    }}))?;
    let server = home.serve().await?;
    let rows = [
        ("tme_now", "Did you mean `time_now`?"),
        ("sentry__whoami", "The server `sentry` is down: "),
        ("slow__list", "The server `slow` is still starting. Try again in a few seconds."),
        (
            "hubmcp__search",
            "The server `hubmcp` is not connected: set GITHUB_MCP_TOKEN where octoprox is started.",
        ),
    ];
    // Each waits for the server that is still starting, so all of them wait at once.
    let hints =
        futures_util::future::try_join_all(rows.map(|(tool, _)| missing_tool_hints(&server, tool))).await?;
    for ((tool, wanted), hints) in rows.iter().zip(hints) {
        for hint in hints {
            assert!(hint.starts_with(wanted), "{tool}: {hint}");
        }
    }
    Ok(())
}
