//! What ignore files leave out. Every folder inherits from those above it; the nearest rule decides.

use super::folder_listing::{IgnoreFiles, open_file};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Longer ignore files are cut: what makes rules costs time for every entry.
const MAX_IGNORE_FILE_BYTES: u64 = 512 * 1024;

/// The rules of one folder that has some, and of all above it.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Length of the folder's path beneath the root, with its slash; rules are relative to the folder.
    base: usize,
    /// `.ignore`, `.gitignore` and `.git/info/exclude`, in the order of their weight.
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// A repository's own folder: git's rules from above end here.
    repository: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreMatch {
    NoMatch,
    Ignored,
    /// A negated rule asks for it.
    Whitelisted,
}

impl IgnoreRules {
    /// The rules for what is in a folder. A folder without ignore files shares its parent's.
    pub fn within(
        above: Option<&Arc<Self>>,
        folder: BorrowedFd<'_>,
        marks: IgnoreFiles,
        base: usize,
    ) -> Option<Arc<Self>> {
        if !(marks.ignore || marks.gitignore || marks.git) {
            return above.cloned();
        }
        let read = |wanted: bool, name: &str| if wanted { parse(folder, name) } else { Gitignore::empty() };
        Some(Arc::new(Self {
            above: above.cloned(),
            base,
            ignore: read(marks.ignore, ".ignore"),
            git: read(marks.gitignore, ".gitignore"),
            exclude: read(marks.git, ".git/info/exclude"),
            repository: marks.git,
        }))
    }

    /// What the rules say about a path beneath the root.
    pub fn match_path(&self, path: &[u8], is_folder: bool) -> IgnoreMatch {
        let (mut git, mut exclude, mut same_repository) = (IgnoreMatch::NoMatch, IgnoreMatch::NoMatch, true);
        let mut next = Some(self);
        while let Some(rules) = next {
            let path = Path::new(OsStr::from_bytes(path.get(rules.base..).unwrap_or_default()));
            match match_file(&rules.ignore, path, is_folder) {
                IgnoreMatch::NoMatch => {}
                said => return said,
            }
            if same_repository && git == IgnoreMatch::NoMatch {
                git = match_file(&rules.git, path, is_folder);
            }
            if same_repository && exclude == IgnoreMatch::NoMatch {
                exclude = match_file(&rules.exclude, path, is_folder);
            }
            same_repository &= !rules.repository;
            next = rules.above.as_deref();
        }
        if git == IgnoreMatch::NoMatch { exclude } else { git }
    }
}

fn match_file(rules: &Gitignore, path: &Path, is_folder: bool) -> IgnoreMatch {
    match rules.matched(path, is_folder) {
        Match::None => IgnoreMatch::NoMatch,
        Match::Ignore(_) => IgnoreMatch::Ignored,
        Match::Whitelist(_) => IgnoreMatch::Whitelisted,
    }
}

/// Lines that are no rules are passed over, as git does; a file that cannot be read has none.
fn parse(folder: BorrowedFd<'_>, name: &str) -> Gitignore {
    let Some(text) = read(folder, name) else { return Gitignore::empty() };
    let mut rules = GitignoreBuilder::new("");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    for line in text.split(|byte| *byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
            let _ = rules.add_line(None, line);
        }
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read(folder: BorrowedFd<'_>, name: &str) -> Option<Vec<u8>> {
    let file = File::from(open_file(folder, name).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_IGNORE_FILE_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}
