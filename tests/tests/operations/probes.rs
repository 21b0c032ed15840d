//! Probes report what prevents the hub from working, limits report when to retry, and unauthenticated callers learn
//! nothing.

use super::{ANN_TOKEN, ann_token, boss_token, call_tool, doctor, get_with_token};
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::HubHome;
use serde_json::{Value, json};

#[tokio::test]
async fn a_used_up_limit_is_429_with_the_time_to_wait() -> Result<()> {
    let home = HubHome::new(&json!({"limits": [{"tools": ["time_diff"], "per_minute": 1}]}))?;
    let hub = home.serve().await?;
    let days = json!({"start": "2026-01-01", "end": "2026-01-02"});
    assert_eq!(call_tool(&hub, "", "time_diff", days.clone()).await?.0, 200);
    let url = format!("{}/tools/time_diff", hub.base_url);
    let answer = HttpClient::default().post(&url, &[], &days).await?;
    assert_eq!(answer.status, 429);
    let wait: u64 = answer.header("retry-after").unwrap_or_default().parse()?;
    assert!((2..=60).contains(&wait), "{wait}");
    let reply = answer.json().await?;
    assert_eq!(reply["error"]["kind"], "rate_limited", "{reply}");
    assert_eq!(reply["error"]["retry_after_s"], json!(wait));
    let document = get_with_token(&format!("{}/openapi.json", hub.base_url), "").await?.json().await?;
    let responses = &document["paths"]["/tools/time_diff"]["post"]["responses"];
    assert!(responses["429"].is_object(), "{responses}");
    assert_eq!(document["security"], json!([]), "a hub without tokens says that none are needed");
    Ok(())
}

#[tokio::test]
async fn strangers_learn_only_whether_the_hub_is_ready() -> Result<()> {
    let home = HubHome::new(
        &json!({"auth": {"tokens": [ann_token(), boss_token()]}, "servers": {"hidden-name": {"command": "false"}}}),
    )?;
    let hub = home.serve().await?;
    let ready = format!("{}/ready", hub.base_url);
    let stranger = get_with_token(&ready, "").await?.json().await?;
    assert_eq!(stranger, json!({"status": "ready"}));
    let known = get_with_token(&ready, ANN_TOKEN).await?.json().await?;
    assert!(known["sources"].to_string().contains("hidden-name"), "{known}");
    assert_eq!(known["checks"][0], json!({"name": "audit", "state": "ok"}));
    Ok(())
}

/// A small tmpfs.
struct TmpfsMount(std::path::PathBuf);

impl TmpfsMount {
    fn mount(at: &std::path::Path, bytes: u64) -> Result<Self> {
        std::fs::create_dir_all(at)?;
        let made = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=700"), "tmpfs"])
            .arg(at)
            .status()?;
        anyhow::ensure!(made.success(), "no disk");
        Ok(Self(at.to_owned()))
    }
}

impl Drop for TmpfsMount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_not_ready_and_doctor_says_so() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let home = HubHome::new(&json!({}))?;
    let Ok(_disk) = TmpfsMount::mount(&home.state_dir(), 24 << 20) else { return Ok(()) };
    let hub = home.serve().await?;
    let ready = format!("{}/ready", hub.base_url);
    assert_eq!(get_with_token(&ready, "").await?.status, 200);
    let filler = home.state_dir().join("filler");
    let _ = std::fs::write(&filler, vec![1; 24 << 20]);
    eventually("it is not ready", async || {
        (get_with_token(&ready, "").await.ok()?.status == 503).then_some(())
    })
    .await?;
    let told = get_with_token(&ready, "").await?.json().await?;
    assert_eq!(told["status"], "not_ready");
    assert!(told["checks"][0]["reason"].as_str().is_some_and(|why| why.contains("free space")), "{told}");
    let (code, findings) = doctor(&home).await?;
    assert_eq!(code, 1, "{findings}");
    assert_eq!(check_state(&findings, "data"), "fail", "{findings}");
    std::fs::remove_file(&filler)?;
    eventually("it is ready again", async || {
        (get_with_token(&ready, "").await.ok()?.status == 200).then_some(())
    })
    .await?;
    Ok(())
}

fn check_state<'a>(findings: &'a Value, name: &str) -> &'a Value {
    let found = findings["checks"].as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
    &found.unwrap_or_else(|| panic!("no {name}: {findings}"))["state"]
}

#[tokio::test]
async fn doctor_finds_a_damaged_database_and_a_folder_that_cannot_be_made() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let (code, findings) = doctor(&home).await?;
    assert_eq!(check_state(&findings, "data"), "ok", "{code} {findings}");
    home.run(&["call", "time_now"]).await?;
    let (_, findings) = doctor(&home).await?;
    assert_eq!(check_state(&findings, "database"), "ok", "{findings}");
    assert_eq!(check_state(&findings, "admin port"), "ok", "{findings}");
    std::fs::write(home.state_dir().join("octoprox.db"), [7; 16_384])?;
    let (code, findings) = doctor(&home).await?;
    assert_eq!((code, check_state(&findings, "database")), (1, &json!("fail")), "{findings}");
    let mut command = home.command(&["doctor", "--json"])?;
    let output = command.env("OCTOPROX_STATE_DIR", "/proc/nope").output().await?;
    let findings: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(check_state(&findings, "data"), "fail", "{findings}");
    Ok(())
}

/// Records that go to a deleted file would be lost.
#[tokio::test]
async fn a_state_directory_that_is_gone_is_not_ready() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    assert_eq!(call_tool(&hub, "", "time_now", json!({})).await?.0, 200);
    std::fs::rename(home.state_dir(), home.dir.path().join("moved"))?;
    eventually("it is not ready", async || {
        (get_with_token(&format!("{}/ready", hub.base_url), "").await.ok()?.status == 503).then_some(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_cached_answer_says_so_and_ends_with_a_change() -> Result<()> {
    let home = HubHome::new(&json!({"cache": [{"tools": ["fs_read_*"], "ttl_seconds": 600}]}))?;
    std::fs::write(home.workspace().join("a.txt"), "one\n")?;
    let hub = home.serve().await?;
    let read = async || {
        Ok::<_, anyhow::Error>(call_tool(&hub, "", "fs_read_text", json!({"path": "a.txt"})).await?.1)
    };
    let first = read().await?;
    assert_eq!(first["metadata"].get("cached"), None, "{first}");
    let second = read().await?;
    assert_eq!(second["metadata"]["cached"], true, "{second}");
    assert_eq!(second["result"], first["result"]);
    call_tool(&hub, "", "fs_write_text", json!({"path": "a.txt", "text": "two\n"})).await?;
    let third = read().await?;
    assert_eq!(third["metadata"].get("cached"), None, "{third}");
    assert_eq!(third["result"]["content"], "two\n", "{third}");
    Ok(())
}
