//! Logins at real authorization servers: through a real browser, and with the official conformance suite.

#![expect(clippy::disallowed_methods, reason = "tests start the programs they test")]

use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LEGACY, MODERN, ModernClient, answer_nothing};
use octo_tests::test_binaries::{example_path, service_variable};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A program that reports in lines of JSON.
struct JsonLinesProcess {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl JsonLinesProcess {
    fn start(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let lines = BufReader::new(process.stdout.take().context("no stdout")?).lines();
        Ok(Self { _process: process, lines })
    }

    async fn next_line(&mut self) -> Result<Value> {
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await??;
        Ok(serde_json::from_str(&line.context("it has ended")?)?)
    }
}

async fn call_ok(browser: &ModernClient, tool: &str, arguments: Value) -> Result<()> {
    let turn = browser.call_tool(tool, arguments).await?;
    let result = turn.result()?;
    ensure!(result["isError"] != true, "{tool}: {result}");
    Ok(())
}

#[tokio::test]
async fn a_person_logs_in_through_chromium() -> Result<()> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/oidc/serve.mjs");
    let mut servers = JsonLinesProcess::start(
        Command::new(service_variable("NODE24")?)
            .arg(script)
            .env("OIDC_PROVIDER", service_variable("OIDC_PROVIDER")?)
            .stderr(Stdio::null()),
    )?;
    let at = servers.next_line().await?;
    let mut login = JsonLinesProcess::start(
        Command::new(example_path("login_flow")?).arg(at["mcp"].as_str().context("no address")?),
    )?;
    let open = login.next_line().await?;

    let home = HubHome::new(&json!({"net": {"allow": ["127.0.0.1"]}, "toolboxes": {"browser": true}}))?;
    let hub = home.serve().await?;
    let browser = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    call_ok(&browser, "browser_navigate", json!({"url": open["open"]})).await?;
    call_ok(&browser, "browser_type", json!({"selector": "input[name=login]", "text": "ada"})).await?;
    call_ok(&browser, "browser_type", json!({"selector": "input[name=password]", "text": "x"})).await?;
    call_ok(&browser, "browser_click", json!({"text": "Sign-in"})).await?;
    // The page that asks for consent.
    call_ok(&browser, "browser_click", json!({"text": "Continue"})).await?;

    let used = login.next_line().await?;
    assert_eq!(used["tools"], json!(["whoami"]));
    assert_eq!(used["answer"]["content"][0]["text"], "ada");
    assert_eq!(login.next_line().await?["left"], "Revoked");
    Ok(())
}

async fn run_suite(arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(service_variable("NODE24")?)
        .arg(service_variable("CONFORMANCE")?)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.success(), text))
}

/// Login scenarios that a revision requires.
async fn login_scenarios(revision: &str) -> Result<Vec<String>> {
    let (_, text) = run_suite(&["list", "--client", "--spec-version", revision]).await?;
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
    Ok(names.filter(|name| name.starts_with("auth/")).map(str::to_owned).collect())
}

#[tokio::test]
async fn the_hubs_client_logs_in_as_the_suite_asks() -> Result<()> {
    let client = example_path("conformance_client")?;
    let client = client.to_string_lossy();
    let mut wrong = Vec::new();
    for (revision, least) in [(LEGACY, 14), (MODERN, 25)] {
        let scenarios = login_scenarios(revision).await?;
        ensure!(scenarios.len() >= least, "{revision}: {scenarios:?}");
        for scenario in &scenarios {
            let folder = tempfile::TempDir::with_prefix("conformance")?;
            let out = folder.path().to_string_lossy().into_owned();
            let arguments = [
                "client",
                "--command",
                &client,
                "--scenario",
                scenario,
                "--spec-version",
                revision,
                "-o",
                &out,
            ];
            let (passed, text) = run_suite(&arguments).await?;
            if !passed {
                wrong.push(format!("{revision} {scenario}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
