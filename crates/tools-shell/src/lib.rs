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
use octo_toolkit::exec::SandboxChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shell toolbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShellSettings {
    /// Programs that may be run. If empty, all programs are allowed.
    pub allowed_commands: Vec<String>,
    /// Command patterns that are refused. They guard against accidents only; the sandbox enforces isolation.
    pub blocked_commands: Vec<String>,
    /// Maximum duration of a command, in seconds.
    pub max_timeout_seconds: u64,
    /// Sandbox for commands and git. `auto`: bubblewrap if it works, otherwise Landlock. `none`: no sandbox; never
    /// chosen automatically.
    pub sandbox: SandboxChoice,
    /// Allow network access for commands.
    pub network: bool,
    /// Let other commands, `fetch_url` and the browser connect to servers that commands start. Commands then use the
    /// network of this machine, and tools may connect to its loopback address, except to the hub itself.
    pub local_servers: bool,
    /// Environment variables of the hub that are passed to commands. All others are hidden.
    pub env_passthrough: Vec<String>,
    /// Memory limit of each process of a command, in MiB. `0`: no limit.
    pub max_memory_mb: u64,
}

impl Default for ShellSettings {
    fn default() -> Self {
        const BLOCKED: [&str; 8] =
            ["rm -rf /", "mkfs", "dd", ":(){ :|:& };:", "shutdown", "reboot", "halt", "poweroff"];
        Self {
            allowed_commands: Vec::new(),
            blocked_commands: BLOCKED.map(str::to_owned).to_vec(),
            max_timeout_seconds: 600,
            sandbox: SandboxChoice::Auto,
            network: false,
            local_servers: false,
            env_passthrough: Vec::new(),
            max_memory_mb: 0,
        }
    }
}

/// Tools of the domain `shell`.
pub fn toolbox(settings: ShellSettings) -> Toolbox {
    let shell = shell::Shell::new(settings);
    Toolbox::new("shell", "Runs commands, tests, builds and long-running sessions in the workspace.")
        .using_workspace()
        .bound_to_machine()
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
