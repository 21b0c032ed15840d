//! Token costs of large pages and of a task, compared with Playwright MCP on the same Chromium. Only what does not
//! depend on the machine: `cargo xtask bench browser` measures the time as well.

use anyhow::{Result, ensure};
use octo_tests::test_binaries::{binary_path, service_variable};
use std::process::Stdio;
use tokio::process::Command;

#[tokio::test]
async fn snapshots_and_a_task_cost_a_fraction_of_what_playwright_mcp_costs() -> Result<()> {
    // Said here, where the remedy is in the message.
    service_variable("PLAYWRIGHT_MCP")?;
    let mut command = Command::new(binary_path("xtask")?);
    command.args(["bench", "browser", "tokens"]).arg(binary_path("octoprox")?);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    ensure!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // A table with all its rows was printed, so nothing was skipped.
    for row in ["links: elements in view", "repository: tokens of", "article: tokens of", "task: calls"] {
        ensure!(said.contains(row), "no {row:?} in {said}");
    }
    Ok(())
}
