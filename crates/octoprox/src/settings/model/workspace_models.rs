//! Settings of roots and files.

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
