//! Permissions that the user gives on the command line.

use crate::app_error::AppError;
use octo_grants::net::HostList;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

pub const UNKNOWN_HOSTS: &str =
    "Its hosts are not known, so it has no network access. Allow some with --allow-host.";

/// What a program may use beyond what the catalogue knows.
pub struct SandboxChoice<'a> {
    pub enabled: bool,
    pub hosts: &'a [String],
    pub read: &'a [PathBuf],
    pub write: &'a [PathBuf],
}

impl SandboxChoice<'_> {
    pub fn is_default(&self) -> bool {
        self.enabled && self.hosts.is_empty() && self.read.is_empty() && self.write.is_empty()
    }

    /// Settings of the sandbox with what the user allows.
    pub fn apply(&self, sandbox: &mut Map<String, Value>) -> Result<(), AppError> {
        let folders = |folders: &[PathBuf]| -> Result<Vec<Value>, AppError> {
            folders.iter().map(|folder| Ok(json!(existing_folder(folder)?))).collect()
        };
        HostList::parse("--allow-host", self.hosts)?;
        let hosts = self.hosts.iter().map(|host| json!(host)).collect();
        for (key, values) in
            [("hosts", hosts), ("read", folders(self.read)?), ("write", folders(self.write)?)]
        {
            if let Value::Array(list) = sandbox.entry(key).or_insert_with(|| json!([])) {
                list.extend(values);
            }
            if sandbox.get(key) == Some(&json!([])) {
                sandbox.remove(key);
            }
        }
        // Full access includes all hosts.
        if sandbox.get("network") == Some(&Value::Bool(true)) {
            sandbox.remove("hosts");
        }
        Ok(())
    }
}

fn existing_folder(folder: &Path) -> Result<PathBuf, AppError> {
    let folder = std::path::absolute(folder)?;
    match (folder.exists(), folder.is_dir()) {
        (true, true) => Ok(folder),
        (true, false) => Err(AppError::invalid(format!(
            "{} is not a directory. Name the directory that contains it.",
            folder.display()
        ))),
        (false, _) => Err(AppError::invalid(format!("{}: no such directory.", folder.display()))),
    }
}
