//! Admin API, server tools, and settings that change while the hub runs.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use octo_tests::processes;
use octo_tests::test_binaries::{binary_path, service_variable};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const ANN_TOKEN: &str = "anns-token-for-tests";
const BOSS_TOKEN: &str = "boss-token-for-tests";
/// The token's hash in the settings.
const ANN_SHA256: &str = "87c272b4612ce783026bcb53d51116a9bf8b8b1e5415e8fac68a73dab887473f";
const BOSS_SHA256: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";

/// Sends a request to the admin API: status and body.
async fn admin_request(
    hub: &RunningHub,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> Result<(u16, Value)> {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let text = if body.is_null() { Bytes::new() } else { serde_json::to_vec(body)?.into() };
    let answer =
        HttpClient::default().send(method, &format!("{}{path}", hub.admin_url), &headers, text).await?;
    let status = answer.status;
    let text = answer.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

async fn admin_get(hub: &RunningHub, path: &str) -> Result<Value> {
    let (status, body) = admin_request(hub, "GET", path, None, &Value::Null).await?;
    ensure!(status == 200, "{path}: {status} {body}");
    Ok(body["result"].clone())
}

fn fixture_entry() -> Result<Value> {
    Ok(json!({"command": binary_path("mcp-fixture")?, "args": ["stdio"]}))
}

fn server_state<'a>(list: &'a Value, server: &str) -> &'a Value {
    let found = list["servers"].as_array().and_then(|all| all.iter().find(|one| one["server"] == server));
    &found.unwrap_or_else(|| panic!("no {server}: {list}"))["state"]
}

#[tokio::test]
async fn servers_are_listed_connected_and_disconnected() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {
        "first": fixture_entry()?,
        "second": {"command": "/nowhere/to/be/found"},
        "third": {"url": "http://127.0.0.1:9/mcp", "enabled": false, "name": "The third"},
    }}))?;
    let hub = home.serve().await?;
    let pid = hub.process.id().context("no process")?;
    eventually("the first is listed", async || {
        let list = admin_get(&hub, "/servers").await.unwrap();
        (list["servers"][0]["tools"].as_u64() > Some(0)).then_some(())
    })
    .await?;
    let list = admin_get(&hub, "/servers").await?;
    assert_eq!(server_state(&list, "third"), "off", "{list}");
    assert_eq!(list["servers"][2]["title"], "The third");
    let (status, told) = admin_request(&hub, "POST", "/servers/first/connect", None, &Value::Null).await?;
    assert_eq!((status, &told["result"]["state"]), (200, &json!("connected")), "{told}");
    assert!(told["result"]["software"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
    assert!(!processes::descendants(pid).is_empty());
    let (status, told) = admin_request(&hub, "POST", "/servers/first/disconnect", None, &Value::Null).await?;
    assert_eq!((status, &told["result"]["state"]), (200, &json!("asleep")), "{told}");
    assert!(told["result"]["tools"].as_u64() > Some(0), "what it listed stays listed: {told}");
    eventually("no program runs", async || processes::descendants(pid).is_empty().then_some(())).await?;
    // The next call starts it again.
    let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let turn = client.call_tool("first__fix_echo", json!({"text": "x"})).await?;
    assert!(turn.result()?["isError"] != true);
    let (status, told) = admin_request(&hub, "POST", "/servers/second/connect", None, &Value::Null).await?;
    assert_eq!(status, 503, "{told}");
    assert!(told["error"]["message"].as_str().unwrap_or_default().contains("os error 2"), "{told}");
    let (status, told) = admin_request(&hub, "POST", "/servers/third/connect", None, &Value::Null).await?;
    assert_eq!(
        (status, &told["error"]["message"]),
        (503, &json!("`third` is disabled: `enabled` is false."))
    );
    let (status, told) = admin_request(&hub, "POST", "/servers/frist/connect", None, &Value::Null).await?;
    assert_eq!(status, 404, "{told}");
    assert!(told["error"]["hint"].as_str().unwrap_or_default().contains("first"), "{told}");
    let audit = home.audit_tail(50).await?;
    let seen = audit.iter().any(|record| record["frontend"] == "admin" && record["name"] == "server_connect");
    assert!(seen, "{audit:?}");
    let document = admin_request(&hub, "GET", "/openapi.json", None, &Value::Null).await?.1;
    assert!(document["paths"]["/servers/{id}/connect"]["post"].is_object(), "{document}");
    assert!(document["components"]["schemas"]["server_connect.output"]["properties"]["state"].is_object());
    Ok(())
}

/// Error texts, standard error and names come from the server, and a model reads them.
#[tokio::test]
async fn what_a_server_says_has_no_hidden_characters() -> Result<()> {
    let script = "printf 'be \\363\\240\\201\\201ware\\n' >&2; exit 3";
    let home = HubHome::new(&json!({"servers": {"loud": {"command": "sh", "args": ["-c", script]}}}))?;
    let hub = home.serve().await?;
    let seen = eventually("it has said something", async || {
        let (_, refused) =
            admin_request(&hub, "POST", "/servers/loud/connect", None, &Value::Null).await.unwrap();
        let list = admin_get(&hub, "/servers").await.unwrap();
        let said = list["servers"][0]["said"].as_array().is_some_and(|lines| !lines.is_empty());
        said.then(|| format!("{refused} {list}"))
    })
    .await?;
    assert!(seen.contains("be ware") && !seen.contains('\u{e0041}'), "{seen}");
    Ok(())
}

#[tokio::test]
async fn a_hub_without_servers_says_so() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    assert_eq!(admin_get(&hub, "/servers").await?, json!({"servers": []}));
    Ok(())
}

