//! The one thread that changes memories. What waits is written together, in one transaction, and answered when that is
//! durable.

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

/// How many changes may wait before further ones are refused.
const MAX_QUEUED_CHANGES: usize = 1 << 14;
/// A group takes no more changes after this time: those in it wait.
const MAX_GROUP_DURATION: Duration = Duration::from_millis(8);
const MAX_GROUP_CHANGES: usize = 512;
/// How long to wait for readers before the log is emptied later.
const CHECKPOINT_BUSY_TIMEOUT: Duration = Duration::from_millis(50);

/// Told to whoever waits: nothing when the change is written.
type Completion = Box<dyn FnOnce(Option<StoreError>) + Send>;
/// Makes the change, and says whether it was made.
type ChangeJob = Box<dyn FnOnce(&mut MemoryTxn<'_>) -> (bool, Completion) + Send>;

pub(super) struct MemoryWriter {
    jobs: Option<SyncSender<ChangeJob>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryWriter {
    /// Writes with one connection, and moves the log into the file with the other.
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

    /// Makes a change and returns when it is durable.
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
    /// Moments rise, so that what comes later is later.
    last_timestamp: i64,
    /// The log still has pages as they were before something was erased.
    needs_truncate: bool,
}

impl WriterLoop {
    fn run(mut self) {
        while let Ok(first) = self.jobs.recv() {
            let mut finishes = Vec::new();
            let failed = match self.write_group(first, &mut finishes) {
                Ok(()) => None,
                Err(error) => {
                    tracing::error!(%error, "memories could not be written");
                    // Fails when SQLite has rolled back by itself, which is as good.
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

    /// All of the group is written, or nothing. A job that is refused leaves nothing, and the others stay.
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

    /// Without waiting long for those who read from it; then it is done after a later change.
    fn truncate_wal(&mut self) {
        let emptied = self.conn.busy_timeout(CHECKPOINT_BUSY_TIMEOUT).and_then(|()| {
            self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
        });
        match emptied {
            Ok(busy) => self.needs_truncate = busy != 0,
            Err(error) => tracing::warn!(%error, "the memory's log could not be emptied"),
        }
        let _ = self.conn.busy_timeout(database::BUSY_TIMEOUT);
    }
}

fn write_error(why: impl std::fmt::Display) -> StoreError {
    StoreError::unavailable(Port::Memory, why)
}
