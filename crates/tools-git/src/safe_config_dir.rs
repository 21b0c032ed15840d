//! Configuration for git: written by the hub from a snapshot of the repository's own.
//!
//! git reads settings from the common directory of a repository. It gets a directory of the hub instead, in which
//! `config` contains only safe settings and everything else is a link to the original. Changes of `.git/config`
//! during a command have no effect on it.

use crate::git_config::{self, ConfigEntry};
use octo_toolkit::exec::PrivateFolder;
use octo_toolkit::{Exec, ToolError};
use std::path::{Path, PathBuf};

/// In its messages, git treats the parent of this directory as the work tree.
const GIT_DIR_NAME: &str = ".git";

/// Links that are created whether their target exists or not: git replaces these files at the end of the link.
const LINKED_FILES: [&str; 3] = ["HEAD", "packed-refs", "shallow"];
/// Directories that git would have to create itself, which it cannot do through a link.
const LINKED_FOLDERS: [&str; 7] = ["objects", "refs", "logs", "info", "worktrees", "reftable", "rr-cache"];

/// More than any configuration needs.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub struct SafeConfigDir {
    folder: PrivateFolder,
    /// Common directory of the repository itself.
    common_dir: PathBuf,
    initial_config: Vec<ConfigEntry>,
}

/// Changes of a command in the hub's directory that are not yet in the repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RepoChanges {
    pub settings: Vec<ConfigChange>,
    /// New target of HEAD of the main work tree.
    pub head: Option<String>,
    /// The history is complete again.
    pub unshallowed: bool,
}

/// Change of one setting.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfigChange {
    Replace { key: String, values: Vec<String> },
    RemoveSection(String),
}

impl SafeConfigDir {
    /// `exists` returns whether a name exists in the common directory.
    pub fn new(
        exec: &Exec,
        real: &Path,
        settings: Vec<ConfigEntry>,
        exists: impl Fn(&str) -> bool,
    ) -> Result<Self, ToolError> {
        let folder = exec.private_folder()?;
        folder.make_folder(GIT_DIR_NAME)?;
        for name in LINKED_FILES.into_iter().chain(LINKED_FOLDERS.into_iter().filter(|name| exists(name))) {
            folder.link(&format!("{GIT_DIR_NAME}/{name}"), &real.join(name))?;
        }
        folder.write(&format!("{GIT_DIR_NAME}/config"), git_config::print(&settings).as_bytes())?;
        Ok(Self { folder, common_dir: real.to_owned(), initial_config: settings })
    }

    /// The common directory for git.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(GIT_DIR_NAME)
    }

    /// The directory that programs must see for that.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The repository's own common directory.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Replaces our directory in git's messages with the repository's own.
    pub fn restore_paths(&self, text: &str) -> String {
        let (ours, ours_git) = (self.folder.path().to_string_lossy(), self.path());
        let real = self.common_dir.to_string_lossy();
        let top = real.strip_suffix("/.git").unwrap_or(&real);
        text.replace(&*ours_git.to_string_lossy(), &real).replace(&*ours, top)
    }

    /// Changes to transfer to the repository after a command that writes.
    pub fn changes(&self) -> Result<RepoChanges, ToolError> {
        let text = self.folder.read(&format!("{GIT_DIR_NAME}/config"), MAX_CONFIG_BYTES)?.unwrap_or_default();
        let now = git_config::parse(&String::from_utf8_lossy(&text))?;
        let head = match self.folder.is_link(&format!("{GIT_DIR_NAME}/HEAD")) {
            true => None,
            false => self.folder.read(&format!("{GIT_DIR_NAME}/HEAD"), 4_096)?,
        };
        let head = head.and_then(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            text.strip_prefix("ref: ").map(|name| name.trim_end().to_owned())
        });
        let unshallowed = !self.folder.is_link(&format!("{GIT_DIR_NAME}/shallow"));
        Ok(RepoChanges { settings: difference(&self.initial_config, &now), head, unshallowed })
    }
}

/// The supported commands write only remotes and upstreams.
fn difference(before: &[ConfigEntry], after: &[ConfigEntry]) -> Vec<ConfigChange> {
    let counts = |entry: &&ConfigEntry| entry.key.starts_with("branch.") || entry.key.starts_with("remote.");
    let section = |key: &str| key.rsplit_once('.').map_or(key, |(section, _)| section).to_owned();
    let values = |entries: &[ConfigEntry], key: &str| -> Vec<String> {
        entries.iter().filter(|entry| entry.key == key).map(|entry| entry.value.clone()).collect()
    };
    let mut all: Vec<ConfigChange> = Vec::new();
    for entry in before.iter().chain(after).filter(counts) {
        let gone = section(&entry.key);
        let change = if after.iter().any(|other| section(&other.key) == gone) {
            let values_now = values(after, &entry.key);
            if values(before, &entry.key) == values_now {
                continue;
            }
            ConfigChange::Replace { key: entry.key.clone(), values: values_now }
        } else {
            ConfigChange::RemoveSection(gone)
        };
        if !all.contains(&change) {
            all.push(change);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found() {
        let entry = |key: &str, value: &str| ConfigEntry { key: key.to_owned(), value: value.to_owned() };
        let before = [
            entry("core.bare", "false"),
            entry("branch.a.merge", "x"),
            entry("branch.b.merge", "x"),
            entry("branch.b.remote", "o"),
        ];
        let after = [
            entry("core.pager", "evil"),
            entry("branch.a.merge", "y"),
            entry("remote.o.url", "u"),
            entry("remote.o.url", "v"),
        ];
        let replace = |key: &str, values: &[&str]| ConfigChange::Replace {
            key: key.to_owned(),
            values: values.iter().map(ToString::to_string).collect(),
        };
        let expected = [
            replace("branch.a.merge", &["y"]),
            ConfigChange::RemoveSection("branch.b".to_owned()),
            replace("remote.o.url", &["u", "v"]),
        ];
        assert_eq!(difference(&before, &after), expected);
        assert_eq!(difference(&before, &before), []);
    }
}
