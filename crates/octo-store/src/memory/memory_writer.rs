//! The thread that changes memories. Queued changes are written together, in one transaction, and
//! acknowledged when that is durable.

use super::transaction::MemoryTxn;
use super::word_index::IndexChanges;
use crate::audit::audit_checkpoint::Checkpointer;
use crate::lazy_database::WorkResult;
use crate::result_files::now_micros;
use crate::{SqliteError, database};
use octo_ports::{Port, StoreError, StoreResult};
use rusqlite::Connection;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Maximum queued changes before further ones are refused.
const MAX_QUEUED_CHANGES: usize = 1 << 14;
/// Maximum duration of a group: its changes wait for it.
const MAX_GROUP_DURATION: Duration = Duration::from_millis(8);
const MAX_GROUP_CHANGES: usize = 512;
/// Timeout for readers; after that the log is truncated later.
const CHECKPOINT_BUSY_TIMEOUT: Duration = Duration::from_millis(50);

/// Notifies the caller: `None` if the change is written.
type Completion = Box<dyn FnOnce(Option<StoreError>) + Send>;
/// Applies the change and returns whether it succeeded.
type ChangeJob = Box<dyn FnOnce(&mut MemoryTxn<'_>) -> (bool, Completion) + Send>;

pub(super) struct MemoryWriter {
    jobs: Option<SyncSender<ChangeJob>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryWriter {
    /// Writes with one connection, and checkpoints with the other.
    pub(super) fn start(mut conn: Connection, beside: Connection) -> Result<Self, SqliteError> {
        let checkpointer = Checkpointer::start(&mut conn, beside)?;
        let (jobs, waiting) = sync_channel(MAX_QUEUED_CHANGES);
        let desk = WriterLoop { conn, checkpointer, jobs: waiting, last_timestamp: 0, needs_truncate: false };
        let thread = std::thread::Builder::new()
            .name("octo-memory".to_owned())
            .spawn(move || desk.run())
            .map_err(SqliteError::file("the memory's thread".as_ref()))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Applies a change and returns when it is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut MemoryTxn<'_>) -> WorkResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (told, answer) = oneshot::channel();
        let job: ChangeJob = Box::new(move |pen| {
            let outcome = work(pen).map_err(|error| error.of_port(Port::Memory));
            let made = outcome.is_ok();
            let finish: Completion = Box::new(move |failed| {
                let _ = told.send(failed.map_or(outcome, Err));
            });
            (made, finish)
        });
        let jobs = self.jobs.as_ref().ok_or_else(|| write_error("the store is closed"))?;
        jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => StoreError::Busy(Port::Memory),
            TrySendError::Disconnected(_) => write_error("the memory's thread has ended"),
        })?;
        answer.await.unwrap_or_else(|_| Err(write_error("the change was dropped")))
    }
}

/// Writes what is queued and waits for that.
impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct WriterLoop {
    conn: Connection,
    checkpointer: Checkpointer,
    jobs: Receiver<ChangeJob>,
    /// Timestamps increase strictly.
    last_timestamp: i64,
    /// The log still has old pages of something that was erased.
    needs_truncate: bool,
}

impl WriterLoop {
    fn run(mut self) {
        while let Ok(first) = self.jobs.recv() {
            let mut finishes = Vec::new();
            let failed = match self.write_group(first, &mut finishes) {
                Ok(()) => None,
                Err(error) => {
                    tracing::error!(%error, "writing memories failed");
                    // Fails if SQLite has already rolled back, which is equivalent.
                    let _ = self.conn.execute_batch("ROLLBACK");
                    Some(write_error(error))
                }
            };
            for finish in finishes {
                finish(failed.clone());
            }
            self.checkpointer.after_commit(&self.conn);
            if self.needs_truncate {
                self.truncate_wal();
            }
        }
    }

    /// Writes the whole group, or nothing. A refused job is rolled back, and the others stay.
    fn write_group(&mut self, first: ChangeJob, finishes: &mut Vec<Completion>) -> rusqlite::Result<()> {
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        let begun = Instant::now();
        let mut changes = IndexChanges::default();
        let mut next = Some(first);
        while let Some(job) = next.take() {
            self.last_timestamp = now_micros().max(self.last_timestamp + 1);
            self.conn.execute_batch("SAVEPOINT job")?;
            let mut pen = MemoryTxn::new(&self.conn, self.last_timestamp);
            let (made, finish) = job(&mut pen);
            finishes.push(finish);
            if made {
                self.needs_truncate |= pen.erased;
                changes.merge(pen.index_changes);
                self.conn.execute_batch("RELEASE job")?;
            } else {
                self.conn.execute_batch("ROLLBACK TO job; RELEASE job")?;
            }
            if finishes.len() < MAX_GROUP_CHANGES && begun.elapsed() < MAX_GROUP_DURATION {
                next = self.jobs.try_recv().ok();
            }
        }
        changes.write(&self.conn)?;
        self.conn.execute_batch("COMMIT")
    }

    /// Does not wait long for readers; in that case it is done after a later change.
    fn truncate_wal(&mut self) {
        let emptied = self.conn.busy_timeout(CHECKPOINT_BUSY_TIMEOUT).and_then(|()| {
            self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
        });
        match emptied {
            Ok(busy) => self.needs_truncate = busy != 0,
            Err(error) => tracing::warn!(%error, "truncating the memory's log failed"),
        }
        let _ = self.conn.busy_timeout(database::BUSY_TIMEOUT);
    }
}

fn write_error(why: impl std::fmt::Display) -> StoreError {
    StoreError::unavailable(Port::Memory, why)
}
