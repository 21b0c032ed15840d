//! The configuration that git works with: written by the hub from what the repository's own held at one moment.
//!
//! git takes settings from the common folder of a repository. It is told that this is a folder of the hub's own, in which
//! `config` holds what is harmless and everything else is a link to the real thing. Whoever changes `.git/config` while a
//! command runs changes nothing for it.

use crate::config::{self, Entry};
use octo_toolkit::exec::PrivateFolder;
use octo_toolkit::{Exec, ToolError};
use std::path::{Path, PathBuf};

/// git takes the folder above this for the work tree, in its messages.
const NAME: &str = ".git";

/// Links that are made whether their target exists or not: git replaces these files at the end of the link.
const FILES: [&str; 3] = ["HEAD", "packed-refs", "shallow"];
/// Folders that git would have to make itself if they did not exist, which it cannot do through a link.
const FOLDERS: [&str; 7] = ["objects", "refs", "logs", "info", "worktrees", "reftable", "rr-cache"];

/// More than any configuration has.
const MOST: u64 = 4 << 20;

#[derive(Debug)]
pub struct Shadow {
    folder: PrivateFolder,
    /// The common folder of the repository itself.
    real: PathBuf,
    written: Vec<Entry>,
}

/// What a command has changed in the hub's folder and the repository does not have yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub settings: Vec<Setting>,
    /// Where HEAD of the main work tree points to now.
    pub head: Option<String>,
    /// The history is complete again.
    pub unshallowed: bool,
}

/// A change of one setting.
#[derive(Debug, PartialEq, Eq)]
pub enum Setting {
    Replace { key: String, values: Vec<String> },
    RemoveSection(String),
}

impl Shadow {
    /// `exists` says of a name in the common folder whether it is there.
    pub fn new(
        exec: &Exec,
        real: &Path,
        settings: Vec<Entry>,
        exists: impl Fn(&str) -> bool,
    ) -> Result<Self, ToolError> {
        let folder = exec.private_folder()?;
        folder.make_folder(NAME)?;
        for name in FILES.into_iter().chain(FOLDERS.into_iter().filter(|name| exists(name))) {
            folder.link(&format!("{NAME}/{name}"), &real.join(name))?;
        }
        folder.write(&format!("{NAME}/config"), config::print(&settings).as_bytes())?;
        Ok(Self { folder, real: real.to_owned(), written: settings })
    }

    /// What git is given as the common folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// What a program has to see for that.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The repository's own.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// git's messages with the repository's own folder where they name ours.
    pub fn told(&self, text: &str) -> String {
        let (ours, ours_git) = (self.folder.path().to_string_lossy(), self.path());
        let real = self.real.to_string_lossy();
        let top = real.strip_suffix("/.git").unwrap_or(&real);
        text.replace(&*ours_git.to_string_lossy(), &real).replace(&*ours, top)
    }

    /// What has to be done in the repository after a command that writes.
    pub fn changes(&self) -> Result<Changes, ToolError> {
        let text = self.folder.read(&format!("{NAME}/config"), MOST)?.unwrap_or_default();
        let now = config::parse(&String::from_utf8_lossy(&text))?;
        let head = match self.folder.is_link(&format!("{NAME}/HEAD")) {
            true => None,
            false => self.folder.read(&format!("{NAME}/HEAD"), 4_096)?,
        };
        let head = head.and_then(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            text.strip_prefix("ref: ").map(|name| name.trim_end().to_owned())
        });
        let unshallowed = !self.folder.is_link(&format!("{NAME}/shallow"));
        Ok(Changes { settings: difference(&self.written, &now), head, unshallowed })
    }
}

/// Only remotes and what branches follow is ever written by a command that is offered.
fn difference(before: &[Entry], after: &[Entry]) -> Vec<Setting> {
    let counts = |entry: &&Entry| entry.key.starts_with("branch.") || entry.key.starts_with("remote.");
    let section = |key: &str| key.rsplit_once('.').map_or(key, |(section, _)| section).to_owned();
    let values = |entries: &[Entry], key: &str| -> Vec<String> {
        entries.iter().filter(|entry| entry.key == key).map(|entry| entry.value.clone()).collect()
    };
    let mut all: Vec<Setting> = Vec::new();
    for entry in before.iter().chain(after).filter(counts) {
        let gone = section(&entry.key);
        let change = if after.iter().any(|other| section(&other.key) == gone) {
            let values_now = values(after, &entry.key);
            if values(before, &entry.key) == values_now {
                continue;
            }
            Setting::Replace { key: entry.key.clone(), values: values_now }
        } else {
            Setting::RemoveSection(gone)
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
        let entry = |key: &str, value: &str| Entry { key: key.to_owned(), value: value.to_owned() };
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
        let replace = |key: &str, values: &[&str]| Setting::Replace {
            key: key.to_owned(),
            values: values.iter().map(ToString::to_string).collect(),
        };
        let expected = [
            replace("branch.a.merge", &["y"]),
            Setting::RemoveSection("branch.b".to_owned()),
            replace("remote.o.url", &["u", "v"]),
        ];
        assert_eq!(difference(&before, &after), expected);
        assert_eq!(difference(&before, &before), []);
    }
}
