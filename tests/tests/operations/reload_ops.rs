//! Reload of changed settings while the hub runs.

use super::{
    ANN_SHA256, ANN_TOKEN, BOSS_TOKEN, ann_token, boss_token, call_tool, get_with_token, rewrite_settings,
    send_signal,
};
use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Changes must be in force within a second.
const RELOAD_DEADLINE: Duration = Duration::from_secs(1);

async fn reload(home: &HubHome) -> Result<(i32, Value)> {
    let (code, out, err) = home.run(&["config", "reload", "--json"]).await?;
    let value = serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?;
    Ok((code, value))
}

#[tokio::test]
async fn a_removed_token_is_refused_within_a_second_also_on_open_streams() -> Result<()> {
    let home = HubHome::new(
        &json!({"auth": {"tokens": [ann_token(), boss_token()]}, "toolboxes": {"shell": true}}),
    )?;
    let hub = home.serve().await?;
    let bearer = format!("Bearer {ANN_TOKEN}");
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": octo_tests::mcp_clients::LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let http = octo_tests::http_client::HttpClient::default();
    let answer = http.post(&hub.mcp_url(), &[("authorization", &bearer)], &body).await?;
    let session = answer.header("mcp-session-id").context("no session")?.to_owned();
    let headers = [
        ("authorization", bearer.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", octo_tests::mcp_clients::LEGACY),
        ("accept", "text/event-stream"),
    ];
    let mut stream = http.get(&hub.mcp_url(), &headers).await?;
    assert_eq!(stream.status, 200);
    let slow = tokio::spawn({
        let (base, bearer) = (hub.base_url.clone(), bearer.clone());
        async move {
            let url = format!("{base}/tools/shell_exec");
            let answer = octo_tests::http_client::HttpClient::default()
                .post(&url, &[("authorization", &bearer)], &json!({"command": "sleep 20"}))
                .await?;
            anyhow::Ok(answer.status)
        }
    });
    eventually("the call is under way", async || {
        home.audit_tail(5).await.ok()?.iter().any(|record| record["name"] == "shell_exec").then_some(())
    })
    .await?;
    rewrite_settings(&home, &json!({"auth": {"tokens": [boss_token()]}, "toolboxes": {"shell": true}}))?;
    let written = Instant::now();
    eventually("ann is refused", async || {
        (get_with_token(&format!("{}/tools", hub.base_url), ANN_TOKEN).await.ok()?.status == 401)
            .then_some(())
    })
    .await?;
    assert!(written.elapsed() < RELOAD_DEADLINE, "{:?}", written.elapsed());
    // Her stream and her call end, too.
    let ended =
        tokio::time::timeout(RELOAD_DEADLINE, async { while let Ok(Some(_)) = stream.next_event().await {} })
            .await;
    assert!(ended.is_ok(), "the stream is still open");
    assert_eq!(tokio::time::timeout(RELOAD_DEADLINE, slow).await???, 401);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(http.post(&hub.mcp_url(), &headers[..3], &list).await?.status, 401);
    assert_eq!(get_with_token(&format!("{}/tools", hub.base_url), BOSS_TOKEN).await?.status, 200);
    // Without any token nobody comes in, rather than everybody.
    rewrite_settings(&home, &json!({}))?;
    eventually("boss is refused", async || {
        (get_with_token(&format!("{}/tools", hub.base_url), BOSS_TOKEN).await.ok()?.status == 401)
            .then_some(())
    })
    .await?;
    assert_eq!(get_with_token(&format!("{}/tools", hub.base_url), "").await?.status, 401);
    Ok(())
}

#[tokio::test]
async fn tokens_that_are_added_close_an_open_hub() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    let tools = format!("{}/tools", hub.base_url);
    assert_eq!(get_with_token(&tools, "").await?.status, 200);
    rewrite_settings(&home, &json!({"auth": {"tokens": [ann_token()]}}))?;
    eventually("strangers are refused", async || {
        (get_with_token(&tools, "").await.ok()?.status == 401).then_some(())
    })
    .await?;
    assert_eq!(get_with_token(&tools, ANN_TOKEN).await?.status, 200);
    // Scopes follow, too.
    assert_eq!(get_with_token(&format!("{}/metrics", hub.base_url), ANN_TOKEN).await?.status, 403);
    rewrite_settings(
        &home,
        &json!({"auth": {"tokens": [{"name": "ann", "sha256": ANN_SHA256, "scopes": ["admin"]}]}}),
    )?;
    eventually("ann is an administrator", async || {
        (get_with_token(&format!("{}/metrics", hub.base_url), ANN_TOKEN).await.ok()?.status == 200)
            .then_some(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn rules_limits_profiles_and_deadlines_follow_the_file() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    assert_eq!(call_tool(&hub, "", "time_now", json!({})).await?.0, 200);
    rewrite_settings(
        &home,
        &json!({
            "policy": {"rules": [{"name": "no-clock", "tools": ["time_now"], "decision": "deny"}]},
            "limits": [{"tools": ["time_diff"], "per_minute": 1}],
            "profiles": {"lean": {"tools": ["time_*"]}},
            "listen": {"port": 1},
            "telemetry": {"log_level": "debug", "service_name": "other"},
        }),
    )?;
    eventually("the rule is in force", async || {
        (call_tool(&hub, "", "time_now", json!({})).await.ok()?.0 == 403).then_some(())
    })
    .await?;
    let tools = get_with_token(&format!("{}/tools", hub.base_url), "").await?.text().await?;
    assert!(!tools.contains("\"time_now\""), "it is still listed");
    let lean = get_with_token(&format!("{}/tools?profile=lean", hub.base_url), "").await?.json().await?;
    let names: Vec<&str> =
        lean["tools"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("time_")), "{names:?}");
    let days = json!({"start": "2026-01-01", "end": "2026-01-02"});
    assert_eq!(call_tool(&hub, "", "time_diff", days.clone()).await?.0, 200);
    assert_ne!(call_tool(&hub, "", "time_diff", days.clone()).await?.0, 200);
    let (code, report) = reload(&home).await?;
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["hubs"][0]["applied"], json!([]), "the file was followed already");
    assert_eq!(report["hubs"][0]["needs_restart"], json!(["telemetry.service_name"]), "{report}");
    assert_eq!(report["hubs"][0]["pid"], json!(hub.process.id()));
    // What was used up of a limit stays used up.
    assert_ne!(call_tool(&hub, "", "time_diff", days).await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn wrong_settings_change_nothing_and_are_reported() -> Result<()> {
    let home = HubHome::new(&json!({"auth": {"tokens": [ann_token()]}}))?;
    let hub = home.serve().await?;
    let tools = format!("{}/tools", hub.base_url);
    for wrong in [
        json!({"auth": {"tokens": []}, "polcy": {}}),
        json!({"policy": {"rules": [{"name": "x", "tools": ["[a"], "decision": "deny"}]}}),
        json!({"auth": {"tokens": [{"name": "bob", "sha256": "12"}]}}),
        json!({"auth": {"tokens": [ann_token(), {"name": "bob", "sha256": ANN_SHA256}]}}),
    ] {
        rewrite_settings(&home, &wrong)?;
        let (code, out, err) = home.run(&["config", "reload"]).await?;
        assert_eq!(code, 2, "{wrong}: {out} {err}");
        assert!(!format!("{out}{err}").trim().is_empty());
        send_signal(&hub, Signal::HUP)?;
        assert_eq!(get_with_token(&tools, ANN_TOKEN).await?.status, 200, "{wrong}");
        assert_eq!(get_with_token(&tools, "").await?.status, 401, "{wrong}");
    }
    rewrite_settings(&home, &json!({"auth": {"tokens": [ann_token(), boss_token()]}}))?;
    let (code, report) = reload(&home).await?;
    assert_eq!(code, 0, "{report}");
    assert_eq!(get_with_token(&tools, BOSS_TOKEN).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_hangup_reloads_and_loses_no_call() -> Result<()> {
    let home = HubHome::new(&json!({"toolboxes": {"shell": true}}))?;
    let mut hub = home.serve().await?;
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let base = hub.base_url.clone();
            tokio::spawn(async move {
                let url = format!("{base}/tools/time_now");
                let mut statuses = Vec::new();
                for _ in 0..20 {
                    let answer =
                        octo_tests::http_client::HttpClient::default().post(&url, &[], &json!({})).await?;
                    statuses.push(answer.status);
                }
                if number < 4 {
                    let url = format!("{base}/tools/shell_exec");
                    let body = json!({"command": "sleep 1; echo done"});
                    let answer =
                        octo_tests::http_client::HttpClient::default().post(&url, &[], &body).await?;
                    statuses.push(answer.status);
                }
                anyhow::Ok(statuses)
            })
        })
        .collect();
    for number in 0..20 {
        send_signal(&hub, Signal::HUP)?;
        rewrite_settings(
            &home,
            &json!({"toolboxes": {"shell": true}, "calls": {"timeout_seconds": 100 + number}}),
        )?;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    for call in calls {
        let statuses = call.await??;
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    }
    assert!(hub.process.try_wait()?.is_none(), "the hub has ended");
    let (code, report) = reload(&home).await?;
    assert_eq!((code, &report["hubs"][0]["error"]), (0, &Value::Null), "{report}");
    Ok(())
}

#[tokio::test]
async fn a_stdio_hub_survives_a_hangup() -> Result<()> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let home = HubHome::new(&json!({}))?;
    let mut command = home.command(&["stdio"])?;
    let piped = || std::process::Stdio::piped();
    let mut process = command.stdin(piped()).stdout(piped()).stderr(std::process::Stdio::null()).spawn()?;
    let (mut input, output) =
        (process.stdin.take().context("no stdin")?, process.stdout.take().context("no stdout")?);
    let mut lines = BufReader::new(output).lines();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": octo_tests::mcp_clients::LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    input.write_all(format!("{hello}\n").as_bytes()).await?;
    assert!(lines.next_line().await?.context("no answer")?.contains("serverInfo"));
    let hub = RunningHub {
        base_url: String::new(),
        admin_url: String::new(),
        process,
        log: Default::default(),
        fleet: None,
    };
    send_signal(&hub, Signal::HUP)?;
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
    assert!(lines.next_line().await?.context("it has ended")?.contains("\"id\":1"));
    Ok(())
}

/// A project's settings file counts with the content that a person has approved.
#[tokio::test]
async fn an_unapproved_change_is_refused_and_the_settings_stay() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let config = home.dir.path().join("octoprox.yaml");
    // The workspace holds the settings, so tools could write them.
    let settings =
        |policy: Value| json!({"workspace": ".", "admin": {"port": 0}, "policy": policy}).to_string();
    let deny = json!({"rules": [{"name": "none", "tools": ["time_now"], "decision": "deny"}]});
    std::fs::write(&config, settings(deny))?;
    let path = config.display().to_string();
    let (code, _, err) = home.run(&["trust", &path, "--yes"]).await?;
    assert_eq!(code, 0, "{err}");
    let hub = home.serve().await?;
    assert_eq!(call_tool(&hub, "", "time_now", json!({})).await?.0, 403);
    std::fs::write(&config, settings(json!({})))?;
    let (code, out, err) = home.run(&["config", "reload"]).await?;
    assert_ne!(code, 0, "{out}");
    assert!(err.contains("approved"), "{err}");
    send_signal(&hub, Signal::HUP)?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(call_tool(&hub, "", "time_now", json!({})).await?.0, 403);
    let (code, _, err) = home.run(&["trust", &path, "--yes"]).await?;
    assert_eq!(code, 0, "{err}");
    eventually("the approved content is in force", async || {
        (call_tool(&hub, "", "time_now", json!({})).await.ok()?.0 == 200).then_some(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_reload_without_a_hub_says_so() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let (code, _, err) = home.run(&["config", "reload"]).await?;
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("octoprox serve"), "{err}");
    // What a killed hub leaves behind is not one.
    let mut hub = home.serve().await?;
    hub.process.kill().await?;
    let (code, _, err) = home.run(&["config", "reload"]).await?;
    assert_eq!(code, 3, "{err}");
    Ok(())
}
