//! The thread that writes the audit log.

use crate::SqliteError;
use crate::audit::audit_checkpoint::Checkpointer;
use metrics::Histogram;
use octo_ports::Hash;
use octo_ports::audit_format::{Batch, ChainHasher, RecordQueue};
use rusqlite::{Connection, OptionalExtension, Statement};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Held while this process writes to the file. SQLite's own busy handler sleeps for milliseconds; it is left
/// for other processes.
pub(crate) type WriteLock = Arc<Mutex<()>>;

/// The running thread. Dropping it writes what is queued and waits for that.
pub(crate) struct AuditWriter {
    pub(crate) queue: Arc<RecordQueue>,
    commits: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl AuditWriter {
    /// Writes with one connection, and checkpoints with the other.
    pub(crate) fn start(
        mut conn: Connection,
        beside: Connection,
        turn: WriteLock,
    ) -> Result<Self, SqliteError> {
        let queue = Arc::new(RecordQueue::default());
        let commits = Arc::new(AtomicU64::new(0));
        let checkpointer = Checkpointer::start(&mut conn, beside)?;
        let desk = WriterLoop {
            queue: Arc::clone(&queue),
            batch: Batch::default(),
            write_lock: turn,
            commits: Arc::clone(&commits),
            checkpointer,
            commit_seconds: metrics::histogram!("octoprox_audit_commit_seconds"),
        };
        let thread = std::thread::Builder::new()
            .name("octo-audit".to_owned())
            .spawn(move || desk.run(&conn))
            .map_err(SqliteError::file("the audit's thread".as_ref()))?;
        Ok(Self { queue, commits, thread: Some(thread) })
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.queue.shut_down("the store is closed");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct WriterLoop {
    queue: Arc<RecordQueue>,
    batch: Batch,
    write_lock: WriteLock,
    commits: Arc<AtomicU64>,
    checkpointer: Checkpointer,
    commit_seconds: Histogram,
}

impl WriterLoop {
    fn run(mut self, conn: &Connection) {
        let mut pen = match AuditStatements::new(conn) {
            Ok(pen) => pen,
            Err(error) => return tracing::error!(%error, "cannot write the audit log"),
        };
        while self.queue.take_batch(&mut self.batch) {
            let written = {
                let _turn = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
                pen.write(&self.batch)
            };
            match written {
                Ok(()) => {
                    self.commits.fetch_add(1, Ordering::Relaxed);
                    self.commit_seconds.record(self.batch.age().as_secs_f64());
                    self.batch.group.finish(Ok(()));
                    self.checkpointer.after_commit(conn);
                }
                Err(error) => self.on_failure(&error),
            }
        }
    }

    fn on_failure(&self, error: &rusqlite::Error) {
        tracing::error!(%error, "writing to the audit log failed");
        metrics::counter!("octoprox_audit_write_errors_total").increment(1);
        self.batch.group.finish(Err(error.to_string().into()));
        let lost = self.queue.requeue(&self.batch);
        if lost > 0 {
            tracing::error!(lost, "ends of calls were not written to the audit log");
        }
    }
}

/// Also on panic: no caller waits forever, and the next call is refused.
impl Drop for WriterLoop {
    fn drop(&mut self) {
        const WHY: &str = "the audit's thread has ended";
        self.batch.group.finish(Err(WHY.into()));
        let lost = self.queue.abandon(WHY);
        if lost > 0 {
            tracing::error!(lost, "records were not written to the audit log");
        }
    }
}

/// Rows per insert statement, to share its fixed cost.
const ROWS_PER_INSERT: usize = 8;

/// A failure rolls back the whole transaction, so that SQLite needs no statement journal.
fn insert_sql(rows: usize) -> String {
    format!(
        "INSERT OR ROLLBACK INTO audit (seq, hash, record) VALUES (?, ?, ?){}",
        ", (?, ?, ?)".repeat(rows - 1)
    )
}

/// Prepared statements and the buffer.
struct AuditStatements<'a> {
    begin: Statement<'a>,
    head: Statement<'a>,
    insert: Statement<'a>,
    insert_many: Statement<'a>,
    commit: Statement<'a>,
    rollback: Statement<'a>,
    hasher: ChainHasher,
}

impl<'a> AuditStatements<'a> {
    fn new(conn: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            head: conn.prepare("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")?,
            insert: conn.prepare(&insert_sql(1))?,
            insert_many: conn.prepare(&insert_sql(ROWS_PER_INSERT))?,
            commit: conn.prepare("COMMIT")?,
            rollback: conn.prepare("ROLLBACK")?,
            hasher: ChainHasher::default(),
        })
    }

