//! A long walk notices that nobody waits for it any more, and tells how far it is.

use octo_toolkit::fs::{EntryKind, Step, WalkEntry};
use octo_toolkit::{CallContext, Kind, ToolError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many files pass between two messages.
const FILES_PER_PROGRESS: u64 = 4096;

pub struct WalkProgress<'a> {
    cx: &'a CallContext,
    files: AtomicU64,
    stopped: AtomicBool,
}

impl<'a> WalkProgress<'a> {
    pub fn new(cx: &'a CallContext) -> Self {
        Self { cx, files: AtomicU64::new(0), stopped: AtomicBool::new(false) }
    }

    /// Whether the call was cancelled or has no time left. Cheap enough for every entry.
    pub fn is_stopped(&self) -> bool {
        if self.cx.check().is_err() || self.cx.time_left().is_zero() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// To be asked for every entry.
    pub fn step(&self, entry: &WalkEntry<'_>) -> Step {
        if entry.kind == EntryKind::File {
            let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
            if files.is_multiple_of(FILES_PER_PROGRESS) {
                self.cx.progress(files, None, &format!("{files} files"));
            }
        }
        if self.is_stopped() { Step::Stop } else { Step::Continue }
    }

    /// What the call ends with when the walk was given up.
    pub fn finish(&self) -> Result<(), ToolError> {
        self.cx.check()?;
        if self.stopped.load(Ordering::Relaxed) {
            return Err(ToolError::new(
                Kind::Timeout,
                "There are more files than could be looked at in time.",
            )
            .hint("Name a folder further down as path, or narrow the pattern."));
        }
        Ok(())
    }
}
