//! A server started by an agent can be reached by its other tools if a setting allows it; the hub itself cannot.

use super::call_tool;
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::{Value, json};

const SERVER_COMMAND: &str = "python3 -u -c \"import http.server as h; s = h.ThreadingHTTPServer(('127.0.0.1', 0), \
     h.SimpleHTTPRequestHandler); print('port', s.server_port, flush=True); s.serve_forever()\"";

/// Starts a file server in a session, and returns its port.
async fn start_file_server(hub: &RunningHub) -> Result<u16> {
    let (status, started) = call_tool(hub, "", "shell_start", json!({"command": SERVER_COMMAND})).await?;
    assert_eq!(status, 200, "{started}");
    let session = started["result"]["session_id"].clone();
    eventually("the server says its port", async || {
        let (_, read) =
            call_tool(hub, "", "shell_read", json!({"session_id": session, "from": 0, "wait_ms": 500}))
                .await
                .ok()?;
        let text = read["result"]["output"].as_str()?.to_owned();
        text.split_once("port ")?.1.split_whitespace().next()?.parse().ok()
    })
    .await
}

async fn fetch(hub: &RunningHub, url: String) -> Result<(u16, Value)> {
    call_tool(hub, "", "fetch_url", json!({"url": url})).await
}

#[tokio::test]
async fn one_setting_lets_tools_reach_the_servers_of_commands() -> Result<()> {
    let home = HubHome::new(&json!({"shell": {"local_servers": true}, "toolboxes": {"shell": true}}))?;
    std::fs::write(home.workspace().join("hello.txt"), "hello from the session")?;
    let hub = home.serve().await?;
    let port = start_file_server(&hub).await?;
    for host in ["127.0.0.1", "localhost"] {
        let (status, page) = fetch(&hub, format!("http://{host}:{port}/hello.txt")).await?;
        assert!(status == 200 && page.to_string().contains("hello from the session"), "{page}");
    }
    let ask = format!(
        "python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}/hello.txt').read())\""
    );
    let (_, seen) = call_tool(&hub, "", "shell_exec", json!({"command": ask})).await?;
    assert!(seen["result"]["stdout"].to_string().contains("hello from the session"), "{seen}");
    // The hub trusts its own user on loopback, so tools must not come in there.
    for path in ["tools", "health"] {
        let (status, refused) = fetch(&hub, format!("{}/{path}", hub.base_url)).await?;
        assert_eq!(status, 403, "{refused}");
        assert!(refused["error"]["message"].to_string().contains("the hub itself"), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn without_it_the_refusal_names_the_setting() -> Result<()> {
    let home = HubHome::new(&json!({"toolboxes": {"shell": true}}))?;
    let hub = home.serve().await?;
    let port = start_file_server(&hub).await?;
    let (status, refused) = fetch(&hub, format!("http://127.0.0.1:{port}/")).await?;
    assert!(status == 403 && refused.to_string().contains("shell.local_servers: true"), "{refused}");
    let ask = format!(
        "python3 -c \"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/', timeout=2)\""
    );
    let (_, failed) = call_tool(&hub, "", "shell_exec", json!({"command": ask})).await?;
    assert!(failed.to_string().contains("shell.local_servers: true"), "{failed}");
    Ok(())
}
