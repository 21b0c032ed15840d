//! The shell toolbox: commands in the workspace, in a sandbox, with everything they start ended with them.

mod ansi;
mod check_process;
mod cut;
mod danger;
mod diagnostics;
mod exec;
mod given;
mod guard;
mod line;
mod read;
mod report;
mod resize;
mod run_build;
mod run_tests;
mod running;
mod session;
mod sessions;
mod shell;
mod signal;
mod start;
mod stop;
mod which;
mod write;

#[cfg(test)]
mod tests;

use octo_toolkit::Toolbox;
use std::time::Duration;

/// What the operator allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Programs that may run; empty for all.
    pub allowed: Vec<String>,
    /// Commands that are refused, word by word.
    pub blocked: Vec<String>,
    /// The longest that one command may take.
    pub max_timeout: Duration,
    /// Whether commands reach the network.
    pub network: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let blocked = ["rm -rf /", "mkfs", "dd", ":(){ :|:& };:", "shutdown", "reboot", "halt", "poweroff"];
        Self {
            allowed: Vec::new(),
            blocked: blocked.map(str::to_owned).to_vec(),
            max_timeout: Duration::from_secs(600),
            network: false,
        }
    }
}

/// The tools of the domain `shell`.
pub fn toolbox(settings: Settings) -> Toolbox {
    let shell = shell::Shell::new(settings);
    Toolbox::new("shell", "Runs commands, tests and builds in the workspace, and sessions that go on.")
        .with(exec::ShellExec(shell.clone()))
        .with(which::Which)
        .with(run_tests::RunTests(shell.clone()))
        .with(run_build::RunBuild(shell.clone()))
        .with(check_process::CheckProcess)
        .with(start::Start(shell))
        .with(read::Read)
        .with(write::Write)
        .with(resize::Resize)
        .with(stop::Stop)
        .with(sessions::ListSessions)
}
