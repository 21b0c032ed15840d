//! Ignore rules. Every directory inherits from its parents; the nearest rule decides.

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

/// Larger ignore files are truncated: rules cost time for every entry.
const MAX_IGNORE_FILE_BYTES: u64 = 512 * 1024;

/// Rules of a directory that has some, and of all its parents.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Length of the directory's path beneath the root, with its slash; rules are relative to the directory.
    base: usize,
    /// `.ignore`, `.gitignore` and `.git/info/exclude`, in order of precedence.
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// A repository root: git's rules of parent directories end here.
    repository: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreMatch {
    NoMatch,
    Ignored,
    /// Matched by a negated rule.
    Whitelisted,
}

impl IgnoreRules {
    /// Rules for the contents of a directory. A directory without ignore files shares its parent's.
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

    /// Matches a path beneath the root against the rules.
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

/// Invalid lines are skipped, as in git; an unreadable file has no rules.
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
