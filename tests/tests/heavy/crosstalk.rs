//! Many clients that use the same request ids at once: no reply may reach the wrong one.

use anyhow::{Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LegacyClient, answer_nothing};
use octo_tests::test_binaries::binary_path;
use serde_json::json;
use std::sync::Arc;
use tokio::task::JoinSet;

const CLIENTS: usize = 200;
const CALLS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reply_reaches_the_wrong_client() -> Result<()> {
    let home = HubHome::new(
        &json!({"servers": {"one": {"command": binary_path("mcp-fixture")?, "args": ["stdio"]}}}),
    )?;
    let server = home.serve().await?;
    let url: Arc<str> = server.mcp_url().into();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let url = Arc::clone(&url);
        clients.spawn(async move {
            let session = LegacyClient::connect(&url, json!({}), answer_nothing).await?;
            for call in 0..CALLS {
                let text = format!("client {client}, call {call}");
                let params = json!({"name": "one__fix_echo", "arguments": {"text": text}});
                let turn = session.call_with_id(json!(call), "tools/call", params).await?;
                ensure!(
                    turn.answer["result"]["structuredContent"]["text"] == text,
                    "{text}: {}",
                    turn.answer
                );
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}
