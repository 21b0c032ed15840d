//! `octoprox bridge`: a stdio client, the real binary, and a remote that is a hub or a server built on the official
//! SDK.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "../peers/peer_scripts.rs"]
mod peer_scripts;

use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::fixture_process::FixtureServer;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{
    Exchange, LEGACY, LegacyClient, MODERN, ModernClient, accept_all, answer_nothing,
};
use octo_tests::stdio_client::StdioClient;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::process::Command;

const TOKEN: &str = "octo_a-token-that-only-this-test-knows";
const LIST_METHODS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

/// A bridge with its own home, whose stderr goes to a file.
struct RunningBridge {
    home: HubHome,
    pipes: StdioClient,
}

impl RunningBridge {
    fn open(args: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let home = HubHome::new(&json!({"net": {"allow": ["127.0.0.1"]}}))?;
        let said = stderr_file(&home);
        let inner = home.command(&[&["bridge"], args].concat())?;
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 2>\"$0\""]).arg(said).arg(inner.as_std().get_program());
        command.args(inner.as_std().get_args()).env_clear().current_dir(home.dir.path());
        let known = inner.as_std().get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(known).envs(variables.iter().copied()).kill_on_drop(true);
        let pipes = StdioClient::open(command)?;
        Ok(Self { home, pipes })
    }

    async fn legacy(args: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let mut bridge = Self::open(args, variables)?;
        bridge.pipes.initialize(all_capabilities()).await?;
        Ok(bridge)
    }

    fn stderr_text(&self) -> String {
        std::fs::read_to_string(stderr_file(&self.home)).unwrap_or_default()
    }

    /// Sends a request in an era and answers questions.
    async fn request(&mut self, era: &str, method: &str, params: Value) -> Result<Value> {
        if era == LEGACY {
            return self.pipes.call(method, params, accept_all).await;
        }
        let words = ModernClient::new("", all_capabilities(), accept_all);
        let mut params = words.params(params);
        for _ in 0..8 {
            let answer = self.pipes.call(method, params.clone(), accept_all).await?;
            let result = &answer["result"];
            if result["resultType"] != "input_required" {
                return Ok(answer);
            }
            let mut answers = serde_json::Map::new();
            for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
                let asked = request["method"].as_str().unwrap_or_default();
                answers.insert(key.clone(), accept_all(asked, &request["params"]));
            }
            params["inputResponses"] = Value::Object(answers);
            if let Some(members) = params.as_object_mut() {
                members.remove("requestState");
                members.extend(
                    result.get("requestState").map(|state| ("requestState".to_owned(), state.clone())),
                );
            }
        }
        anyhow::bail!("it keeps asking")
    }

    async fn tool(&mut self, era: &str, name: &str, arguments: Value) -> Result<Value> {
        self.request(era, "tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Until the remote fixture has counted one call of `fix_sleep` under this name.
    async fn until_counted(&mut self, name: &str) -> Result<()> {
        eventually(name, async || {
            let answer = self.tool(LEGACY, "fix_cancelled", json!({})).await.ok()?;
            (answer["result"]["structuredContent"][name] == 1).then_some(())
        })
        .await
    }

    /// Names of all four lists.
    async fn lists(&mut self, era: &str) -> Result<Vec<Vec<String>>> {
        let mut all = Vec::new();
        for (method, member, key) in LIST_METHODS {
            let answer = self.request(era, method, json!({})).await?;
            all.push(item_names(&answer["result"][member], key));
        }
        Ok(all)
    }
}

fn stderr_file(home: &HubHome) -> PathBuf {
    home.dir.path().join("said")
}

fn all_capabilities() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn item_names(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item[key].as_str().map(str::to_owned)).collect()
}

/// Sends a request without a bridge.
async fn request_directly(url: &str, era: &str, method: &str, params: Value) -> Result<Exchange> {
    if era == "legacy" {
        LegacyClient::connect(url, all_capabilities(), accept_all).await?.call(method, params).await
    } else {
        ModernClient::new(url, all_capabilities(), accept_all).call(method, params).await
    }
}

async fn list_directly(url: &str, era: &str) -> Result<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for (method, member, key) in LIST_METHODS {
        all.push(item_names(&request_directly(url, era, method, json!({})).await?.result()?[member], key));
    }
    Ok(all)
}