fn token(name: &str, hash: &str, scopes: &[&str]) -> Value {
    json!({"name": name, "sha256": hash, "scopes": scopes})
}

#[tokio::test]
async fn starting_and_changing_servers_is_for_administrators() -> Result<()> {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let home = HubHome::new(&json!({
        "servers": {"first": fixture_entry()?, "shared": {"url": format!("http://{nobody}/mcp"), "auth": {"type": "oauth2", "shared": true}}},
        "auth": {"tokens": [token("ann", ANN_SHA256, &[]), token("boss", BOSS_SHA256, &["admin"])]},
    }))?;
    let hub = home.serve().await?;
    let none = &Value::Null;
    for (method, path, without, ann, boss) in [
        ("GET", "/servers", 401, 200, 200),
        ("POST", "/servers/first/connect", 401, 403, 200),
        ("POST", "/servers/first/disconnect", 401, 403, 200),
        // Nobody is there, but only the administrator may try.
        ("POST", "/servers/shared/auth/start", 401, 403, 503),
        ("POST", "/servers/shared/auth/logout", 401, 403, 200),
        ("GET", "/servers/shared/auth/status", 401, 200, 200),
        ("GET", "/openapi.json", 401, 200, 200),
        ("GET", "/health", 200, 200, 200),
    ] {
        for (token, wanted) in [(None, without), (Some(ANN_TOKEN), ann), (Some(BOSS_TOKEN), boss)] {
            let (status, body) = admin_request(&hub, method, path, token, none).await?;
            assert_eq!(status, wanted, "{method} {path} {token:?}: {body}");
        }
    }
    // The same rule holds whichever way a caller comes.
    let rest = format!("{}/tools/server_connect", hub.base_url);
    let headers = [("authorization", &*format!("Bearer {ANN_TOKEN}")), ("content-type", "application/json")];
    let answer = HttpClient::default().send("POST", &rest, &headers, r#"{"server":"first"}"#.into()).await?;
    assert_eq!(answer.status, 403);
    // A browser could be anybody's: the page finishes nothing, and says what to do.
    let (status, page) = admin_request(&hub, "GET", "/auth/callback?code=x&state=y", None, none).await?;
    assert_eq!(status, 200);
    assert!(page.as_str().is_some_and(|page| page.contains("Copy the full URL")), "{page}");
    Ok(())
}

struct ProtectedServer {
    _process: Child,
    mcp: String,
}

/// An authorization server and a server that it protects.
async fn start_protected_server() -> Result<ProtectedServer> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/oidc/serve.mjs");
    let mut process = Command::new(service_variable("NODE24")?)
        .arg(script)
        .env("OIDC_PROVIDER", service_variable("OIDC_PROVIDER")?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stdout.take().context("no stdout")?).lines();
    let line = lines.next_line().await?.context("it has ended")?;
    let at: Value = serde_json::from_str(&line)?;
    Ok(ProtectedServer { _process: process, mcp: at["mcp"].as_str().context("no address")?.to_owned() })
}

