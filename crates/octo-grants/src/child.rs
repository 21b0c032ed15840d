//! Child processes: no shell, a clean environment, and termination of all descendants.

use crate::exec::{
    ConfinementPlan, Cwd, Descriptors, LaunchPlan, ResourceLimits, RunningProgram, Sandbox, input_pipe,
    output_pipe, start_launcher,
};
use crate::net::EgressProxy;
use octo_model::ToolError;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Variables that a child inherits. Any other must be passed explicitly.
const INHERITED_VARIABLES: [&str; 3] = ["PATH", "HOME", "LANG"];

const SIGTERM: i32 = 15;

/// A program with its arguments, run without a shell.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub program: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Working directory. Default: `/` outside a sandbox, never the directory of the hub, which may be a workspace; the
    /// home directory of the program in a sandbox.
    pub cwd: Option<PathBuf>,
}

/// Working directory of programs that need none. No tool can write it.
pub const NEUTRAL_DIR: &str = "/";

/// Prints only the names of variables, because values may be secret.
impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.env.keys().collect();
        f.debug_struct("Command").field("program", &self.program).field("env", &names).finish_non_exhaustive()
    }
}

/// A running child with its pipes. Dropping it kills it with all its descendants.
pub struct Child {
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
    handle: ProcessHandle,
    /// Its way to the network, closed with it.
    proxy: Option<EgressProxy>,
}

/// Handle that owns and ends a child.
enum ProcessHandle {
    /// Its process group. Processes that leave the group or outlive a killed hub are not reached.
    Group(Box<dyn ChildWrapper>),
    /// A launcher that kills every descendant, also if the hub is killed.
    Launched(Box<RunningProgram>),
}

impl ProcessHandle {
    /// Waits for the program itself to exit.
    async fn wait(&mut self) {
        match self {
            Self::Group(process) => drop(process.wait().await),
            Self::Launched(running) => {
                running.wait_end().await;
            }
        }
    }

    /// Requests termination.
    async fn terminate(&mut self) {
        match self {
            Self::Group(process) => drop(process.signal(SIGTERM)),
            Self::Launched(running) => running.terminate().await,
        }
    }
}

impl Command {
    /// Starts the program in a new process group.
    pub fn spawn(&self) -> io::Result<Child> {
        let mut wrap = CommandWrap::with_new(&self.program, |command| {
            command
                .args(&self.args)
                .env_clear()
                .envs(self.environment())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .current_dir(self.start_dir());
        });
        let mut process = wrap.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()?;
        let pipes = (process.stdin().take(), process.stdout().take(), process.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("child has no pipes"));
        };
        Ok(Child {
            stdin: Sender::from_owned_fd(stdin.into_owned_fd()?)?,
            stdout: Receiver::from_owned_fd(stdout.into_owned_fd()?)?,
            stderr: Receiver::from_owned_fd(stderr.into_owned_fd()?)?,
            handle: ProcessHandle::Group(process),
            proxy: None,
        })
    }

    /// Starts the program through a launcher: however the hub ends, no process remains.
    pub async fn launch(&self, launcher: &[OsString]) -> io::Result<Child> {
        let cwd = std::path::absolute(self.start_dir())?;
        let argv = std::iter::once(&self.program).chain(&self.args).map(OsString::from).collect();
        let plan = LaunchPlan {
            argv,
            env: self.environment(),
            cwd: Cwd::Path(cwd.into()),
            bounds: ResourceLimits::default(),
            confine: ConfinementPlan::Nothing,
            nobody: false,
            tty: false,
            scratch: None,
            proxy_port: None,
        };
        let (input, stdin) = input_pipe()?;
        let (stdout, output) = output_pipe()?;
        let (stderr, errors) = output_pipe()?;
        let running =
            start_launcher(launcher, &plan, Descriptors::new([input, output, errors]), Sandbox::None)
                .await
                .map_err(to_io_error)?;
        Ok(Child::launched(stdin, stdout, stderr, running))
    }

    fn start_dir(&self) -> &Path {
        self.cwd.as_deref().unwrap_or(Path::new(NEUTRAL_DIR))
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let ours = INHERITED_VARIABLES
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let named = self.env.iter().map(|(name, value)| (name.into(), value.into()));
        ours.filter(|(name, _)| !self.env.keys().any(|named| name == named.as_str())).chain(named).collect()
    }
}

/// The system's message is more useful here than a hint for a model.
fn to_io_error(error: ToolError) -> io::Error {
    io::Error::other(error.detail.clone().unwrap_or_else(|| error.text()))
}

/// Handle that can only end the child.
pub struct ChildHandle {
    process: Option<ProcessHandle>,
    _proxy: Option<EgressProxy>,
}

impl Child {
    pub(crate) fn launched(
        stdin: Sender,
        stdout: Receiver,
        stderr: Receiver,
        running: RunningProgram,
    ) -> Self {
        Self { stdin, stdout, stderr, handle: ProcessHandle::Launched(Box::new(running)), proxy: None }
    }

    pub(crate) fn with_proxy(self, proxy: EgressProxy) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    pub fn id(&self) -> Option<u32> {
        match &self.handle {
            ProcessHandle::Group(process) => process.id(),
            ProcessHandle::Launched(running) => Some(running.pid),
        }
    }

    /// Splits into the pipes and the handle that ends the child.
    pub fn split(self) -> (Sender, Receiver, Receiver, ChildHandle) {
        let handle = ChildHandle { process: Some(self.handle), _proxy: self.proxy };
        (self.stdin, self.stdout, self.stderr, handle)
    }
}

impl ChildHandle {
    /// Kills everything and waits until it has exited.
    pub async fn kill(mut self) {
        match self.process.take() {
            Some(ProcessHandle::Group(mut process)) => {
                let _ = process.start_kill();
                let _ = process.wait().await;
            }
            Some(ProcessHandle::Launched(running)) => running.kill_and_wait().await,
            None => {}
        }
    }

    /// Waits for a program started by [`Command::spawn`] to exit, and tells how it did. The rest of its group is killed.
    pub async fn exit_status(mut self) -> io::Result<ExitStatus> {
        match &mut self.process {
            Some(ProcessHandle::Group(process)) => process.wait().await,
            _ => Err(io::Error::other("the child has a launcher")),
        }
    }

    /// Waits for the program, whose input is already closed, to exit; after `grace` terminates it, then kills the rest.
    pub async fn shut_down(mut self, grace: Duration) {
        if let Some(hold) = &mut self.process
            && tokio::time::timeout(grace, hold.wait()).await.is_err()
        {
            hold.terminate().await;
            let _ = tokio::time::timeout(grace, hold.wait()).await;
        }
        self.kill().await;
    }
}

impl Drop for ChildHandle {
    fn drop(&mut self) {
        if let Some(ProcessHandle::Group(process)) = &mut self.process {
            let _ = process.start_kill();
        }
    }
}
