//! A server of revision 2024-11-05 over HTTP+SSE: the reference server in its oldest transport.

use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use octo_tests::test_binaries::service_variable;
use serde_json::json;
use tokio::process::{Child, Command};

struct SseServer {
    port: u16,
    process: Child,
}

impl SseServer {
    async fn start(port: u16) -> Result<Self> {
        let process = Command::new(service_variable("NODE24")?)
            .args([service_variable("EVERYTHING")?.as_str(), "sse"])
            .env("PORT", port.to_string())
            .kill_on_drop(true)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()?;
        eventually("the server listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await?;
        Ok(Self { port, process })
    }
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[tokio::test]
async fn servers_over_http_sse_are_detected_and_reconnected() -> Result<()> {
    let mut server = SseServer::start(free_port()?).await?;
    let url = format!("http://127.0.0.1:{}/sse", server.port);
    let home = HubHome::new(&json!({"servers": {
        "said": {"url": url, "type": "sse"},
        "found": {"url": url},
    }}))?;
    let hub = home.serve().await?;
    let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    for name in ["said", "found"] {
        hub.until_listed(&format!("{name}__echo")).await?;
        let reply = client.call_tool(&format!("{name}__echo"), json!({"message": "hello"})).await?;
        assert_eq!(reply.result()?["content"][0]["text"], "Echo: hello");
    }
    // Many calls at once share the stream.
    let calls = (0..50).map(|number| {
        let client = client.clone();
        async move {
            let reply = client.call_tool("found__echo", json!({"message": format!("n{number}")})).await?;
            ensure!(
                reply.result()?["content"][0]["text"] == format!("Echo: n{number}"),
                "{:?}",
                reply.answer
            );
            Ok(())
        }
    });
    futures_util::future::try_join_all(calls).await?;
    // The server restarts: its stream ends, and the next call opens another one.
    server.process.kill().await.context("not killed")?;
    let port = server.port;
    let _server = SseServer::start(port).await?;
    eventually("the server is back", async || {
        let reply = client.call_tool("found__echo", json!({"message": "again"})).await.ok()?;
        (reply.result().ok()?["content"][0]["text"] == "Echo: again").then_some(())
    })
    .await?;
    let (code, out, err) = home.run(&["servers", "test", "said"]).await?;
    assert!(code == 0 && out.contains("said: ok"), "{out} {err}");
    Ok(())
}
