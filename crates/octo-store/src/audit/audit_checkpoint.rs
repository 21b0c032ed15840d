//! Checkpoints of the write-ahead log, which wait for the disk, concurrently with writing.
//!
//! SQLite would checkpoint in about every thousandth commit, and the calls of that group would wait for the
//! disk. Here a separate thread does it. It never quite catches up under load, so once the log is long the
//! writer does the rest itself, and the log starts over.

use crate::SqliteError;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Pages between two checkpoints.
const PAGES_PER_CHECKPOINT: usize = 1000;
/// Maximum length of the log in pages, 32 MiB.
const MAX_WAL_PAGES: usize = 8192;

pub(crate) struct Checkpointer {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicUsize>,
    /// Length of the log at the next checkpoint.
    next_threshold: usize,
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Takes over checkpoints from `writer`, with a separate connection.
    pub(crate) fn start(writer: &mut Connection, own: Connection) -> Result<Self, SqliteError> {
        let pages = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&pages);
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            count.store(usize::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        }))?;
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("octo-checkpoint".to_owned())
            .spawn(move || woken.iter().for_each(|()| checkpoint(&own)))
            .map_err(SqliteError::file("the checkpoint's thread".as_ref()))?;
        Ok(Self { pages, next_threshold: PAGES_PER_CHECKPOINT, wake: Some(wake), thread: Some(thread) })
    }

    /// Called after each commit, when its callers have been answered.
    pub(crate) fn after_commit(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < PAGES_PER_CHECKPOINT {
            self.next_threshold = PAGES_PER_CHECKPOINT;
        } else if pages >= self.next_threshold {
            self.next_threshold = pages + PAGES_PER_CHECKPOINT;
            if pages >= MAX_WAL_PAGES {
                checkpoint(writer);
            } else if let Some(wake) = &self.wake {
                // If the thread is still busy, a later commit wakes it.
                let _ = wake.try_send(());
            }
        }
    }
}

/// Checkpoints as far as possible without waiting.
fn checkpoint(conn: &Connection) {
    if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())) {
        tracing::warn!(%error, "database checkpoint failed");
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
