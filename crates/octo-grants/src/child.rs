//! Child processes: no shell, a clean environment, a process group that ends as a whole.

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// What a child inherits of our environment unless it is told otherwise; nothing of the hub's own.
const INHERITED: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR", "SHELL"];

const SIGTERM: i32 = 15;

/// A program with its arguments, as an array that no shell ever reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub program: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

/// A running child with its pipes. Dropping it ends its whole process group.
pub struct Child {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    process: Box<dyn ChildWrapper>,
}

impl Command {
    pub fn spawn(&self) -> std::io::Result<Child> {
        let mut wrap = CommandWrap::with_new(&self.program, |command| {
            command
                .args(&self.args)
                .env_clear()
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            for name in INHERITED {
                if let Some(value) = std::env::var_os(name) {
                    command.env(name, value);
                }
            }
            command.envs(&self.env);
            if let Some(cwd) = &self.cwd {
                command.current_dir(cwd);
            }
        });
        let mut process = wrap.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()?;
        let pipes = (process.stdin().take(), process.stdout().take(), process.stderr().take());
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Child { stdin, stdout, stderr, process }),
            _ => Err(std::io::Error::other("the child has no pipes")),
        }
    }
}

/// Keeps the process group alive; ending it is the only thing that can be asked.
pub struct Group(Box<dyn ChildWrapper>);

impl Child {
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// The pipes and the handle that ends the group.
    pub fn split(self) -> (ChildStdin, ChildStdout, ChildStderr, Group) {
        (self.stdin, self.stdout, self.stderr, Group(self.process))
    }
}

impl Group {
    /// Ends the whole group and waits until the leader is gone.
    pub async fn end(mut self) {
        let _ = self.0.start_kill();
        let _ = self.0.wait().await;
    }

    /// Waits for the leader, whose input is closed by now, to end by itself; asks it to, and then ends
    /// whatever is left of the group.
    pub async fn end_within(mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.0.wait()).await.is_err() {
            let _ = self.0.signal(SIGTERM);
            let _ = tokio::time::timeout(grace, self.0.wait()).await;
        }
        self.end().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.0.start_kill();
    }
}
