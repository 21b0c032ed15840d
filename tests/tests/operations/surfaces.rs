//! What MCP clients are listed, and how they find and call the rest.

use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LegacyClient, ModernClient, answer_nothing};
use octo_tests::stdio_client::StdioClient;
use serde_json::{Value, json};

/// Bytes of definitions that are 3,000 tokens (docs/measurements.md).
const MAX_DEFAULT_BYTES: usize = 13_200;
/// Bytes of the three definitions that are 350 tokens.
const MAX_FIND_BYTES: usize = 1_570;

/// Bytes of what models are shown.
fn model_bytes(tools: &Value) -> usize {
    let shown = tools.as_array().unwrap().iter().map(|tool| {
        json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]})
    });
    shown.map(|tool| tool.to_string().len()).sum()
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// A hub as a new installation starts it.
async fn default_hub(home: &HubHome) -> Result<RunningHub> {
    let mut command = home.command(&["serve", "--port", "0"])?;
    command.env_remove("OCTOPROX_SURFACE").stdout(std::process::Stdio::null());
    RunningHub::start(command).await
}

async fn tools_at(url: &str) -> Result<Value> {
    let client = ModernClient::new(url, json!({}), answer_nothing);
    Ok(client.request("tools/list", json!({})).await?.result()?["tools"].clone())
}

#[tokio::test]
async fn a_new_installation_lists_everyday_tools_and_finds_the_rest() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    std::fs::write(home.workspace().join("note.txt"), "hello\n")?;
    let hub = default_hub(&home).await?;
    let tools = tools_at(&hub.mcp_url()).await?;
    let listed = names(&tools);
    assert!(
        ["tools_find", "tools_call", "result_read", "fs_read_text"].iter().all(|name| listed.contains(name))
    );
    assert!(!listed.contains(&"time_now"), "{listed:?}");
    assert!(model_bytes(&tools) < MAX_DEFAULT_BYTES, "{} bytes", model_bytes(&tools));

    let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let found = client.call_tool("tools_find", json!({"query": "what time is it in Tokyo"})).await?;
    let found = found.result()?;
    let text = found["content"][0]["text"].as_str().context("no text")?;
    assert!(text.starts_with("time:\n") && text.contains("\n time_now("), "{text}");
    assert_eq!((found.get("structuredContent"), found["_meta"].get("octoprox/text_only")), (None, None));
    for name in ["time_now", "time:time_now"] {
        let arguments = json!({"name": name, "arguments": {"timezone": "Asia/Tokyo"}});
        let called = client.call_tool("tools_call", arguments).await?;
        let called = called.result()?;
        assert!(called["content"][0]["text"].as_str().unwrap().contains("Asia/Tokyo"), "{called}");
        assert_eq!(called.get("structuredContent"), None);
    }
    // A tool need not be listed to be called.
    let direct = client.call_tool("time_now", json!({"timezone": "Asia/Tokyo"})).await?;
    assert_eq!(direct.result()?["structuredContent"]["timezone"], "Asia/Tokyo");
    let wrong =
        client.call_tool("tools_call", json!({"name": "time_now", "arguments": {"zone": "UTC"}})).await?;
    let wrong = wrong.result()?["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(wrong.contains("Unknown parameter `zone`") && wrong.contains("Its input schema: {"), "{wrong}");

    let (code, out, _) = {
        let output = home.command(&["explain", "surface"])?.env_remove("OCTOPROX_SURFACE").output().await?;
        (output.status.code(), String::from_utf8(output.stdout)?, ())
    };
    assert_eq!(code, Some(0), "{out}");
    assert!(
        out.starts_with("surface  servers\nwhy      All ") && out.contains("         tools_find\n"),
        "{out}"
    );
    Ok(())
}

#[tokio::test]
async fn the_address_decides_what_a_client_is_listed() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    let at = |query: &str| format!("{}?{query}", hub.mcp_url());
    let tools = tools_at(&at("surface=find")).await?;
    assert_eq!(names(&tools), ["result_read", "tools_call", "tools_find"]);
    assert!(model_bytes(&tools) < MAX_FIND_BYTES, "{} bytes", model_bytes(&tools));
    let tools = tools_at(&at("surface=full&structure=off")).await?;
    assert!(names(&tools).contains(&"time_now") && !names(&tools).contains(&"tools_find"));
    assert!(tools.as_array().unwrap().iter().all(|tool| tool.get("outputSchema").is_none()));
    let client = ModernClient::new(&at("structure=off"), json!({}), answer_nothing);
    let called = client.call_tool("time_now", json!({"timezone": "UTC"})).await?;
    assert!(called.result()?.get("structuredContent").is_none());
    let refused = octo_tests::http_client::HttpClient::default();
    let refused = refused.post(&at("surface=everything"), &[], &json!({})).await?;
    assert_eq!(refused.status, 400);
    assert!(refused.text().await?.contains("Use one of auto, full, servers, profile, find, code."));

    // A session keeps what its handshake asked for.
    let legacy = LegacyClient::connect(&at("surface=find&structure=off"), json!({}), answer_nothing).await?;
    let listed = legacy.call("tools/list", json!({})).await?;
    assert_eq!(names(&listed.result()?["tools"]).len(), 3);
    let called = legacy.call_tool("time_now", json!({"timezone": "UTC"})).await?;
    assert!(called.result()?.get("structuredContent").is_none());
    Ok(())
}

#[tokio::test]
async fn a_session_on_standard_input_selects_its_surface() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let mut session =
        StdioClient::open(home.command(&["stdio", "--surface", "find", "--structure", "off"])?)?;
    session.initialize(json!({})).await?;
    let listed = session.call("tools/list", json!({}), answer_nothing).await?;
    assert_eq!(names(&listed["result"]["tools"]), ["result_read", "tools_call", "tools_find"]);
    session.close().await?;
    let (code, _, err) = home.run(&["stdio", "--surface", "small"]).await?;
    assert_eq!(code, 2);
    assert!(err.contains("use one of auto, full, servers, profile, find, code"), "{err}");
    Ok(())
}

#[tokio::test]
async fn settings_decide_for_all_and_for_a_profile_and_are_followed() -> Result<()> {
    let settings = |surface: &str| json!({"surface": {"tools": surface, "listed": ["time_*"]}, "profiles": {"lean": {"surface": "profile", "listed": ["git_status"]}}});
    let home = HubHome::new(&settings("profile"))?;
    let hub = default_hub(&home).await?;
    let listed = tools_at(&hub.mcp_url()).await?;
    assert!(
        names(&listed).contains(&"time_now") && !names(&listed).contains(&"fs_read_text"),
        "{:?}",
        names(&listed)
    );
    let lean = tools_at(&hub.profile_url("lean")).await?;
    assert_eq!(names(&lean), ["git_status", "result_read", "tools_call", "tools_find"]);
    super::rewrite_settings(&home, &settings("find"))?;
    eventually("the surface changes", async || {
        let listed = tools_at(&hub.mcp_url()).await.ok()?;
        (names(&listed).len() == 3).then_some(())
    })
    .await
}