async fn call_ok(client: &ModernClient, tool: &str, arguments: Value) -> Result<Value> {
    let turn = client.call_tool(tool, arguments).await?;
    let result = turn.result()?.clone();
    ensure!(result["isError"] != true, "{tool}: {result}");
    Ok(result["structuredContent"].clone())
}

/// Login from a conversation: the agent starts it, a person uses a browser, the browser returns to the hub, the agent
/// continues.
#[tokio::test]
async fn a_login_from_a_conversation() -> Result<()> {
    let protected = start_protected_server().await?;
    let home = HubHome::new(&json!({
        "servers": {
            "notes": {"url": protected.mcp, "auth": {"type": "oauth2-pkce"}},
            "undeclared": {"url": protected.mcp},
        },
        "net": {"allow": ["127.0.0.1", "localhost"]},
        "toolboxes": {"browser": true},
    }))?;
    let hub = home.serve().await?;
    let agent = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let list = call_ok(&agent, "servers_list", json!({})).await?;
    assert_eq!(server_state(&list, "notes"), "needs_login", "{list}");
    let begun = call_ok(&agent, "server_login", json!({"server": "notes"})).await?;
    assert_eq!(
        (&begun["action"], &begun["login"]["state"]),
        (&json!("open_url"), &json!("waiting")),
        "{begun}"
    );
    call_ok(&agent, "browser_navigate", json!({"url": begun["url"]})).await?;
    call_ok(&agent, "browser_type", json!({"selector": "input[name=login]", "text": "ada"})).await?;
    call_ok(&agent, "browser_type", json!({"selector": "input[name=password]", "text": "x"})).await?;
    call_ok(&agent, "browser_click", json!({"text": "Sign-in"})).await?;
    call_ok(&agent, "browser_click", json!({"text": "Continue"})).await?;
    eventually("the login is there", async || {
        let told = call_ok(&agent, "server_login_status", json!({"server": "notes"})).await.unwrap();
        (told["connected"] == true).then_some(())
    })
    .await?;
    let page = call_ok(&agent, "browser_snapshot", json!({})).await?;
    assert!(page.to_string().contains("You are logged in"), "{page}");
    let who = eventually("its tool answers", async || {
        let turn = agent.call_tool("notes__whoami", json!({})).await.unwrap();
        turn.result().ok().filter(|result| result["isError"] != true).cloned()
    })
    .await?;
    assert_eq!(who["content"][0]["text"], "ada");
    let left = call_ok(&agent, "server_logout", json!({"server": "notes"})).await?;
    assert_eq!(left["outcome"], "revoked");
    let list = call_ok(&agent, "servers_list", json!({"server": "notes"})).await?;
    assert_eq!(server_state(&list, "notes"), "needs_login", "{list}");
    // The settings of the other do not say so.
    let undeclared = eventually("it is refused", async || {
        let list = call_ok(&agent, "servers_list", json!({"server": "undeclared"})).await.unwrap();
        (server_state(&list, "undeclared") == "needs_login").then_some(list)
    })
    .await?;
    assert_eq!(undeclared["servers"][0]["login"]["whose"], "shared", "{undeclared}");
    let begun = call_ok(&agent, "server_login", json!({"server": "undeclared"})).await?;
    assert_eq!(begun["action"], "open_url", "{begun}");
    Ok(())
}

