//! Tokens with scopes and expiry, listed and revoked from the command line.

use super::{ANN_TOKEN, BOSS_TOKEN, ann_token, boss_token, call_tool, get_with_token, rewrite_settings};
use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LEGACY, LegacyClient, answer_nothing};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_the_rest_of_the_file_stays() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let config = home.dir.path().join("octoprox.yaml");
    let lines = |name: &str, token: &Value| {
        format!("    - name: {name} # of {name}\n      sha256: {}\n", token["sha256"].as_str().unwrap())
    };
    let text = format!(
        "# ours\nworkspace: workspace\nadmin: {{port: 0}}\nauth:\n  tokens:\n{}{}      scopes: [admin]\n",
        lines("ann", &ann_token()),
        lines("boss", &boss_token())
    );
    std::fs::write(&config, &text)?;
    let hub = home.serve().await?;
    let tools = format!("{}/tools", hub.base_url);
    assert_eq!(get_with_token(&tools, ANN_TOKEN).await?.status, 200);
    let (code, out, err) = home.run(&["token", "list", "--json"]).await?;
    assert_eq!(code, 0, "{err}");
    let listed: Value = serde_json::from_str(&out)?;
    assert_eq!(listed["tokens"][1]["name"], "boss");
    assert_eq!(listed["tokens"][1]["scopes"], json!(["admin"]));
    assert!(!out.contains(super::ANN_SHA256), "{out}");
    let (code, out, err) = home.run(&["token", "revoke", "ann"]).await?;
    assert_eq!(code, 0, "{out} {err}");
    // The command returns when the hub has reloaded.
    assert_eq!(get_with_token(&tools, ANN_TOKEN).await?.status, 401);
    assert_eq!(get_with_token(&tools, BOSS_TOKEN).await?.status, 200);
    let ours = text.replace(&lines("ann", &ann_token()), "");
    assert_eq!(std::fs::read_to_string(&config)?, ours);
    for (name, code) in [("ann", 3), ("", 3)] {
        let (found, _, err) = home.run(&["token", "revoke", name]).await?;
        assert_eq!(found, code, "{err}");
    }
    Ok(())
}

/// A public hub stays closed when its last token is revoked, although it could not be started like that.
#[tokio::test]
async fn the_last_token_of_a_public_hub_can_be_revoked() -> Result<()> {
    let home = HubHome::new(&json!({"auth": {"tokens": [ann_token()]}, "listen": {"host": "0.0.0.0"}}))?;
    let hub = home.serve().await?;
    let tools = format!("{}/tools", hub.base_url);
    assert_eq!(get_with_token(&tools, ANN_TOKEN).await?.status, 200);
    let (code, out, err) = home.run(&["token", "revoke", "ann"]).await?;
    assert_eq!(code, 0, "{out} {err}");
    assert!(err.contains("every request is refused") && err.contains("would not start"), "{err}");
    for token in [ANN_TOKEN, ""] {
        assert_eq!(get_with_token(&tools, token).await?.status, 401);
    }
    Ok(())
}

#[tokio::test]
async fn a_token_ends_when_it_expires() -> Result<()> {
    let home = HubHome::new(&json!({"auth": {"tokens": [boss_token()]}}))?;
    let hub = home.serve().await?;
    let (code, out, err) =
        home.run(&["token", "new", "guest", "--expires", "4s", "--scope", "admin", "--json"]).await?;
    assert_eq!(code, 0, "{err}");
    let made: Value = serde_json::from_str(&out)?;
    let token = made["token"].as_str().context("no token")?.to_owned();
    assert_eq!(made["settings"]["scopes"], json!(["admin"]));
    let past = json!({"name": "past", "sha256": super::ANN_SHA256, "expires": "2020-01-01T00:00:00Z"});
    rewrite_settings(&home, &json!({"auth": {"tokens": [boss_token(), made["settings"], past]}}))?;
    let (code, _, err) = home.run(&["config", "reload"]).await?;
    assert_eq!(code, 0, "{err}");
    let metrics = format!("{}/metrics", hub.base_url);
    assert_eq!(get_with_token(&metrics, &token).await?.status, 200);
    let expired = get_with_token(&metrics, ANN_TOKEN).await?;
    assert_eq!(expired.status, 401);
    assert!(expired.text().await?.contains("expired"));
    eventually("the guest's time is over", async || {
        (get_with_token(&metrics, &token).await.ok()?.status == 401).then_some(())
    })
    .await?;
    let (_, out, _) = home.run(&["token", "list"]).await?;
    assert!(out.contains("expired 2020-01-01T00:00:00Z"), "{out}");
    let (code, _, err) = home.run(&["token", "new", "x", "--expires", "yesterday"]).await?;
    assert_eq!(code, 2, "{err}");
    Ok(())
}

