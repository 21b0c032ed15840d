//! Prometheus scrapes the hub with an administrator's token.

use super::{TOKEN, start_hub};
use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Starts Prometheus with a configuration that scrapes the hub, and waits for its URL.
async fn start_prometheus(folder: &Path, target: &str) -> Result<(tokio::process::Child, String)> {
    std::fs::create_dir(folder)?;
    std::fs::write(folder.join("token"), TOKEN)?;
    let config = json!({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{
            "job_name": "octoprox",
            "authorization": {"credentials_file": folder.join("token")},
            "static_configs": [{"targets": [target]}],
        }],
    });
    std::fs::write(folder.join("prometheus.yml"), config.to_string())?;
    let mut process = Command::new(service_variable("PROMETHEUS")?)
        .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .args(["--web.listen-address=127.0.0.1:0", "--log.format=json"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stderr.take().context("no stderr")?).lines();
    let mut said = String::new();
    while let Some(line) = lines.next_line().await? {
        let entry: Value = serde_json::from_str(&line).unwrap_or_default();
        if entry["msg"] == "Listening on" {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok((process, format!("http://{}", entry["address"].as_str().context("no address")?)));
        }
        said.push_str(&line);
    }
    anyhow::bail!("Prometheus did not start: {said}")
}

#[tokio::test]
async fn prometheus_scrapes_the_hub() -> Result<()> {
    let (home, hub) = start_hub().await?;
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let called =
        HttpClient::default().post(&format!("{}/tools/time_now", hub.base_url), &headers, &json!({})).await?;
    assert_eq!(called.status, 200);
    let target = hub.base_url.trim_start_matches("http://");
    let (_process, base) = start_prometheus(&home.dir.path().join("prometheus"), target).await?;
    for (query, wanted) in [
        ("up%7Bjob=%22octoprox%22%7D", "1"),
        ("octoprox_calls_total%7Btool=%22time_now%22,outcome=%22ok%22%7D", "1"),
    ] {
        let url = format!("{base}/api/v1/query?query={query}");
        eventually(&format!("{query} is {wanted}"), async || {
            let found = HttpClient::default().get(&url, &[]).await.ok()?.json().await.ok()?;
            (found["data"]["result"][0]["value"][1] == wanted).then_some(())
        })
        .await?;
    }
    Ok(())
}
