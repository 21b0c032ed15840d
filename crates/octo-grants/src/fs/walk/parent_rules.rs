//! Ignore rules of the directories above the start of a walk.

use super::folder_listing::{IgnoreFiles, RESOLVE_STRICT, descend};
use super::ignore_rules::IgnoreRules;
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Rules of the root and of every directory down to the start, whose real path beneath the root is `real`.
pub(super) fn rules_above(root: BorrowedFd<'_>, real: &[u8]) -> Option<Arc<IgnoreRules>> {
    let mut rules = None;
    let ends = real.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in std::iter::once(0).chain(ends).filter(|_| !real.is_empty()) {
        let path = real.get(..end).filter(|path| !path.is_empty()).unwrap_or(b".");
        let Ok(folder) = descend(root, path) else { continue };
        let base = if end == 0 { 0 } else { end + 1 };
        rules = IgnoreRules::within(rules.as_ref(), folder.as_fd(), ignore_files_in(folder.as_fd()), base);
    }
    rules
}

fn ignore_files_in(folder: BorrowedFd<'_>) -> IgnoreFiles {
    let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let has = |name: &str| rustix::fs::openat2(folder, name, look, Mode::empty(), RESOLVE_STRICT).is_ok();
    IgnoreFiles { gitignore: has(".gitignore"), ignore: has(".ignore"), git: has(".git") }
}
