//! Settings of what works on a tree: roots, files, git and the shell.

use octo_grants::exec::SandboxChoice;
use octo_grants::fs::{HardLinks, default_protected};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A folder beside the workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Root {
    /// The folder. When only `host_path` is set, that is it.
    pub path: Option<PathBuf>,
    /// The same folder as people call it elsewhere, such as the host's path of a folder that is mounted into a container.
    /// Both are understood, and answers use the caller's.
    pub host_path: Option<PathBuf>,
    /// Whether tools may change it. The root `repos` may be changed unless this is false, every other only when this is true.
    pub writable: Option<bool>,
}

impl Root {
    pub fn is_writable(&self, name: &str) -> bool {
        self.writable.unwrap_or(name == "repos")
    }

    /// The folder on this machine.
    pub fn folder(&self) -> Option<&PathBuf> {
        self.path.as_ref().or(self.host_path.as_ref())
    }
}

/// Files of the workspace and the roots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// Whether the workspace can only be read.
    pub read_only: bool,
    /// The workspace's folder as people call it elsewhere; both are understood.
    pub host_path: Option<PathBuf>,
    /// Patterns, relative to a root, that are never written even where a root may be changed. One that begins with `!` makes an
    /// exception; of several that fit, the last decides. A list whose first pattern begins with `!` goes on from the default.
    pub protected: Vec<String>,
    /// Whether files with several names are touched: `allow`, or `refuse` where others can make links into the workspace.
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

/// What the git toolbox may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Git {
    /// Whether commits are made. Until then `git_commit` tells what it would do.
    pub allow_commit: bool,
    /// Whether commits are pushed. Until then `git_push` tells what it would do.
    pub allow_push: bool,
    /// Name in commits; the repository's own when it is not set.
    pub user_name: Option<String>,
    /// Address in commits; the repository's own when it is not set.
    pub user_email: Option<String>,
}

/// Commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shell {
    /// Programs that may be run. Empty: all.
    pub allowed_commands: Vec<String>,
    /// Patterns that are refused. A help against accidents; what keeps a command in bounds is the sandbox.
    pub blocked_commands: Vec<String>,
    /// Longest that a command may take, in seconds.
    pub max_timeout_seconds: u64,
    /// What keeps commands, and git, in bounds: `auto` takes bubblewrap where it works and Landlock otherwise; `none` only when
    /// it is written here.
    pub sandbox: SandboxChoice,
    /// Whether commands may use the network.
    pub network: bool,
    /// Whether a server that a command starts can be reached by other commands, `fetch_url` and the browser: commands use this
    /// machine's network, and tools may reach its loopback, except for the hub itself.
    pub local_servers: bool,
    /// Variables of the hub's environment that commands get, by name; of all others they see nothing.
    pub env_passthrough: Vec<String>,
    /// Memory of one process of a command in MiB; 0 for no bound.
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
