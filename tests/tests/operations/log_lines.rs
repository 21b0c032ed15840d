//! One log line per call, and Prometheus metrics.

use super::{call_tool, get_with_token};
use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::MODERN;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

/// A hub whose log goes to a file.
async fn start_with_log(
    home: &HubHome,
    variables: &[(&str, &str)],
) -> Result<(RunningHub, std::path::PathBuf)> {
    let log = home.dir.path().join("hub.log");
    let mut command = home.command(&["serve", "--port", "0"])?;
    command.envs(variables.iter().copied()).stdout(Stdio::from(std::fs::File::create(&log)?));
    Ok((RunningHub::start(command).await?, log))
}

fn log_lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

async fn call_line(log: &Path, tool: &str) -> Result<Value> {
    eventually("the call is logged", async || {
        log_lines(log).into_iter().rev().find(|line| line["target"] == "calls" && line["tool"] == tool)
    })
    .await
}

#[tokio::test]
async fn each_call_is_one_line() -> Result<()> {
    let home = HubHome::new(
        &json!({"policy": {"rules": [{"name": "no", "tools": ["time_parse"], "decision": "deny"}]}}),
    )?;
    let (hub, log) = start_with_log(&home, &[("OCTOPROX_LOG_LEVEL", "debug")]).await?;
    call_tool(&hub, "", "time_now", json!({"timezone": "UTC"})).await?;
    let line = call_line(&log, "time_now").await?;
    assert_eq!(
        (&line["outcome"], &line["caller"], &line["frontend"]),
        (&json!("ok"), &json!("local"), &json!("rest")),
        "{line}"
    );
    assert_eq!(line["server"], "time", "{line}");
    assert!(line["ms"].is_number() && line["level"] == "INFO", "{line}");
    assert_eq!(line["request_bytes"], json!(r#"{"timezone":"UTC"}"#.len()), "{line}");
    assert!(line["response_bytes"].as_u64().is_some_and(|bytes| bytes > 20), "{line}");
    assert!(line["call"].as_str().is_some_and(|id| id.len() == 32), "{line}");
    assert!(line.get("arguments").is_none(), "arguments are logged only on request: {line}");
    for (tool, arguments, outcome) in [
        ("time_parse", json!({"text": "now"}), "denied"),
        ("time_diff", json!({"nonsense": 1}), "invalid"),
        ("no_such_tool", json!({}), "not_found"),
    ] {
        call_tool(&hub, "", tool, arguments).await?;
        assert_eq!(call_line(&log, tool).await?["outcome"], outcome, "{tool}");
    }
    // Libraries do not flood the log.
    let libraries = ["globset", "html5ever", "hyper", "rustls", "mio"];
    let flood = log_lines(&log).into_iter().find(|line| {
        let target = line["target"].as_str().unwrap_or_default();
        libraries.iter().any(|library| target.starts_with(library))
    });
    assert_eq!(flood, None);
    Ok(())
}

/// A URI can be a query, or be signed.
#[tokio::test]
async fn a_uri_is_not_logged() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let (hub, log) = start_with_log(&home, &[]).await?;
    let uri = "db://orders?iban=canary-1";
    let params = json!({"uri": uri, "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "resources/read"), ("mcp-name", uri)];
    HttpClient::default().post(&hub.mcp_url(), &headers, &body).await?;
    let line = eventually("the read is logged", async || {
        log_lines(&log).into_iter().find(|line| line["method"] == "resources/read")
    })
    .await?;
    assert_eq!(line["outcome"], "not_found", "{line}");
    assert!(!std::fs::read_to_string(&log)?.contains("canary"), "{line}");
    Ok(())
}

#[tokio::test]
async fn arguments_are_logged_on_request_without_secrets() -> Result<()> {
    let home = HubHome::new(&json!({"telemetry": {"log_arguments": true}}))?;
    let (hub, log) = start_with_log(&home, &[]).await?;
    let arguments = json!({"timezone": "UTC", "password": "hunter2", "note": "Bearer abcdefghijkl", "nested": {"api_key": "k-1-2-3"}});
    call_tool(&hub, "", "time_now", arguments).await?;
    let line = call_line(&log, "time_now").await?;
    let shown = line["arguments"].as_str().context("no arguments")?;
    assert!(shown.contains("UTC"), "{line}");
    let whole = std::fs::read_to_string(&log)?;
    for secret in ["hunter2", "abcdefghijkl", "k-1-2-3"] {
        assert!(!whole.contains(secret), "{secret}: {whole}");
    }
    Ok(())
}

/// The reason of a failed call is reported once, by the command itself.
#[tokio::test]
async fn commands_print_no_log_lines() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    std::fs::create_dir_all(home.state_dir())?;
    // A failure with a cause, which the log of a hub tells.
    let (code, _, err) = home.run(&["call", "fetch_url", "url=http://nowhere.invalid/"]).await?;
    assert_ne!(code, 0);
    assert!(err.contains("Cannot resolve") && err.lines().count() == 1, "{err}");
    Ok(())
}

#[tokio::test]
async fn numbers_are_what_prometheus_wants() -> Result<()> {
    let home = HubHome::new(&json!({
        "servers": {"gone": {"command": "false"}},
        "limits": [{"tools": ["time_diff"], "per_minute": 1}],
    }))?;
    let hub = home.serve().await?;
    call_tool(&hub, "", "time_now", json!({})).await?;
    let days = json!({"start": "2026-01-01", "end": "2026-01-02"});
    call_tool(&hub, "", "time_diff", days.clone()).await?;
    call_tool(&hub, "", "time_diff", days).await?;
    call_tool(&hub, "", "time_diff", json!({"x": 1})).await?;
    call_tool(&hub, "", "no_such_tool", json!({})).await?;
    let text = get_with_token(&format!("{}/metrics", hub.base_url), "").await?.text().await?;
    for wanted in [
        r#"octoprox_calls_total{server="time",tool="time_diff",outcome="rate_limited"} 1"#,
        r#"octoprox_calls_total{server="time",tool="time_diff",outcome="invalid"} 1"#,
        r#"octoprox_calls_total{server="time",tool="time_now",outcome="ok"} 1"#,
        r#"octoprox_build_info{version=""#,
        r#"octoprox_source_state{source="gone",native="false",state="#,
        "octoprox_audit_write_errors_total 0",
        "octoprox_audit_bytes ",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "process_open_fds ",
        "process_start_time_seconds ",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
    // Every family has its help and its type.
    let names =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next());
    for name in names.filter(|name| !name.is_empty()) {
        let family =
            ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        for about in ["HELP", "TYPE"] {
            assert!(text.contains(&format!("# {about} {family} ")), "{family} has no {about}");
        }
    }
    let mut check = tokio::process::Command::new(service_variable("PROMTOOL")?);
    let mut check = check
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    tokio::io::AsyncWriteExt::write_all(&mut check.stdin.take().context("no stdin")?, text.as_bytes())
        .await?;
    let output = check.wait_with_output().await?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Ok(())
}
