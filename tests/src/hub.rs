//! The binary under test, with settings and a state folder of its own.

use crate::binaries::program;
use crate::mcp::{Modern, silent};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A folder with settings and a workspace beside them; commands run in it see nothing of this machine's own.
pub struct Home {
    pub folder: TempDir,
    /// Whom its commands run as; otherwise whoever runs the test.
    user: Option<u32>,
}

impl Home {
    /// Settings are given as JSON, which is YAML, too.
    pub fn new(settings: &Value) -> Result<Self> {
        let folder = TempDir::with_prefix("octoprox-test")?;
        let mut settings = settings.clone();
        if let Some(settings) = settings.as_object_mut() {
            // Tests run side by side, and only one of them could have the usual port.
            settings.entry("admin").or_insert_with(|| serde_json::json!({"port": 0}));
            settings.entry("workspace").or_insert_with(|| "workspace".into());
        }
        std::fs::create_dir(folder.path().join("workspace"))?;
        std::fs::write(folder.path().join("octoprox.yaml"), serde_json::to_string_pretty(&settings)?)?;
        Ok(Self { folder, user: None })
    }

    /// The same for another user of the machine, whom root can become. The program is copied to where that user can run it.
    pub fn of_user(settings: &Value, user: u32) -> Result<Self> {
        let home = Self { user: Some(user), ..Self::new(settings)? };
        let folder = home.folder.path();
        std::fs::copy(program("octoprox")?, folder.join("octoprox"))?;
        for path in [folder, &folder.join("octoprox"), &folder.join("octoprox.yaml"), &home.workspace()] {
            std::os::unix::fs::chown(path, Some(user), Some(user))?;
        }
        Ok(home)
    }

    /// The folder that tools work in, unless the settings name another.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn command(&self, args: &[&str]) -> Result<Command> {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new(self.folder.path().join("octoprox"));
                command.uid(user).gid(user);
                command
            }
            None => Command::new(program("octoprox")?),
        };
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("OCTOPROX_CONFIG", self.folder.path().join("octoprox.yaml"))
            .env("OCTOPROX_STATE_DIR", self.state())
            .current_dir(self.folder.path())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Runs a command to its end: exit code, stdout, stderr.
    pub async fn run(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let output = self.command(args)?.stdin(Stdio::null()).output().await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr)))
    }

    /// The newest audit records, oldest first.
    pub async fn audit(&self, count: usize) -> Result<Vec<Value>> {
        let (code, out, err) = self.run(&["audit", "tail", "-n", &count.to_string(), "--json"]).await?;
        if code != 0 {
            bail!("audit tail failed: {err}");
        }
        out.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    pub async fn serve(&self) -> Result<Server> {
        self.serve_with(&[]).await
    }

    pub async fn serve_with(&self, args: &[&str]) -> Result<Server> {
        let mut all = vec!["serve", "--port", "0"];
        all.extend_from_slice(args);
        let mut command = self.command(&all)?;
        command.stdout(Stdio::null());
        Server::start(command).await
    }
}

impl Server {
    /// Starts a hub with a command for `serve` and waits until it listens. What it logs goes where the command says.
    pub async fn start(mut command: Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = process.stderr.take().context("the hub has no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = address(&line) {
                let admin = line.split_once("admin ").and_then(|(_, rest)| rest.split_whitespace().next());
                let admin = admin.unwrap_or_default().to_owned();
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(Server { base: address, admin, process });
            }
            said.push_str(&line);
            said.push('\n');
        }
        bail!("the hub did not start: {said}")
    }
}

/// The address in the line that `serve` begins with.
fn address(line: &str) -> Option<String> {
    let from = line.find("http://")?;
    let rest = line.get(from..)?;
    let end = rest.find("/mcp")?;
    rest.get(..end).map(str::to_owned)
}

/// A running hub. It ends with this value.
pub struct Server {
    pub base: String,
    /// The admin API; empty where there is none.
    pub admin: String,
    pub process: Child,
}

impl Server {
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.base)
    }

    pub fn profile(&self, name: &str) -> String {
        format!("{}/mcp/{name}", self.base)
    }

    /// Waits until a tool of a server is listed. How long a child takes to start depends on the machine.
    pub async fn until_listed(&self, tool: &str) -> Result<()> {
        let client = Modern::new(&self.mcp(), json!({}), silent);
        crate::eventually(&format!("{tool} is listed"), async || {
            let turn = client.once("tools/list", json!({})).await.ok()?;
            let tools = turn.result().ok()?.get("tools")?.as_array()?.clone();
            tools.iter().any(|listed| listed["name"] == tool).then_some(())
        })
        .await
    }
}
