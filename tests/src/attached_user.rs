//! A user whose sessions share a background hub.

use crate::hub_process::HubHome;
use crate::stdio_client::StdioClient;
use crate::test_binaries::binary_path;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

pub struct AttachedUser {
    pub home: HubHome,
    /// A copy that a test can replace; by default the binary under test.
    program: Option<PathBuf>,
}

impl AttachedUser {
    pub fn new(settings: &Value) -> Result<Self> {
        Self::with_home(HubHome::new(settings)?)
    }

    fn with_home(home: HubHome) -> Result<Self> {
        let runtime = home.dir.path().join("run");
        std::fs::create_dir(&runtime)?;
        std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(Self { home, program: None })
    }

    /// Another user of the machine, which requires root.
    pub fn unprivileged(settings: &Value, user: u32) -> Result<Self> {
        let attached = Self::with_home(HubHome::for_user(settings, user)?)?;
        std::os::unix::fs::chown(attached.home.dir.path().join("run"), Some(user), Some(user))?;
        Ok(attached)
    }

    /// A user with the fixture as a server.
    pub fn with_fixture() -> Result<Self> {
        Self::new(&json!({"servers": {"fix": {"command": binary_path("mcp-fixture")?, "args": ["stdio"]}}}))
    }

    /// A user with a copy of the program that can be upgraded.
    pub fn with_own_program(settings: &Value) -> Result<Self> {
        let mut user = Self::new(settings)?;
        std::fs::create_dir(user.home.dir.path().join("bin"))?;
        user.program = Some(user.home.dir.path().join("bin/octoprox"));
        user.upgrade(0)?;
        Ok(user)
    }

    /// Replaces the program by a copy that differs.
    pub fn upgrade(&self, number: usize) -> Result<()> {
        let program = self.program.as_ref().context("the program is not a copy")?;
        let fresh = program.with_extension("new");
        std::fs::copy(binary_path("octoprox")?, &fresh)?;
        let mut file = std::fs::OpenOptions::new().append(true).open(&fresh)?;
        std::io::Write::write_all(&mut file, format!("copy {number}").as_bytes())?;
        drop(file);
        Ok(std::fs::rename(&fresh, program)?)
    }

    pub fn command(&self, args: &[&str]) -> Result<Command> {
        self.command_in(args, self.home.dir.path())
    }

    /// A command in a directory.
    pub fn command_in(&self, args: &[&str], folder: &Path) -> Result<Command> {
        let usual = self.home.command(args)?;
        let mut command = match &self.program {
            None => usual,
            Some(program) => {
                let mut command = Command::new(program);
                let variables = usual.as_std().get_envs().filter_map(|(name, value)| Some((name, value?)));
                command.args(args).env_clear().envs(variables).kill_on_drop(true);
                command
            }
        };
        command.env_remove("OCTOPROX_STANDALONE").env("XDG_RUNTIME_DIR", self.home.dir.path().join("run"));
        command.current_dir(folder);
        Ok(command)
    }

    /// A session after its handshake.
    pub async fn session(&self) -> Result<StdioClient> {
        open_session(self.command(&["stdio"])?).await
    }

    /// Runs a command: exit code, stdout, stderr.
    pub async fn run(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let output = self.command(args)?.stdin(Stdio::null()).output().await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr)))
    }

    /// The running hubs, as `octoprox status --json` reports them.
    pub async fn hubs(&self) -> Result<Vec<Value>> {
        let (code, out, err) = self.run(&["status", "--json"]).await?;
        ensure!(code == 0, "status failed: {err}");
        let mut status: Value = serde_json::from_str(&out)?;
        Ok(serde_json::from_value(status["hubs"].take())?)
    }

    /// The process of the only hub.
    pub async fn hub_pid(&self) -> Result<i32> {
        let hubs = self.hubs().await?;
        ensure!(hubs.len() == 1, "not one hub: {hubs:?}");
        Ok(i32::try_from(hubs[0]["pid"].as_i64().context("no pid")?)?)
    }

    /// Ends the only hub without warning.
    pub async fn kill_hub(&self) -> Result<()> {
        let pid = rustix::process::Pid::from_raw(self.hub_pid().await?).context("no pid")?;
        Ok(rustix::process::kill_process(pid, rustix::process::Signal::KILL)?)
    }
}

/// A session of any command after its handshake.
pub async fn open_session(command: Command) -> Result<StdioClient> {
    let mut session = StdioClient::open(command)?;
    session.initialize(json!({})).await?;
    Ok(session)
}

impl Drop for AttachedUser {
    fn drop(&mut self) {
        if let Ok(mut command) = self.command(&["stop"]) {
            let _ = command
                .as_std_mut()
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}