/// The same where tokens are required: the browser proves with a cookie that it started the login.
#[tokio::test]
async fn a_browser_finishes_a_login_that_it_began_where_tokens_are_required() -> Result<()> {
    let protected = start_protected_server().await?;
    let home = HubHome::new(&json!({
        "servers": {"notes": {"url": protected.mcp, "auth": {"type": "oauth2-pkce"}}},
        "net": {"allow": ["127.0.0.1", "localhost"]},
        "auth": {"tokens": [token("ann", ANN_SHA256, &[]), token("boss", BOSS_SHA256, &["admin"])]},
    }))?;
    let hub = home.serve().await?;
    let (status, begun) =
        admin_request(&hub, "POST", "/servers/notes/auth/start", Some(ANN_TOKEN), &Value::Null).await?;
    assert_eq!(status, 200, "{begun}");
    let begun = &begun["result"];
    let url = begun["url"].as_str().context("no address")?;
    assert!(url.contains("/auth/start/"), "the hub's own page comes first: {begun}");
    assert!(begun["auth_url"].as_str().is_some_and(|url| !url.contains("/auth/start/")), "{begun}");

    let machine =
        HubHome::new(&json!({"net": {"allow": ["127.0.0.1", "localhost"]}, "toolboxes": {"browser": true}}))?;
    let machine = machine.serve().await?;
    let person = ModernClient::new(&machine.mcp_url(), json!({}), answer_nothing);
    call_ok(&person, "browser_navigate", json!({"url": url})).await?;
    let page = call_ok(&person, "browser_snapshot", json!({})).await?;
    assert!(page.to_string().contains("ann asked this hub for a login at notes"), "{page}");
    call_ok(&person, "browser_click", json!({"text": "Continue"})).await?;
    call_ok(&person, "browser_type", json!({"selector": "input[name=login]", "text": "ada"})).await?;
    call_ok(&person, "browser_type", json!({"selector": "input[name=password]", "text": "x"})).await?;
    call_ok(&person, "browser_click", json!({"text": "Sign-in"})).await?;
    call_ok(&person, "browser_click", json!({"text": "Continue"})).await?;
    eventually("the login is there", async || {
        let told = admin_request(&hub, "GET", "/servers/notes/auth/status", Some(ANN_TOKEN), &Value::Null)
            .await
            .unwrap()
            .1;
        (told["result"]["connected"] == true).then_some(())
    })
    .await?;
    let page = call_ok(&person, "browser_snapshot", json!({})).await?;
    assert!(page.to_string().contains("You are logged in"), "{page}");
    let told =
        admin_request(&hub, "GET", "/servers/notes/auth/status", Some(BOSS_TOKEN), &Value::Null).await?.1;
    assert_eq!(told["result"]["connected"], false, "it is ann's alone: {told}");
    Ok(())
}

#[tokio::test]
async fn an_api_key_is_given_to_the_admin_api_and_never_in_a_conversation() -> Result<()> {
    let shell = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"keyed","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"length","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"'"$(printf %s "$KEY" | wc -c)"'"}]}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done"#;
    let home = HubHome::new(&json!({"servers": {"keyed": {
        "command": "sh", "args": ["-c", shell], "auth": {"type": "api-key", "env": "KEY"},
    }}}))?;
    let hub = home.serve().await?;
    let agent = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let list = call_ok(&agent, "servers_list", json!({})).await?;
    assert_eq!(server_state(&list, "keyed"), "needs_login", "{list}");
    let begun = call_ok(&agent, "server_login", json!({"server": "keyed"})).await?;
    assert_eq!(begun["action"], "enter_api_key");
    let turn = agent.call_tool("server_login", json!({"server": "keyed", "answer": "12345678901"})).await?;
    assert!(
        turn.result()?["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("octoprox login keyed"))
    );
    let answer = json!({"answer": "12345678901"});
    let (status, told) = admin_request(&hub, "POST", "/servers/keyed/auth/complete", None, &answer).await?;
    assert_eq!((status, &told["result"]["login"]["connected"]), (200, &json!(true)), "{told}");
    let length = eventually("its tool answers", async || {
        let turn = agent.call_tool("keyed__length", json!({})).await.unwrap();
        turn.result().ok().filter(|result| result["isError"] != true).cloned()
    })
    .await?;
    assert_eq!(length["content"][0]["text"], "11");
    Ok(())
}