#[tokio::test]
async fn tokens_of_variables_administer() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let mut command = home.command(&["serve", "--port", "0"])?;
    command.env("GATEWAY_TOKEN", "gateway-token-for-tests").env("OCTOPROX_ADMIN_TOKEN", BOSS_TOKEN);
    command.stdout(std::process::Stdio::null());
    let hub = RunningHub::start(command).await?;
    let metrics = format!("{}/metrics", hub.base_url);
    for token in ["gateway-token-for-tests", BOSS_TOKEN] {
        assert_eq!(get_with_token(&metrics, token).await?.status, 200, "{token}");
    }
    let connect = format!("{}/servers/clock/connect", hub.admin_url);
    let headers = [("authorization", "Bearer gateway-token-for-tests")];
    let answer = HttpClient::default().post(&connect, &headers, &json!({})).await?;
    assert_eq!(answer.status, 404, "there is no such server, and nothing else is wrong");
    let (status, reply) = call_tool(&hub, "gateway-token-for-tests", "time_now", json!({})).await?;
    assert_eq!(status, 200, "{reply}");
    Ok(())
}

#[tokio::test]
async fn a_session_has_no_more_rights_than_its_token_and_ends_with_it() -> Result<()> {
    let settings = |tokens: Value| json!({"auth": {"tokens": tokens}, "toolboxes": {"shell": true}});
    let home = HubHome::new(&settings(json!([ann_token(), boss_token()])))?;
    let hub = home.serve().await?;
    let bearer = format!("Bearer {BOSS_TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let client =
        LegacyClient::connect_as(&hub.mcp_url(), LEGACY, json!({}), answer_nothing, &headers).await?;
    let client = Arc::new(client);
    let in_session = |method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        let client = Arc::clone(&client);
        async move { anyhow::Ok(client.post(&body).await?.status) }
    };
    assert_eq!(in_session("tools/list", json!({})).await?, 200);
    let slow =
        json!({"name": "shell_exec", "arguments": {"command": "sleep 20"}, "_meta": {"progressToken": 1}});
    let slow = tokio::spawn(in_session("tools/call", slow));
    let ended = async |outcome: &str| {
        let records = home.audit_tail(20).await.ok()?;
        let opened = records.iter().find(|record| record["name"] == "shell_exec")?;
        let is_end = |record: &&Value| record["call"] == opened["call"] && record["outcome"] == outcome;
        records.iter().find(is_end).map(drop)
    };
    eventually("the call is under way", async || {
        home.audit_tail(20).await.ok()?.iter().any(|record| record["name"] == "shell_exec").then_some(())
    })
    .await?;
    // The same token without its scope.
    let mut demoted = boss_token();
    demoted["scopes"] = json!([]);
    rewrite_settings(&home, &settings(json!([ann_token(), demoted])))?;
    let (code, _, err) = home.run(&["config", "reload"]).await?;
    assert_eq!(code, 0, "{err}");
    eventually("the call has ended", async || ended("cancelled").await).await?;
    slow.abort();
    assert_eq!(in_session("tools/list", json!({})).await?, 404, "the session is over");
    assert_eq!(get_with_token(&format!("{}/tools", hub.base_url), BOSS_TOKEN).await?.status, 200);
    Ok(())
}
