//! The audit log: filtered, exported, with arguments on request, and limited in size.

use super::call_tool;
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use serde_json::{Value, json};

async fn run_json_lines(home: &HubHome, args: &[&str]) -> Result<Vec<Value>> {
    let (code, out, err) = home.run(args).await?;
    assert_eq!(code, 0, "{args:?}: {err}");
    out.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[tokio::test]
async fn records_are_filtered_and_exported() -> Result<()> {
    let home = HubHome::new(
        &json!({"policy": {"rules": [{"name": "no", "tools": ["time_parse"], "decision": "deny"}]}}),
    )?;
    let hub = home.serve().await?;
    for _ in 0..3 {
        call_tool(&hub, "", "time_now", json!({})).await?;
        call_tool(&hub, "", "time_parse", json!({"text": "now"})).await?;
    }
    eventually("all are recorded", async || (home.audit_tail(100).await.ok()?.len() == 12).then_some(()))
        .await?;
    let of = |filter: &'static [&'static str]| {
        let home = &home;
        async move { run_json_lines(home, &[&["audit", "tail", "--json", "-n", "100"], filter].concat()).await }
    };
    // A call is both of its records, whichever of them the filter is about.
    assert_eq!(of(&["--tool", "time_now"]).await?.len(), 6);
    assert_eq!(of(&["--tool", "time_*"]).await?.len(), 12);
    let denied = of(&["--outcome", "denied"]).await?;
    assert!(
        denied.len() == 6 && denied.iter().all(|it| it["kind"] == "close" || it["name"] == "time_parse"),
        "{denied:?}"
    );
    assert_eq!(of(&["--caller", "local"]).await?.len(), 12);
    assert_eq!(of(&["--caller", "nobody"]).await?.len(), 0);
    assert_eq!(of(&["--since", "1h"]).await?.len(), 12);
    assert_eq!(of(&["--since", "2099-01-01"]).await?.len(), 0);
    assert_eq!(
        run_json_lines(&home, &["audit", "tail", "--json", "-n", "2", "--tool", "time_now"]).await?.len(),
        2
    );
    let exported = run_json_lines(&home, &["audit", "export"]).await?;
    assert_eq!(exported.len(), 12);
    assert!(exported[0]["hash"].is_string() && exported[0]["seq"] == 1);
    assert_eq!(run_json_lines(&home, &["audit", "export", "--outcome", "ok"]).await?.len(), 6);
    let (code, ..) = home.run(&["audit", "tail", "--since", "whenever"]).await?;
    assert_eq!(code, 2);
    Ok(())
}

#[tokio::test]
async fn arguments_are_recorded_on_request_without_secrets() -> Result<()> {
    let home = HubHome::new(&json!({"audit": {"arguments": true}}))?;
    let hub = home.serve().await?;
    call_tool(&hub, "", "time_now", json!({"timezone": "UTC", "password": "hunter2"})).await?;
    let records = home.audit_tail(10).await?;
    let shown = records[0]["shown"].as_str().unwrap_or_default();
    assert!(shown.contains("UTC") && shown.contains("***") && !shown.contains("hunter2"), "{records:?}");
    let (code, out, err) = home.run(&["audit", "verify"]).await?;
    assert_eq!(code, 0, "{out} {err}");
    Ok(())
}

/// Pruned records are gone, and the chain still verifies the rest.
#[tokio::test]
async fn old_records_are_pruned_and_the_chain_still_verifies() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    for _ in 0..20 {
        call_tool(&hub, "", "time_now", json!({})).await?;
    }
    eventually("all are recorded", async || (home.audit_tail(100).await.ok()?.len() == 40).then_some(()))
        .await?;
    let before = run_json_lines(&home, &["audit", "verify", "--json"]).await?;
    let (code, out, err) = home.run(&["audit", "prune", "--keep-records", "10", "--json"]).await?;
    assert_eq!(code, 0, "{err}");
    let pruned: Value = serde_json::from_str(&out)?;
    assert_eq!(pruned["pruned"], 30, "{pruned}");
    // The record about it is one more.
    let after = run_json_lines(&home, &["audit", "verify", "--json"]).await?;
    assert_eq!(after[0]["records"], 11, "{after:?}");
    assert_eq!(after[0]["pruned"]["seq"], 30, "{after:?}");
    // The hub continues the same chain, and a head that was noted before still proves it.
    call_tool(&hub, "", "time_now", json!({})).await?;
    eventually("two more are recorded", async || {
        (home.audit_tail(100).await.ok()?.len() == 13).then_some(())
    })
    .await?;
    let head = &before[0]["head"];
    let head = format!("{}:{}", head["seq"], head["hash"].as_str().unwrap_or_default());
    let (code, out, err) = home.run(&["audit", "verify", "--anchor", &head]).await?;
    assert_eq!(code, 0, "{out} {err}");
    Ok(())
}

#[tokio::test]
async fn a_hub_keeps_its_audit_within_its_bounds() -> Result<()> {
    let home = HubHome::new(&json!({"audit": {"max_records": 1000}}))?;
    let hub = home.serve().await?;
    for _ in 0..600 {
        call_tool(&hub, "", "time_now", json!({})).await?;
    }
    eventually("the audit is bounded", async || {
        let (_, out, _) = home.run(&["audit", "verify", "--json"]).await.ok()?;
        let verified: Value = serde_json::from_str(&out).ok()?;
        (verified["records"].as_u64()? <= 1000 && verified["pruned"]["seq"].as_u64()? >= 200).then_some(())
    })
    .await?;
    Ok(())
}