async fn tool_names(client: &ModernClient) -> Vec<String> {
    let turn = client.request("tools/list", json!({})).await.unwrap();
    let tools = turn.result().unwrap()["tools"].as_array().unwrap().clone();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_changed_file_connects_drops_and_swaps_just_that_server() -> Result<()> {
    let home = HubHome::new(&json!({"workspace": "work"}))?;
    std::fs::create_dir(home.dir.path().join("work"))?;
    let list = home.dir.path().join("servers.yaml");
    let hub = home.serve().await?;
    let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    assert!(!tool_names(&client).await.iter().any(|name| name == "servers_list"));
    let write = |servers: Value| std::fs::write(&list, json!({"servers": servers}).to_string());
    write(json!({"one": fixture_entry()?, "two": fixture_entry()?}))?;
    eventually("both are listed", async || {
        let names = tool_names(&client).await;
        let has = |name: &str| names.iter().any(|listed| listed == name);
        (has("one__fix_echo") && has("two__fix_echo") && has("servers_list")).then_some(())
    })
    .await?;
    let pid = hub.process.id().context("no process")?;
    admin_request(&hub, "POST", "/servers/two/disconnect", None, &Value::Null).await?;
    admin_request(&hub, "POST", "/servers/one/connect", None, &Value::Null).await?;
    let kept = processes::descendants(pid);
    // A call of the server that is swapped goes on where it began.
    let slow = tokio::spawn({
        let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
        async move { client.call_tool("two__fix_sleep", json!({"ms": 1500})).await }
    });
    eventually("the call is under way", async || {
        let list = admin_get(&hub, "/servers/two").await.unwrap();
        (list["servers"][0]["in_flight"] == 1).then_some(())
    })
    .await?;
    let mut other = fixture_entry()?;
    other["timeout_seconds"] = json!(77);
    write(json!({"one": fixture_entry()?, "two": other, "three": fixture_entry()?}))?;
    eventually("the third is listed", async || {
        tool_names(&client).await.iter().any(|name| name == "three__fix_echo").then_some(())
    })
    .await?;
    let turn = slow.await??;
    assert!(turn.result()?["isError"] != true, "{:?}", turn.result());
    // The one that did not change was not touched.
    assert!(kept.iter().all(|process| process.is_alive()), "{kept:?}");
    let (code, plan, said) = home.run(&["servers", "plan", "--json"]).await?;
    assert_eq!(code, 0, "{plan} {said}");
    assert!(
        !plan.contains("swap") && !plan.contains("\"connect\""),
        "what runs is what the file says: {plan}"
    );
    write(json!({"one": fixture_entry()?}))?;
    eventually("the others are gone", async || {
        let names = tool_names(&client).await;
        (!names.iter().any(|name| name.starts_with("two__") || name.starts_with("three__"))).then_some(())
    })
    .await?;
    // A broken file changes nothing, and the next good one counts.
    std::fs::write(&list, "servers: {one: {comand: x}}")?;
    write(json!({"one": fixture_entry()?, "four": fixture_entry()?}))?;
    eventually("the fourth is listed", async || {
        tool_names(&client).await.iter().any(|name| name == "four__fix_echo").then_some(())
    })
    .await?;
    assert!(kept.iter().all(|process| process.is_alive()), "{kept:?}");
    Ok(())
}
