//! Cancellation and progress of a long walk.

use octo_toolkit::fs::{EntryKind, Step, WalkEntry};
use octo_toolkit::{CallContext, Kind, ToolError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of files between two progress messages.
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

    /// Whether the call was cancelled or has timed out. Cheap enough for every entry.
    pub fn is_stopped(&self) -> bool {
        if self.cx.check().is_err() || self.cx.time_left().is_zero() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// To be called for every entry.
    pub fn step(&self, entry: &WalkEntry<'_>) -> Step {
        if entry.kind == EntryKind::File {
            let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
            if files.is_multiple_of(FILES_PER_PROGRESS) {
                self.cx.progress(files, None, &format!("{files} files"));
            }
        }
        if self.is_stopped() { Step::Stop } else { Step::Continue }
    }

    /// Error of the call if the walk was stopped.
    pub fn finish(&self) -> Result<(), ToolError> {
        self.cx.check()?;
        if self.stopped.load(Ordering::Relaxed) {
            return Err(ToolError::new(Kind::Timeout, "Too many files to process within the timeout.")
                .hint("Use a subdirectory as path, or narrow the pattern."));
        }
        Ok(())
    }
}
