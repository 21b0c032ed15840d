//! OpenAPI upstreams behind the real hub: listed, called through every frontend, updated.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LegacyClient, ModernClient, answer_nothing};
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Prism responds as an API would, and only as its document allows.
async fn start_prism(document: &str) -> Result<(Child, String)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let child = Command::new(service_variable("NODE24")?)
        .args([service_variable("PRISM")?.as_str(), "mock", "--host", "127.0.0.1", "--port", &port, document])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let address = format!("127.0.0.1:{port}");
    eventually("Prism listens", async || tokio::net::TcpStream::connect(&address).await.ok()).await?;
    Ok((child, format!("http://{address}")))
}

fn shop_document() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/tools-openapi/tests/documents/shop-3.0.yaml").to_owned()
}

/// All tools of a server, page by page.
async fn list_server_tools(hub: &RunningHub, server: &str) -> Result<Vec<Value>> {
    let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let turn = client.request("tools/list", params).await?;
        let result = turn.result()?;
        let page = result["tools"].as_array().context("no tools")?;
        let prefix = format!("{server}__");
        all.extend(page.iter().filter(|tool| tool["name"].as_str().unwrap().starts_with(&prefix)).cloned());
        match result.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(all),
        }
    }
}

#[tokio::test]
async fn operations_are_tools_through_every_face() -> Result<()> {
    let (_prism, url) = start_prism(&shop_document()).await?;
    let entry = json!({"type": "openapi", "document": shop_document(), "url": url});
    let home = HubHome::new(&json!({"servers": {"shop": entry}}))?;
    let hub = home.serve().await?;
    let listed = eventually("the tools are listed", async || {
        list_server_tools(&hub, "shop").await.ok().filter(|tools| !tools.is_empty())
    })
    .await?;
    let get = listed.iter().find(|tool| tool["name"] == "shop__getItem").context("no getItem")?;
    assert_eq!(get["annotations"]["readOnlyHint"], true);
    assert_eq!(get["inputSchema"]["required"], json!(["id", "X-Trace"]));
    let arguments = json!({"id": 7, "X-Trace": "123e4567-e89b-42d3-a456-426614174000"});
    let legacy = LegacyClient::connect(&hub.mcp_url(), json!({}), answer_nothing).await?;
    let modern = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    for turn in [
        legacy.call_tool("shop__getItem", arguments.clone()).await?,
        modern.call_tool("shop__getItem", arguments.clone()).await?,
        modern.call_tool("shop:getItem", arguments.clone()).await?,
    ] {
        let result = turn.result()?;
        assert_eq!(
            (&result["structuredContent"]["status"], &result["isError"]),
            (&json!(200), &json!(false))
        );
    }
    let rest = format!("{}/tools/shop__getItem", hub.base_url);
    let mut answer = HttpClient::default().post(&rest, &[], &arguments).await?;
    ensure!(answer.status == 200, "{}", answer.status);
    assert_eq!(answer.next_message().await?.context("no answer")?["success"], true);
    let (code, out, err) = home.run(&["call", "shop__deleteItem", "id=7"]).await?;
    ensure!(code == 0 && out.contains("204"), "{code} {out} {err}");
    // What the schema forbids is not sent.
    let wrong = modern.call_tool("shop__getItem", json!({"id": "../../admin"})).await?;
    assert_eq!(wrong.result()?["isError"], true);
    Ok(())
}

#[tokio::test]
async fn a_document_is_followed_while_the_hub_runs() -> Result<()> {
    let home = HubHome::new(&json!({"servers": {"api": {"type": "openapi", "document": "api.json"}}}))?;
    let path = home.dir.path().join("api.json");
    let mut document = json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9"}],
        "paths": {"/a": {"get": {"operationId": "first", "responses": {}}}}});
    std::fs::write(&path, document.to_string())?;
    let hub = home.serve().await?;
    let named = async |name: &str| {
        let tools = list_server_tools(&hub, "api").await.ok()?;
        tools.iter().any(|tool| tool["name"] == name).then_some(())
    };
    eventually("the first is listed", async || named("api__first").await).await?;
    document["paths"]["/b"] = json!({"post": {"operationId": "second", "responses": {}}});
    std::fs::write(&path, document.to_string())?;
    eventually("the second is listed", async || named("api__second").await).await?;
    Ok(())
}

#[tokio::test]
async fn a_large_api_is_listed_whole() -> Result<()> {
    let entry = json!({"type": "openapi", "document": service_variable("GITHUB_OPENAPI")?});
    let home = HubHome::new(&json!({"servers": {"gh": entry}}))?;
    let begun = std::time::Instant::now();
    let hub = home.serve().await?;
    let listed = eventually("the tools are listed", async || {
        list_server_tools(&hub, "gh").await.ok().filter(|tools| !tools.is_empty())
    })
    .await?;
    let took = begun.elapsed();
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.process.id().context("ended")?))?;
    let memory = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    println!("github: {} tools listed {took:?} after the start, {memory}", listed.len());
    // A few descriptions look like orders to a model and wait for a person.
    ensure!(listed.len() >= 1_200, "{}", listed.len());
    Ok(())
}