/// A hub that requires a token, at a fixed port.
async fn start_hub(home: &HubHome, port: u16) -> Result<tokio::process::Child> {
    let port = port.to_string();
    let process = home.command(&["serve", "--port", &port])?.env("GATEWAY_TOKEN", TOKEN).spawn()?;
    let http = octo_tests::http_client::HttpClient::default();
    eventually("the hub answers", async || {
        let answer = http.get(&format!("http://127.0.0.1:{port}/health"), &[]).await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await?;
    Ok(process)
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[tokio::test]
async fn clients_of_both_eras_see_remotes_of_both_eras_as_they_are() -> Result<()> {
    for remote in ["legacy", "modern"] {
        let fixture = FixtureServer::http(remote, &[]).await?;
        let direct = list_directly(&fixture.url, remote).await?;
        ensure!(direct.iter().all(|list| !list.is_empty()), "{direct:?}");
        for era in [LEGACY, MODERN] {
            let mut bridge = RunningBridge::open(&[&fixture.url], &[])?;
            if era == LEGACY {
                bridge.pipes.initialize(all_capabilities()).await?;
            }
            let through = bridge.lists(era).await?;
            assert_eq!(through, direct, "{era} to {remote}");
            for (tool, arguments, expected) in [
                ("fix_echo", json!({"text": "hello \u{1F40B}"}), "hello \u{1F40B}"),
                ("fix_ask", json!({"question": "what?"}), "forty-two"),
                ("fix_sample", json!({"prompt": "say"}), "sampled"),
            ] {
                let answer = bridge.tool(era, tool, arguments).await?;
                assert!(
                    answer["result"].to_string().contains(expected),
                    "{era} to {remote} {tool}: {answer}"
                );
                assert_ne!(answer["result"]["isError"], true, "{era} to {remote} {tool}: {answer}");
            }
            let prompt = bridge.request(era, "prompts/get", json!({"name": "test_simple_prompt"})).await?;
            assert!(prompt["result"]["messages"].is_array(), "{prompt}");
            let read = bridge.request(era, "resources/read", json!({"uri": "test://static-text"})).await?;
            assert!(read["result"]["contents"].is_array(), "{read}");
            let typed = json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                "argument": {"name": "arg1", "value": ""}});
            let completed = bridge.request(era, "completion/complete", typed).await?;
            assert!(completed["result"]["completion"]["values"].is_array(), "{completed}");
            // What the remote does not know, it says itself.
            let unknown = bridge.tool(era, "no_such_tool", json!({})).await?;
            assert!(
                unknown.to_string().contains("no_such_tool") || unknown.get("error").is_some(),
                "{unknown}"
            );
            bridge.pipes.close().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn progress_logs_and_cancellation_pass() -> Result<()> {
    for remote in ["legacy", "modern"] {
        let fixture = FixtureServer::http(remote, &[]).await?;
        let mut bridge = RunningBridge::legacy(&[&fixture.url], &[]).await?;
        bridge.pipes.call("logging/setLevel", json!({"level": "debug"}), answer_nothing).await?;
        let params =
            json!({"name": "fix_progress", "arguments": {"steps": 4}, "_meta": {"progressToken": "mine"}});
        let call = json!({"jsonrpc": "2.0", "id": "p", "method": "tools/call", "params": params});
        bridge.pipes.send(&call).await?;
        let mut progress = 0;
        loop {
            let message = bridge.pipes.next_message().await?;
            if message["id"] == "p" {
                break;
            }
            if message["method"] == "notifications/progress" {
                assert_eq!(message["params"]["progressToken"], "mine");
                progress += 1;
            }
        }
        assert!(progress >= 3, "{remote}: {progress}");
        let call = json!({"jsonrpc": "2.0", "id": "l", "method": "tools/call", "params": {"name": "test_tool_with_logging", "arguments": {}}});
        bridge.pipes.send(&call).await?;
        let mut logs = 0;
        loop {
            let message = bridge.pipes.next_message().await?;
            if message["id"] == "l" {
                break;
            }
            logs += usize::from(message["method"] == "notifications/message");
        }
        assert!(logs >= 1, "{remote}: no log line came through");
        let sleep = json!({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {"name": "fix_sleep", "arguments": {"ms": 60_000}}});
        bridge.pipes.send(&sleep).await?;
        bridge.until_counted("begun").await.context(remote)?;
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}});
        bridge.pipes.send(&cancel).await?;
        bridge.until_counted("cancelled").await.context(remote)?;
    }
    Ok(())
}

#[tokio::test]
async fn changes_of_lists_pass() -> Result<()> {
    for remote in ["legacy", "modern"] {
        let fixture = FixtureServer::http(remote, &[]).await?;
        let mut bridge = RunningBridge::legacy(&[&fixture.url], &[]).await?;
        let before = bridge.lists(LEGACY).await?;
        let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "test_trigger_tool_change", "arguments": {}}});
        bridge.pipes.send(&call).await?;
        let changed = async {
            loop {
                if bridge.pipes.next_message().await?["method"] == "notifications/tools/list_changed" {
                    return anyhow::Ok(());
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), changed).await.with_context(|| remote.to_owned())??;
        let after = bridge.lists(LEGACY).await?;
        assert_ne!(before[0], after[0], "{remote}");
    }
    Ok(())
}

