//! The one thread that changes memories. What waits is written together, in one transaction, and answered when that is
//! durable.

use super::index::Changes;
use super::pen::{Fault, Pen};
use crate::checkpoint::Checkpointer;
use crate::spills::now;
use crate::{StoreError, schema};
use octo_model::ToolError;
use rusqlite::Connection;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How many changes may wait before further ones are refused.
const FULL: usize = 1 << 14;
/// A group takes no more changes after this time: those in it wait.
const LONG: Duration = Duration::from_millis(8);
const MANY: usize = 512;
/// How long to wait for readers before the log is emptied later.
const SHORT: Duration = Duration::from_millis(50);

/// Told to whoever waits: nothing when the change is written.
type Finish = Box<dyn FnOnce(Option<ToolError>) + Send>;
/// Makes the change, and says whether it was made.
type Job = Box<dyn FnOnce(&mut Pen<'_>) -> (bool, Finish) + Send>;

pub(super) struct Writer {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Writes with one connection, and moves the log into the file with the other.
    pub(super) fn start(mut conn: Connection, beside: Connection) -> Result<Self, StoreError> {
        let checkpointer = Checkpointer::start(&mut conn, beside)?;
        let (jobs, waiting) = sync_channel(FULL);
        let desk = Desk { conn, checkpointer, waiting, last: 0, unclean: false };
        let thread = std::thread::Builder::new()
            .name("octo-memory".to_owned())
            .spawn(move || desk.work())
            .map_err(StoreError::file("the memory's thread".as_ref()))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Makes a change and returns when it is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Pen<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (told, answer) = oneshot::channel();
        let job: Job = Box::new(move |pen| {
            let outcome = work(pen).map_err(ToolError::from);
            let made = outcome.is_ok();
            let finish: Finish = Box::new(move |failed| {
                let _ = told.send(failed.map_or(outcome, Err));
            });
            (made, finish)
        });
        let jobs = self.jobs.as_ref().ok_or_else(|| unwritten("the store is closed"))?;
        jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                ToolError::unavailable("Too many changes of memories wait to be written.")
                    .hint("Try again in a moment, with fewer calls at once.")
                    .retry_after(Duration::from_secs(1))
            }
            TrySendError::Disconnected(_) => unwritten("the memory's thread has ended"),
        })?;
        answer.await.unwrap_or_else(|_| Err(unwritten("the change was dropped")))
    }
}

/// Writes what is queued and waits for that.
impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Desk {
    conn: Connection,
    checkpointer: Checkpointer,
    waiting: Receiver<Job>,
    /// Moments rise, so that what comes later is later.
    last: i64,
    /// The log still has pages as they were before something was erased.
    unclean: bool,
}

impl Desk {
    fn work(mut self) {
        while let Ok(first) = self.waiting.recv() {
            let mut finishes = Vec::new();
            let failed = match self.group(first, &mut finishes) {
                Ok(()) => None,
                Err(error) => {
                    tracing::error!(%error, "memories could not be written");
                    // Fails when SQLite has rolled back by itself, which is as good.
                    let _ = self.conn.execute_batch("ROLLBACK");
                    Some(unwritten(error))
                }
            };
            for finish in finishes {
                finish(failed.clone());
            }
            self.checkpointer.committed(&self.conn);
            if self.unclean {
                self.empty_log();
            }
        }
    }

    /// All of the group is written, or nothing. A job that is refused leaves nothing, and the others stay.
    fn group(&mut self, first: Job, finishes: &mut Vec<Finish>) -> rusqlite::Result<()> {
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        let begun = Instant::now();
        let mut changes = Changes::default();
        let mut next = Some(first);
        while let Some(job) = next.take() {
            self.last = now().max(self.last + 1);
            self.conn.execute_batch("SAVEPOINT job")?;
            let mut pen = Pen::new(&self.conn, self.last);
            let (made, finish) = job(&mut pen);
            finishes.push(finish);
            if made {
                self.unclean |= pen.erased;
                changes.merge(pen.changes);
                self.conn.execute_batch("RELEASE job")?;
            } else {
                self.conn.execute_batch("ROLLBACK TO job; RELEASE job")?;
            }
            if finishes.len() < MANY && begun.elapsed() < LONG {
                next = self.waiting.try_recv().ok();
            }
        }
        changes.write(&self.conn)?;
        self.conn.execute_batch("COMMIT")
    }

    /// Without waiting long for those who read from it; then it is done after a later change.
    fn empty_log(&mut self) {
        let emptied = self.conn.busy_timeout(SHORT).and_then(|()| {
            self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
        });
        match emptied {
            Ok(busy) => self.unclean = busy != 0,
            Err(error) => tracing::warn!(%error, "the memory's log could not be emptied"),
        }
        let _ = self.conn.busy_timeout(schema::PATIENCE);
    }
}

fn unwritten(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The change was not written to the memory.")
        .hint("Try again; whoever runs the hub must look at its data directory if it goes on: the disk may be full.")
        .detail(why)
}
