//! Nodes report their calls, leases and lag.

use crate::test_fleet::{Database, TestFleet, call_when_served};
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use serde_json::{Value, json};

#[tokio::test]
async fn both_sides_count_a_call_and_a_worker_reports_over_the_bus() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let _worker = fleet.worker("laptop", Database::Shared, json!({}))?;
    let (home, front) = fleet.front("front", json!({})).await?;
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    let metrics =
        HttpClient::default().get(&format!("{}/metrics", front.base_url), &[]).await?.text().await?;
    for line in [
        "octoprox_bus_connected 1",
        "octoprox_fleet_calls_total{service=\"workspace\",outcome=\"ok\"} 1",
        "octoprox_fleet_call_seconds_count{service=\"workspace\"}",
        "octoprox_database_connections{state=\"in_use\"}",
        "octoprox_database_waiting 0",
        "octoprox_database_wait_seconds_count",
        "octoprox_audit_queue_records",
        "octoprox_audit_commit_seconds_count",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let (code, metrics, error) = home.run(&["fleet", "metrics", "laptop"]).await?;
    assert_eq!(code, 0, "{error}");
    for line in [
        "octoprox_fleet_served_calls_total{service=\"workspace\",outcome=\"ok\"} 1",
        "octoprox_fleet_leases{service=\"workspace\"} 1",
        "process_resident_memory_bytes",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let (code, _, error) = home.run(&["fleet", "metrics", "nobody"]).await?;
    assert!(code != 0 && error.contains("octoprox fleet status"), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_status_has_the_latency_of_each_node_and_the_lag_of_fronts() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let _worker = fleet.worker("laptop", Database::Shared, json!({}))?;
    let (home, front) = fleet.front("front", json!({})).await?;
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    let nodes = eventually("both nodes answer", async || {
        let (_, printed, _) = home.run(&["fleet", "status", "--json"]).await.ok()?;
        let nodes: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (nodes.len() == 2).then_some(nodes)
    })
    .await?;
    assert!(nodes.iter().all(|node| node["latency_ms"].as_f64().is_some_and(|ms| ms > 0.0)), "{nodes:?}");
    assert_eq!((&nodes[0]["node"], &nodes[1]["node"]), (&json!("front"), &json!("laptop")));
    assert!(nodes[0]["audit"]["lag_ms"].is_u64() && nodes[1]["audit"].is_null(), "{nodes:?}");
    assert!(nodes[1]["services"][0]["token"].is_u64(), "{nodes:?}");
    Ok(())
}
