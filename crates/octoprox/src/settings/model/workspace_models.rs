//! Settings of roots, files, git and the shell.

use octo_grants::exec::SandboxChoice;
use octo_grants::fs::{HardLinks, default_protected};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A directory that tools may use in addition to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Root {
    /// Path of the directory. Default: `host_path`.
    pub path: Option<PathBuf>,
    /// Path of the same directory outside a container, such as the source of a bind mount. Tools accept both paths and
    /// reply with the one that the caller used.
    pub host_path: Option<PathBuf>,
    /// Allow tools to write to it. Default: true for the root `repos`, false for all others.
    pub writable: Option<bool>,
}

impl Root {
    pub fn is_writable(&self, name: &str) -> bool {
        self.writable.unwrap_or(name == "repos")
    }

    /// Returns the directory on this machine.
    pub fn folder(&self) -> Option<&PathBuf> {
        self.path.as_ref().or(self.host_path.as_ref())
    }
}

/// File access in the workspace and the roots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// Make the workspace read-only.
    pub read_only: bool,
    /// Path of the workspace outside a container. Tools accept both paths.
    pub host_path: Option<PathBuf>,
    /// Glob patterns, relative to a root, of files that are never written. A pattern that begins with `!` is an
    /// exception; the last match wins. If the first pattern begins with `!`, the list extends the default list.
    pub protected: Vec<String>,
    /// Access to files with more than one hard link: `allow`, or `refuse` if others can create links in the workspace.
    pub hard_links: HardLinks,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            read_only: false,
            host_path: None,
            protected: default_protected(),
            hard_links: HardLinks::Allow,
        }
    }
}

/// Git toolbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Git {
    /// Allow `git_commit` to commit. If false, it only reports what it would do.
    pub allow_commit: bool,
    /// Allow `git_push` to push. If false, it only reports what it would do.
    pub allow_push: bool,
    /// Author name of commits. Default: the name in the git configuration of the repository or the user.
    pub user_name: Option<String>,
    /// Author email of commits. Default: the email in the git configuration of the repository or the user.
    pub user_email: Option<String>,
}

/// Shell toolbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shell {
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

impl Default for Shell {
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
