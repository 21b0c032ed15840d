//! What ignore files leave out. Every folder inherits from those above it; the nearest rule decides.

use super::folder::{Marks, open_file};
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
const LARGEST: u64 = 512 * 1024;

/// The rules of one folder that has some, and of all above it.
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
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
pub(super) enum Verdict {
    Silent,
    Ignored,
    /// A negated rule asks for it.
    Kept,
}

impl Rules {
    /// The rules for what is in a folder. A folder without ignore files shares its parent's.
    pub fn within(
        above: Option<&Arc<Self>>,
        folder: BorrowedFd<'_>,
        marks: Marks,
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
    pub fn judge(&self, path: &[u8], is_folder: bool) -> Verdict {
        let (mut git, mut exclude, mut same_repository) = (Verdict::Silent, Verdict::Silent, true);
        let mut next = Some(self);
        while let Some(rules) = next {
            let path = Path::new(OsStr::from_bytes(path.get(rules.base..).unwrap_or_default()));
            match verdict(&rules.ignore, path, is_folder) {
                Verdict::Silent => {}
                said => return said,
            }
            if same_repository && git == Verdict::Silent {
                git = verdict(&rules.git, path, is_folder);
            }
            if same_repository && exclude == Verdict::Silent {
                exclude = verdict(&rules.exclude, path, is_folder);
            }
            same_repository &= !rules.repository;
            next = rules.above.as_deref();
        }
        if git == Verdict::Silent { exclude } else { git }
    }
}

fn verdict(rules: &Gitignore, path: &Path, is_folder: bool) -> Verdict {
    match rules.matched(path, is_folder) {
        Match::None => Verdict::Silent,
        Match::Ignore(_) => Verdict::Ignored,
        Match::Whitelist(_) => Verdict::Kept,
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
    file.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}