#[tokio::test]
async fn a_hub_that_was_gone_is_found_again() -> Result<()> {
    let (home, port) = (HubHome::new(&json!({"admin": {"enabled": false}}))?, free_port()?);
    let mut process = start_hub(&home, port).await?;
    let url = format!("http://127.0.0.1:{port}");
    let mut bridge = RunningBridge::legacy(&[&url, "--token-env", "HUB"], &[("HUB", TOKEN)]).await?;
    let lists = bridge.lists(LEGACY).await?;
    assert!(lists[0].contains(&"time_now".to_owned()) && lists[0].contains(&"result_read".to_owned()));
    let now = json!({"timezone": "UTC"});
    let answer = bridge.tool(LEGACY, "time_now", now.clone()).await?;
    assert_eq!(answer["result"]["structuredContent"]["timezone"], "UTC", "{answer}");
    process.kill().await?;
    let answer = bridge.tool(LEGACY, "time_now", now.clone()).await?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer.to_string();
    assert!(text.contains(&url) && (text.contains("reached") || text.contains("running")), "{text}");
    let mut process = start_hub(&home, port).await?;
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = bridge.tool(LEGACY, "time_now", now.clone()).await?;
        if answer["result"]["isError"] != true {
            break;
        }
        ensure!(Instant::now() < deadline, "{answer}");
    }
    // The person hears of the loss and of the return, and not of what is only the hub's own concern.
    eventually("the return is told", async || bridge.stderr_text().contains("is connected.").then_some(()))
        .await?;
    let said = bridge.stderr_text();
    assert!(said.contains("cannot be reached") && !said.contains("another source"), "{said}");
    bridge.pipes.close().await?;
    process.kill().await?;
    Ok(())
}

/// Many clients request lists only once, so a hub that starts later announces itself.
#[tokio::test]
async fn a_hub_that_comes_later_is_served_then() -> Result<()> {
    let (home, port) = (HubHome::new(&json!({"admin": {"enabled": false}}))?, free_port()?);
    let url = format!("http://127.0.0.1:{port}");
    let mut bridge = RunningBridge::legacy(&[&url, "--token-env", "HUB"], &[("HUB", TOKEN)]).await?;
    assert!(bridge.lists(LEGACY).await?[0].is_empty());
    let mut process = start_hub(&home, port).await?;
    let changed = async {
        while bridge.pipes.next_message().await?["method"] != "notifications/tools/list_changed" {}
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(40), changed).await??;
    assert!(bridge.lists(LEGACY).await?[0].contains(&"time_now".to_owned()));
    process.kill().await?;
    Ok(())
}

#[tokio::test]
async fn a_wrong_token_is_said_and_not_shown() -> Result<()> {
    let (home, port) = (HubHome::new(&json!({"admin": {"enabled": false}}))?, free_port()?);
    let _process = start_hub(&home, port).await?;
    let url = format!("http://127.0.0.1:{port}");
    let wrong = "octo_not-the-token-of-this-hub";
    for (args, says) in [
        (&["--token-env", "HUB"][..], "the environment variable HUB"),
        (&["--header", "Authorization: env:HUB"], "--header"),
        (&["--header", "X-Api-Key: env:HUB"], "--header"),
    ] {
        let args = [&[url.as_str()], args].concat();
        let mut bridge = RunningBridge::legacy(&args, &[("HUB", wrong)]).await?;
        let answer = bridge.tool(LEGACY, "time_now", json!({})).await?;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(answer.to_string().contains("unauthorized") && answer.to_string().contains(says), "{answer}");
        eventually("the person is told", async || bridge.stderr_text().contains(says).then_some(())).await?;
        assert!(
            !bridge.stderr_text().contains(wrong) && !answer.to_string().contains(wrong),
            "{}",
            bridge.stderr_text()
        );
        let pid = bridge.pipes.process.id().context("it has ended")?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline"))?;
        assert!(!String::from_utf8_lossy(&words).contains(wrong));
    }
    Ok(())
}

