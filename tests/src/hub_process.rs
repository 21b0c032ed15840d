//! The binary under test, with its own settings and state directory.

use crate::mcp_clients::{ModernClient, answer_nothing};
use crate::test_binaries::binary_path;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A directory with settings and a workspace; commands that run in it are isolated from the user's own settings.
pub struct HubHome {
    pub dir: TempDir,
    /// User that its commands run as; by default the user of the test.
    user: Option<u32>,
}

impl HubHome {
    /// Settings are given as JSON, which is YAML, too.
    pub fn new(settings: &Value) -> Result<Self> {
        let dir = TempDir::with_prefix("octoprox-test")?;
        let mut settings = settings.clone();
        if let Some(settings) = settings.as_object_mut() {
            // Tests run side by side, and only one of them could have the usual port.
            settings.entry("admin").or_insert_with(|| serde_json::json!({"port": 0}));
            settings.entry("workspace").or_insert_with(|| "workspace".into());
        }
        std::fs::create_dir(dir.path().join("workspace"))?;
        std::fs::write(dir.path().join("octoprox.yaml"), serde_json::to_string_pretty(&settings)?)?;
        Ok(Self { dir, user: None })
    }

    /// The same for another user of the machine, which requires root. Copies the program to where that user can run it.
    pub fn for_user(settings: &Value, user: u32) -> Result<Self> {
        let home = Self { user: Some(user), ..Self::new(settings)? };
        let folder = home.dir.path();
        std::fs::copy(binary_path("octoprox")?, folder.join("octoprox"))?;
        for path in [folder, &folder.join("octoprox"), &folder.join("octoprox.yaml"), &home.workspace()] {
            std::os::unix::fs::chown(path, Some(user), Some(user))?;
        }
        Ok(home)
    }

    /// The default workspace.
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    pub fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn command(&self, args: &[&str]) -> Result<Command> {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new(self.dir.path().join("octoprox"));
                command.uid(user).gid(user);
                command
            }
            None => Command::new(binary_path("octoprox")?),
        };
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("OCTOPROX_CONFIG", self.dir.path().join("octoprox.yaml"))
            .env("OCTOPROX_STATE_DIR", self.state_dir())
            .env("OCTOPROX_STANDALONE", "true")
            .current_dir(self.dir.path())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Runs a command: exit code, stdout, stderr.
    pub async fn run(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let output = self.command(args)?.stdin(Stdio::null()).output().await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr)))
    }

    /// The newest audit records, oldest first.
    pub async fn audit_tail(&self, count: usize) -> Result<Vec<Value>> {
        let (code, out, err) = self.run(&["audit", "tail", "-n", &count.to_string(), "--json"]).await?;
        if code != 0 {
            bail!("audit tail failed: {err}");
        }
        out.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    pub async fn serve(&self) -> Result<RunningHub> {
        self.serve_with(&[]).await
    }

    pub async fn serve_with(&self, args: &[&str]) -> Result<RunningHub> {
        let mut all = vec!["serve", "--port", "0"];
        all.extend_from_slice(args);
        let mut command = self.command(&all)?;
        command.stdout(Stdio::null());
        RunningHub::start(command).await
    }
}

impl RunningHub {
    /// Starts a hub with a `serve` command and waits until it listens. The command determines where its log goes.
    pub async fn start(mut command: Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = process.stderr.take().context("the hub has no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = listen_url(&line) {
                let admin_url =
                    line.split_once("admin ").and_then(|(_, rest)| rest.split_whitespace().next());
                let admin_url = admin_url.unwrap_or_default().to_owned();
                let log = Arc::<Mutex<String>>::default();
                let written = Arc::clone(&log);
                tokio::spawn(async move {
                    while let Ok(Some(line)) = lines.next_line().await {
                        let mut log = written.lock().unwrap_or_else(PoisonError::into_inner);
                        log.push_str(&line);
                        log.push('\n');
                    }
                });
                return Ok(RunningHub { base_url: address, admin_url, process, log });
            }
            said.push_str(&line);
            said.push('\n');
        }
        bail!("the hub did not start: {said}")
    }
}

/// URL in the first line that `serve` prints.
fn listen_url(line: &str) -> Option<String> {
    let from = line.find("http://")?;
    let rest = line.get(from..)?;
    let end = rest.find("/mcp")?;
    rest.get(..end).map(str::to_owned)
}

/// A running hub. Killed on drop.
pub struct RunningHub {
    pub base_url: String,
    /// URL of the admin API; empty if there is none.
    pub admin_url: String,
    pub process: Child,
    /// What the hub has logged since it listens.
    pub log: Arc<Mutex<String>>,
}

impl RunningHub {
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.base_url)
    }

    pub fn profile_url(&self, name: &str) -> String {
        format!("{}/mcp/{name}", self.base_url)
    }

    /// Waits until a tool of a server is listed. The start time of a child depends on the machine.
    pub async fn until_listed(&self, tool: &str) -> Result<()> {
        let client = ModernClient::new(&self.mcp_url(), json!({}), answer_nothing);
        crate::eventually(&format!("{tool} is listed"), async || {
            let turn = client.request("tools/list", json!({})).await.ok()?;
            let tools = turn.result().ok()?.get("tools")?.as_array()?.clone();
            tools.iter().any(|listed| listed["name"] == tool).then_some(())
        })
        .await
        .with_context(|| {
            format!("log of the hub:\n{}", self.log.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}
