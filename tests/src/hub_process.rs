//! The binary under test, with its own settings and state directory.

use crate::http_client::HttpClient;
use crate::mcp_clients::{ModernClient, answer_nothing};
use crate::test_binaries::binary_path;
use crate::test_fleet::{Database, TestFleet};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::OnceCell;

/// With this variable, every hub of the tests is a front of a fleet of its own, with a worker behind it.
const FLEET_VARIABLE: &str = "OCTOPROX_TEST_FLEET";

/// A directory with settings and a workspace; commands that run in it are isolated from the user's own settings.
pub struct HubHome {
    pub dir: TempDir,
    /// User that its commands run as; by default the user of the test.
    user: Option<u32>,
    fleet: OnceCell<Arc<TestFleet>>,
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
        Ok(Self { dir, user: None, fleet: OnceCell::new() })
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
            // Tests of surfaces set another one.
            .env("OCTOPROX_SURFACE", "full")
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
        let is_front = std::env::var_os(FLEET_VARIABLE).is_some() && !args.contains(&"--roles");
        if is_front && self.user.is_none() {
            return Box::pin(self.serve_as_front(args)).await;
        }
        let mut all = vec!["serve", "--port", "0"];
        all.extend_from_slice(args);
        let mut command = self.command(&all)?;
        command.stdout(Stdio::null());
        RunningHub::start(command).await
    }

    /// Starts a worker with the same settings and workspace, and a front.
    async fn serve_as_front(&self, args: &[&str]) -> Result<RunningHub> {
        let file = self.dir.path().join("octoprox.yaml");
        let settings: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let fleet = self.fleet.get_or_try_init(async || TestFleet::start().await.map(Arc::new)).await?;
        let settings = fleet.settings("front", Database::Shared, settings)?;
        std::fs::write(&file, serde_json::to_string_pretty(&settings)?)?;
        let mut worker = self.command(&["worker"])?;
        worker.env("OCTOPROX_STATE_DIR", self.dir.path().join("worker-state"));
        worker.env("OCTOPROX_STORE_NODE", "worker");
        let mut worker = worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let worker_log = worker.stderr.take().context("the worker has no stderr")?;
        let mut hub = Box::pin(self.serve_with(&[&["--roles", "front"], args].concat())).await?;
        append_lines(BufReader::new(worker_log).lines(), "worker: ", &hub.log);
        hub.fleet = Some((worker, Arc::clone(fleet)));
        crate::eventually("the worker serves", async || {
            let reply = HttpClient::default().get(&format!("{}/ready", hub.base_url), &[]).await.ok()?;
            let body: Value = reply.json().await.ok()?;
            let checks = body["checks"].as_array()?;
            checks.iter().any(|check| check["name"] == "workspace" && check["state"] == "ok").then_some(())
        })
        .await?;
        Ok(hub)
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
                append_lines(lines, "", &log);
                return Ok(RunningHub { base_url: address, admin_url, process, log, fleet: None });
            }
            said.push_str(&line);
            said.push('\n');
        }
        bail!("the hub did not start: {said}")
    }
}

/// Appends the lines of a program to a log until it ends.
fn append_lines(mut lines: Lines<BufReader<ChildStderr>>, prefix: &'static str, log: &Arc<Mutex<String>>) {
    let log = Arc::clone(log);
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            log.lock().unwrap_or_else(PoisonError::into_inner).push_str(&format!("{prefix}{line}\n"));
        }
    });
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
    /// The worker and the services behind it, if it is a front.
    pub fleet: Option<(Child, Arc<TestFleet>)>,
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
            let tools = client.list_tools().await.ok()?;
            tools.iter().any(|listed| listed["name"] == tool).then_some(())
        })
        .await
        .with_context(|| {
            format!("log of the hub:\n{}", self.log.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}