    /// Writes the whole batch or nothing.
    fn write(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.begin.execute(())?;
        let written = self.append(batch).and_then(|()| self.commit.execute(()).map(drop));
        if written.is_err() {
            // Fails if SQLite has already rolled back, which is equivalent.
            let _ = self.rollback.execute(());
        }
        written
    }

    fn append(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        // Read inside the transaction: another process may have written since.
        let head = self.head.query_row((), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (mut seq, mut hash) = head.map_or((0, Hash::default()), |(seq, hash)| (seq, Hash(hash)));
        let (mut records, mut left) = (batch.records(), batch.len());
        while left > 0 {
            let (insert, rows) = if left < ROWS_PER_INSERT {
                (&mut self.insert, 1)
            } else {
                (&mut self.insert_many, ROWS_PER_INSERT)
            };
            for (row, record) in records.by_ref().take(rows).enumerate() {
                seq += 1;
                hash = self.hasher.hash(hash, record);
                insert.raw_bind_parameter(3 * row + 1, seq)?;
                insert.raw_bind_parameter(3 * row + 2, hash.0.as_slice())?;
                insert.raw_bind_parameter(3 * row + 3, record)?;
            }
            insert.raw_execute()?;
            left -= rows;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit_reader::AuditConnection;
    use crate::audit::audit_verify::verify;
    use crate::{Durability, database};
    use octo_ports::RecordKind;
    use octo_ports::conformance::call_samples as sample;
    use std::time::Duration;

    async fn open(writer: &AuditWriter, name: &str) -> Result<octo_model::CallId, String> {
        let opening = sample::opening(name);
        let group = writer.queue.open(1, &opening).map_err(|refused| format!("{refused:?}"))?;
        group.wait().await.map(|()| opening.id).map_err(|why| why.to_string())
    }

    fn start(conn: Connection) -> AuditWriter {
        AuditWriter::start(conn, Connection::open_in_memory().unwrap(), WriteLock::default()).unwrap()
    }

    #[tokio::test]
    async fn a_full_disk_refuses_calls_and_keeps_the_chain() {
        let dir = tempfile::tempdir().unwrap();
        let conn = database::open_audit(dir.path(), Durability::Flush).unwrap();
        let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        conn.pragma_update(None, "max_page_count", pages + 3).unwrap();
        let writer = start(conn);
        let (mut written, mut refused) = (0, None);
        while refused.is_none() && written < 10_000 {
            match open(&writer, "time_now").await {
                Ok(_) => written += 1,
                Err(why) => refused = Some(why),
            }
        }
        assert!(refused.unwrap().contains("full"));
        assert!(written > 10, "{written}");
        assert!(open(&writer, "time_now").await.is_err());
        drop(writer);
        assert_eq!(verify(dir.path(), None).unwrap().records, written);
    }

    #[tokio::test]
    async fn the_end_of_a_call_outlasts_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let conn = database::open_audit(dir.path(), Durability::Flush).unwrap();
        conn.busy_timeout(Duration::from_millis(10)).unwrap();
        let writer = start(conn);
        let first = open(&writer, "first").await.unwrap();

        let other = database::open_audit(dir.path(), Durability::Flush).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(writer.queue.close(1, &sample::closing(first)));
        assert!(open(&writer, "refused").await.unwrap_err().contains("locked"));
        other.execute_batch("COMMIT").unwrap();

        open(&writer, "second").await.unwrap();
        let records = AuditConnection::open(dir.path()).unwrap().tail(9).unwrap();
        let kinds: Vec<_> = records.iter().map(|record| (record.kind, record.name.as_deref())).collect();
        let (opened, closed) = (RecordKind::Open, RecordKind::Close);
        assert_eq!(kinds, [(opened, Some("first")), (closed, None), (opened, Some("second"))]);
    }

    #[tokio::test]
    async fn without_its_thread_every_call_is_refused() {
        // No table, so the thread ends.
        let writer = start(Connection::open_in_memory().unwrap());
        assert!(open(&writer, "time_now").await.unwrap_err().contains("thread has ended"));
        assert!(open(&writer, "time_now").await.unwrap_err().contains("thread has ended"));
        assert!(!writer.queue.close(1, &sample::closing(octo_model::CallId::fresh())));
    }
}
