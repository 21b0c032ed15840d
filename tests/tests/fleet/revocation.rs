//! A token that is revoked on one machine is refused by the hubs of all machines that share the database.

use crate::test_fleet::{Database, TestFleet};
use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::http_client::{HttpClient, HttpReply};
use octo_tests::hub_process::RunningHub;
use octo_tests::mcp_clients::{LEGACY, LegacyClient, answer_nothing};
use serde_json::{Value, json};
use std::time::Duration;

const ANN_TOKEN: &str = "anns-token-for-tests";
const ANN_SHA256: &str = "87c272b4612ce783026bcb53d51116a9bf8b8b1e5415e8fac68a73dab887473f";
const BOSS_TOKEN: &str = "boss-token-for-tests";
const BOSS_SHA256: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";

fn tokens() -> Value {
    json!({"auth": {"tokens": [{"name": "ann", "sha256": ANN_SHA256}, {"name": "boss", "sha256": BOSS_SHA256}]}})
}

async fn status(hub: &RunningHub, token: &str) -> Result<u16> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    Ok(HttpClient::default().get(&format!("{}/tools", hub.base_url), &headers).await?.status)
}

/// An open notification stream of a session.
async fn open_stream(hub: &RunningHub, token: &str) -> Result<HttpReply> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let client =
        LegacyClient::connect_as(&hub.mcp_url(), LEGACY, json!({}), answer_nothing, &headers).await?;
    let headers = [
        ("authorization", bearer.as_str()),
        ("mcp-session-id", client.session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let stream = HttpClient::default().get(&client.url, &headers).await?;
    anyhow::ensure!(stream.status == 200, "{}", stream.status);
    Ok(stream)
}

async fn ends(mut stream: HttpReply) -> Result<()> {
    let end = async { while let Ok(Some(_)) = stream.next_event().await {} };
    tokio::time::timeout(Duration::from_secs(60), end).await.context("the stream goes on")
}

#[tokio::test]
async fn fronts_with_settings_of_their_own_refuse_a_token_that_was_revoked_at_one() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let (home, one) = fleet.front("one", tokens()).await?;
    let (_home_two, two) = fleet.front("two", tokens()).await?;
    let (home_three, three) = fleet.front("three", tokens()).await?;
    let fronts = [&one, &two, &three];
    for front in fronts {
        assert_eq!(status(front, ANN_TOKEN).await?, 200);
    }
    let streams = [open_stream(&one, ANN_TOKEN).await?, open_stream(&three, ANN_TOKEN).await?];
    let (code, out, said) = home.run(&["token", "revoke", "ann"]).await?;
    assert_eq!(code, 0, "{said}");
    assert!(
        out.contains("Revoked ann") && said.contains("All hubs that reach the shared database"),
        "{out} {said}"
    );
    for front in fronts {
        eventually("every front refuses the token", async || {
            (status(front, ANN_TOKEN).await.ok()? == 401).then_some(())
        })
        .await?;
        assert_eq!(status(front, BOSS_TOKEN).await?, 200);
    }
    for stream in streams {
        ends(stream).await?;
    }
    // Also after a restart, with settings that still have it, and after these were read again.
    drop(three);
    let three = home_three.serve_with(&["--roles", "front"]).await?;
    assert_eq!(status(&three, ANN_TOKEN).await?, 401);
    let (code, _, said) = home_three.run(&["config", "reload"]).await?;
    assert_eq!(code, 0, "{said}");
    assert_eq!(status(&three, ANN_TOKEN).await?, 401);
    assert_eq!(status(&three, BOSS_TOKEN).await?, 200);
    // A machine whose settings do not have the token can name its digest.
    let (code, out, said) = home.run(&["token", "revoke", "--sha256", BOSS_SHA256]).await?;
    assert!(code == 0 && out.contains("All hubs"), "{out} {said}");
    eventually("the other token is refused", async || {
        (status(&three, BOSS_TOKEN).await.ok()? == 401).then_some(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn without_a_shared_database_the_message_says_what_it_reaches() -> Result<()> {
    let fleet = TestFleet::without_database("127.0.0.1")?;
    let (home, one) = fleet.front_with("one", Database::None, tokens()).await?;
    let (_home, two) = fleet.front_with("two", Database::None, tokens()).await?;
    let (code, _, said) = home.run(&["token", "revoke", "ann"]).await?;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("on this machine") && said.contains("remove it there, too"), "{said}");
    assert_eq!((status(&one, ANN_TOKEN).await?, status(&two, ANN_TOKEN).await?), (401, 200));
    let (code, _, said) = home.run(&["token", "revoke", "--sha256", ANN_SHA256]).await?;
    assert!(code != 0 && said.contains("store.postgres"), "{said}");
    Ok(())
}
