//! The fixture server behind the hub.

use crate::test_binaries::binary_path;
use anyhow::{Context, Result};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A running fixture over HTTP. Killed on drop.
pub struct FixtureServer {
    pub url: String,
    pub process: Child,
}

impl FixtureServer {
    /// `era` is `both`, `legacy` or `modern`.
    pub async fn http(era: &str, options: &[&str]) -> Result<Self> {
        Self::http_at(0, era, options).await
    }

    pub async fn http_at(port: u16, era: &str, options: &[&str]) -> Result<Self> {
        let mut process = Command::new(binary_path("mcp-fixture")?)
            .args(["http", &port.to_string(), era])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = process.stdout.take().context("the fixture has no output")?;
        let url = BufReader::new(stdout).lines().next_line().await?.context("the fixture says no address")?;
        Ok(Self { url, process })
    }
}
