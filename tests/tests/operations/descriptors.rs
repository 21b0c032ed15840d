//! A hub that may open few files.

use super::{ANN_TOKEN, ann_token, boss_token, call_tool, get_with_token};
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::json;
use std::net::TcpStream;
use std::process::Stdio;

const DESCRIPTORS: usize = 256;
/// More than the hub can have open.
const SILENT: usize = 400;

/// Connections that send nothing take no descriptor from callers, the audit log and programs.
#[tokio::test]
async fn silent_connections_leave_descriptors_for_callers_and_the_audit_log() -> Result<()> {
    let tokens = json!([ann_token(), boss_token()]);
    let home = HubHome::new(&json!({"auth": {"tokens": tokens}, "toolboxes": {"shell": true}}))?;
    let serve = home.command(&["serve", "--port", "0"])?;
    let mut limited = tokio::process::Command::new("sh");
    // The soft limit is lower still, and the hub raises it.
    let script = format!("ulimit -Sn 64; ulimit -Hn {DESCRIPTORS}; exec \"$0\" \"$@\"");
    limited.arg("-c").arg(script).arg(serve.as_std().get_program()).args(serve.as_std().get_args());
    limited.env_clear();
    for (name, value) in serve.as_std().get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    limited.current_dir(home.workspace()).stdout(Stdio::null()).kill_on_drop(true);
    let hub = RunningHub::start(limited).await?;
    let address = hub.base_url.trim_start_matches("http://").to_owned();
    let mut silent = Vec::new();
    for round in 0..4 {
        while silent.len() < SILENT * (round + 1) / 4 {
            silent.push(TcpStream::connect(&address)?);
        }
        eventually("a caller with a token is answered", async || {
            let (status, _) = call_tool(&hub, ANN_TOKEN, "time_now", json!({})).await.ok()?;
            (status == 200).then_some(())
        })
        .await?;
    }
    let (status, reply) = call_tool(&hub, ANN_TOKEN, "shell_exec", json!({"command": "ls"})).await?;
    assert_eq!(status, 200, "{reply}");
    let health = get_with_token(&format!("{}/health", hub.base_url), ANN_TOKEN).await?;
    assert_eq!(health.status, 200);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", hub.process.id().unwrap()))?;
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    assert_eq!(open_files.matches(&DESCRIPTORS.to_string()).count(), 2, "{open_files}");
    let log = hub.log.lock().unwrap().clone();
    assert!(!log.contains("cannot accept connections") && !log.contains("unable to open"), "{log}");
    let records = home.audit_tail(50).await?;
    let ended = |name: &str| {
        let calls = records.iter().filter(|record| record["name"] == name).map(|record| &record["call"]);
        calls.filter(|call| records.iter().any(|end| end["outcome"] == "ok" && end["call"] == **call)).count()
    };
    assert!(ended("time_now") >= 4 && ended("shell_exec") == 1, "{records:?}");
    Ok(())
}

#[tokio::test]
async fn doctor_names_a_low_limit() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let doctor = home.command(&["doctor", "--json"])?;
    let run = async |limit: &str| -> Result<serde_json::Value> {
        let mut limited = tokio::process::Command::new("sh");
        let script = format!("ulimit -Sn 64; ulimit -Hn {limit}; exec \"$0\" \"$@\"");
        limited.arg("-c").arg(script).arg(doctor.as_std().get_program()).args(doctor.as_std().get_args());
        limited.env_clear();
        limited.envs(doctor.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
        let printed = limited.current_dir(home.workspace()).output().await?.stdout;
        let found: serde_json::Value = serde_json::from_slice(&printed)?;
        let checks = found["checks"].as_array().cloned().unwrap_or_default();
        Ok(checks.into_iter().find(|check| check["name"] == "files").unwrap_or_default())
    };
    let low = run("256").await?;
    assert_eq!(low["state"], "warn", "{low}");
    assert!(low["hint"].to_string().contains("LimitNOFILE"), "{low}");
    Ok(())
}