#[tokio::test]
async fn a_profile_of_the_hub_is_served() -> Result<()> {
    let home =
        HubHome::new(&json!({"admin": {"enabled": false}, "profiles": {"clock": {"tools": ["time_now"]}}}))?;
    let port = free_port()?;
    let _process = start_hub(&home, port).await?;
    let url = format!("http://127.0.0.1:{port}/");
    let mut bridge =
        RunningBridge::legacy(&[&url, "--profile", "clock", "--token-env", "HUB"], &[("HUB", TOKEN)]).await?;
    assert_eq!(bridge.lists(LEGACY).await?[0], ["time_now"]);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_bridged_is_refused_with_a_reason() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    for (args, says) in [
        (&["bridge", "hub.example.com"][..], "Write it like https://"),
        (&["bridge", "https://a:b@hub.example.com"], "--token-env"),
        (&["bridge", "https://hub.example.com/x", "--profile", "p"], "--profile"),
        (&["bridge", "https://hub.example.com", "--token-env", "NOT_THERE"], "NOT_THERE is not set"),
        (&["bridge", "https://hub.example.com", "--header", "nothing"], "a colon"),
    ] {
        let (code, out, err) = home.run(args).await?;
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(out.is_empty() && err.contains(says), "{args:?}: {err}");
    }
    Ok(())
}

/// Results of any size pass unchanged: truncation is up to the remote.
#[tokio::test]
async fn large_results_pass_whole() -> Result<()> {
    let fixture = FixtureServer::http("modern", &[]).await?;
    let mut bridge = RunningBridge::legacy(&[&fixture.url], &[]).await?;
    let big = json!({"name": "fix_big", "arguments": {"bytes": 3_000_000}});
    let direct =
        ModernClient::new(&fixture.url, json!({}), answer_nothing).call("tools/call", big.clone()).await?;
    let through = bridge.request(LEGACY, "tools/call", big).await?;
    assert!(through.to_string().len() > 2_900_000, "{} bytes", through.to_string().len());
    assert_eq!(through["result"]["content"], direct.result()?["content"]);
    Ok(())
}

#[tokio::test]
async fn the_official_clients_use_a_bridge() -> Result<()> {
    let child = json!({"command": octo_tests::test_binaries::binary_path("mcp-fixture")?, "args": ["stdio"]});
    let home = HubHome::new(&json!({"admin": {"enabled": false}, "servers": {"child": child}}))?;
    let server = home.serve().await?;
    server.until_listed("child__fix_echo").await?;
    for (interpreter, script, mode, revision) in [
        (service_variable("NODE24")?, "client.mjs", "legacy", LEGACY),
        (service_variable("PYTHON_MCP")?, "client.py", "legacy", LEGACY),
        (service_variable("PYTHON_MCP")?, "client.py", "auto", MODERN),
    ] {
        let calls = json!([
            {"name": "child__fix_echo", "arguments": {"text": "hello"}},
            {"name": "child__fix_ask", "arguments": {"question": "what?"}},
        ]);
        let there = HubHome::new(&json!({}))?;
        let mut said = Vec::new();
        for target in [
            json!({"url": server.mcp_url()}),
            peer_scripts::stdio_target(&there.command(&["bridge", &server.base_url])?),
        ] {
            let task = json!({
                "target": target, "mode": mode, "calls": calls, "prompt": "child__test_simple_prompt",
                "resource": "test://static-text", "own": "commit_message", "style": "conventional", "typed": "conv",
            });
            said.push(peer_scripts::run_script(&interpreter, script, &task).await?);
        }
        assert_eq!(said[0]["revision"], revision);
        assert!(said[0]["calls"][1].to_string().contains("forty-two"), "{}", said[0]);
        assert_eq!(said[0], said[1], "{script} {mode}");
    }
    Ok(())
}

/// Prints the memory of a bridge and its overhead per call.
#[tokio::test]
#[ignore = "measures; see docs/measurements.md"]
async fn measured() -> Result<()> {
    const ROUNDS: usize = 2_000;
    let home = HubHome::new(&json!({"admin": {"enabled": false}}))?;
    let server = home.serve().await?;
    let mut bridge = RunningBridge::legacy(&[&server.base_url], &[]).await?;
    let direct = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let arguments = json!({"name": "time_now", "arguments": {"timezone": "UTC"}});
    let (mut through, mut straight) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        bridge.pipes.call("tools/call", arguments.clone(), answer_nothing).await?;
        through.push(begun.elapsed());
        let begun = Instant::now();
        direct.call("tools/call", arguments.clone()).await?;
        straight.push(begun.elapsed());
    }
    through.sort();
    straight.sort();
    let pid = bridge.pipes.process.id().context("it has ended")?;
    println!("resident: {:.1} MB", octo_tests::processes::resident_mb(pid)?);
    for at in [50, 99] {
        println!("p{at}: bridge {:?}, direct {:?}", through[ROUNDS * at / 100], straight[ROUNDS * at / 100]);
    }
    Ok(())
}
