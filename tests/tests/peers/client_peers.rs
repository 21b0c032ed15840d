//! The official clients connect, list, call and answer requests, over both transports and in each era they support.

use anyhow::{Context, Result};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LEGACY, LegacyClient, MODERN, accept_all};
use octo_tests::test_binaries::{binary_path, service_variable};
use serde_json::{Value, json};

const PROMPT: &str = "child__test_simple_prompt";
/// A shipped prompt with its arguments, and a prefix to complete.
const SHIPPED_PROMPT: &str = "commit_message";
const TYPED_STYLE: &str = "conv";
const RESOURCE: &str = "test://static-text";

fn hub_home() -> Result<HubHome> {
    HubHome::new(&json!({"servers": {"child": {"command": binary_path("mcp-fixture")?, "args": ["stdio"]}}}))
}

fn calls() -> Value {
    json!([
        {"name": "time_convert", "arguments": {
            "datetime": "2026-11-14T22:00:00", "from_timezone": "UTC", "to_timezone": "Asia/Tokyo",
        }},
        {"name": "child__fix_echo", "arguments": {"text": "hello \u{1F40B}"}},
        {"name": "child__fix_ask", "arguments": {"question": "what?"}},
        {"name": "child__fix_fail", "arguments": {"message": "as asked"}},
    ])
}

/// Expected replies, read by a minimal client.
async fn expected_replies(url: &str) -> Result<Value> {
    let client = LegacyClient::connect(url, json!({"elicitation": {}}), accept_all).await?;
    let mut said = json!({"server": "octoprox", "calls": []});
    for (method, list, member, key) in [
        ("tools/list", "tools", "tools", "name"),
        ("prompts/list", "prompts", "prompts", "name"),
        ("resources/list", "resources", "resources", "uri"),
        ("resources/templates/list", "templates", "resourceTemplates", "uriTemplate"),
    ] {
        let turn = client.call(method, json!({})).await?;
        let listed = turn.result()?[member].as_array().with_context(|| format!("no {member}"))?;
        said[list] = listed.iter().map(|item| item[key].clone()).collect();
    }
    for call in calls().as_array().into_iter().flatten() {
        let turn = client.call("tools/call", call.clone()).await?;
        let result = turn.result()?;
        let called = json!({
            "content": result["content"],
            "structuredContent": result["structuredContent"],
            "isError": result["isError"] == true,
        });
        said["calls"].as_array_mut().context("no calls")?.push(called);
    }
    said["prompt"] = client.call("prompts/get", json!({"name": PROMPT})).await?.result()?["messages"].clone();
    let own = json!({"name": SHIPPED_PROMPT, "arguments": {"style": "conventional"}});
    said["own"] = client.call("prompts/get", own).await?.result()?["messages"].clone();
    let typed = json!({"ref": {"type": "ref/prompt", "name": SHIPPED_PROMPT}, "argument": {"name": "style", "value": TYPED_STYLE}});
    said["completed"] =
        client.call("completion/complete", typed).await?.result()?["completion"]["values"].clone();
    said["resource"] =
        client.call("resources/read", json!({"uri": RESOURCE})).await?.result()?["contents"].clone();
    Ok(said)
}

/// `null` and absent are the same to an SDK.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

async fn check_client(interpreter: &str, script: &str, modes: &[(&str, &str)]) -> Result<()> {
    let home = hub_home()?;
    let server = home.serve().await?;
    let mut expected = expected_replies(&server.mcp_url()).await?;
    without_nulls(&mut expected);
    // The comparison means nothing if there is nothing to compare.
    assert!(expected["calls"][0]["structuredContent"].to_string().contains("2026-11-15T07:00"), "{expected}");
    assert_eq!(expected["calls"][1]["structuredContent"]["text"], "hello \u{1F40B}");
    assert!(expected["calls"][2].to_string().contains("forty-two"), "{expected}");
    assert_eq!(expected["calls"][3]["isError"], true);
    assert!(expected["own"].to_string().contains("Conventional Commits"), "{expected}");
    assert_eq!(expected["completed"], json!(["conventional"]));
    for (mode, revision) in modes {
        for target in
            [json!({"url": server.mcp_url()}), crate::peer_scripts::stdio_target(&home.command(&["stdio"])?)]
        {
            let task = json!({
                "target": target, "mode": mode, "calls": calls(), "prompt": PROMPT, "resource": RESOURCE,
                "own": SHIPPED_PROMPT, "style": "conventional", "typed": TYPED_STYLE,
            });
            let mut said = crate::peer_scripts::run_script(interpreter, script, &task).await?;
            without_nulls(&mut said);
            let mut expected = expected.clone();
            expected["revision"] = json!(revision);
            for (member, wanted) in expected.as_object().context("nothing expected")? {
                assert_eq!(said[member], *wanted, "{script} {mode} {target}: {member}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_typescript_client() -> Result<()> {
    check_client(&service_variable("NODE24")?, "client.mjs", &[("legacy", LEGACY)]).await
}

#[tokio::test]
async fn the_python_client() -> Result<()> {
    check_client(&service_variable("PYTHON_MCP")?, "client.py", &[("legacy", LEGACY), ("auto", MODERN)]).await
}
