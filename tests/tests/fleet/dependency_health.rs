//! `/ready` and `octoprox doctor` name what is down and what depends on it.

use crate::database_relay::DatabaseRelay;
use crate::test_fleet::{Database, TestFleet, call, call_when_served};
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::{Value, json};

async fn ready(hub: &RunningHub) -> Result<(u16, Value)> {
    let reply = HttpClient::default().get(&format!("{}/ready", hub.base_url), &[]).await?;
    Ok((reply.status, reply.json().await?))
}

/// Waits until a check of `/ready` has a state, and returns the status with the whole body.
async fn until_check(hub: &RunningHub, name: &str, state: &str) -> Result<(u16, Value, Value)> {
    eventually(&format!("{name} is {state}"), async || {
        let (status, body) = ready(hub).await.ok()?;
        let check = body["checks"].as_array()?.iter().find(|check| check["name"] == name)?.clone();
        (check["state"] == state).then_some((status, check, body))
    })
    .await
}

async fn doctor(home: &HubHome, name: &str) -> Result<Value> {
    let (_, printed, _) = home.run(&["doctor", "--json"]).await?;
    let found: Value = serde_json::from_str(&printed)?;
    let checks = found["checks"].as_array().cloned().unwrap_or_default();
    Ok(checks.into_iter().find(|check| check["name"] == name).unwrap_or_default())
}

#[tokio::test]
async fn without_the_bus_a_front_is_degraded_and_names_what_fails() -> Result<()> {
    let mut fleet = TestFleet::start().await?;
    let (home, front) = fleet.front("front", json!({})).await?;
    let (status, check, body) = until_check(&front, "workspace", "degraded").await?;
    assert_eq!((status, &body["status"]), (200, &json!("degraded")));
    assert_eq!(check["affects"], json!(["filesystem", "git", "ssh"]), "{body}");
    assert!(doctor(&home, "worker").await?["message"].to_string().contains("no worker serves"));

    let _worker = fleet.worker("laptop", Database::None, json!({}))?;
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    let (status, _, body) = until_check(&front, "workspace", "ok").await?;
    assert_eq!((status, &body["status"]), (200, &json!("ready")), "{body}");
    assert!(doctor(&home, "worker").await?["message"].to_string().contains("served by `laptop`"));
    assert_eq!(doctor(&home, "fleet").await?["state"], "ok");
    assert!(doctor(&home, "database").await?["message"].to_string().contains("version 4"));

    fleet.stop_nats().await?;
    let (status, check, body) = until_check(&front, "message_bus", "degraded").await?;
    assert_eq!((status, &body["status"]), (200, &json!("degraded")), "{body}");
    assert_eq!(check["affects"], json!(["filesystem", "git", "ssh"]), "{body}");
    call(&front, "time_now", json!({})).await?;
    let nats = doctor(&home, "nats").await?;
    assert_eq!(nats["state"], "fail", "{nats}");
    assert!(nats["hint"].to_string().contains("fleet.nats"), "{nats}");
    Ok(())
}

#[tokio::test]
async fn two_nodes_of_one_name_are_found() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let _one = fleet.worker("twin", Database::None, json!({}))?;
    let _two = fleet.worker("twin", Database::None, json!({}))?;
    let home = fleet.home("front", Database::None, json!({}))?;
    let found = eventually("both answer", async || {
        let found = doctor(&home, "fleet").await.ok()?;
        (found["state"] == "fail").then_some(found)
    })
    .await?;
    assert!(found["message"].to_string().contains("the same name: twin"), "{found}");
    assert!(found["hint"].to_string().contains("store.node"), "{found}");
    Ok(())
}

#[tokio::test]
async fn without_the_database_a_front_is_not_ready() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let relay = DatabaseRelay::start().await?;
    let (home, front) = fleet.front("front", json!({"store": {"postgres": relay.address}})).await?;
    let (status, ..) = until_check(&front, "database", "ok").await?;
    assert_eq!(status, 200);
    drop(relay);
    let (status, check, body) = until_check(&front, "database", "failed").await?;
    assert_eq!((status, &body["status"]), (503, &json!("not_ready")), "{body}");
    assert!(check["reason"].to_string().contains("Check that the database runs"), "{check}");
    let found = doctor(&home, "database").await?;
    assert_eq!(found["state"], "fail", "{found}");
    let refused = call(&front, "time_now", json!({})).await.unwrap_err().to_string();
    assert!(refused.contains("503"), "{refused}");
    Ok(())
}
