//! Shell toolbox: sandboxed commands in the workspace; all their processes are killed with them.

mod ansi;
mod check_process;
mod command_line;
mod command_policy;
mod data_loss;
mod diagnostics;
mod run_build;
mod run_command;
mod run_tests;
mod session_output;
mod shell;
mod shell_defaults;
mod shell_exec;
mod shell_read;
mod shell_resize;
mod shell_sessions;
mod shell_start;
mod shell_stop;
mod shell_which;
mod shell_write;
mod signal_name;
mod test_report;
mod truncate_output;

#[cfg(test)]
mod tests;

use octo_toolkit::Toolbox;
use std::time::Duration;

/// Operator settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Allowed programs; empty for all.
    pub allowed: Vec<String>,
    /// Blocked commands, compared word by word.
    pub blocked: Vec<String>,
    /// Maximum timeout of one command.
    pub max_timeout: Duration,
    /// Whether commands have network access.
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

/// Tools of the domain `shell`.
pub fn toolbox(settings: Settings) -> Toolbox {
    let shell = shell::Shell::new(settings);
    Toolbox::new("shell", "Runs commands, tests, builds and long-running sessions in the workspace.")
        .using_workspace()
        .with(shell_exec::ShellExec(shell.clone()))
        .with(shell_which::Which)
        .with(run_tests::RunTests(shell.clone()))
        .with(run_build::RunBuild(shell.clone()))
        .with(check_process::CheckProcess)
        .with(shell_start::Start(shell))
        .with(shell_read::Read)
        .with(shell_write::Write)
        .with(shell_resize::Resize)
        .with(shell_stop::Stop)
        .with(shell_sessions::ListSessions)
}
