//! The thread that writes the audit log, with a runtime of its own: busy workers of the hub do not delay it.

use super::chain_writer::ChainWriter;
use crate::PostgresError;
use metrics::Histogram;
use octo_ports::audit_format::{Batch, RecordQueue};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Runtime;

/// The running thread. Dropping it writes what is queued and waits for that, for as long as groups may take.
pub(crate) struct AuditWriter {
    pub(crate) queue: Arc<RecordQueue>,
    thread: Option<JoinHandle<()>>,
}

impl AuditWriter {
    pub(crate) fn start(chain: ChainWriter) -> Result<Self, PostgresError> {
        let queue = Arc::new(RecordQueue::default());
        let commit_seconds = metrics::histogram!("octoprox_audit_commit_seconds");
        let writer = WriterLoop { queue: Arc::clone(&queue), batch: Batch::default(), chain, commit_seconds };
        let thread = std::thread::Builder::new()
            .name("octo-audit".to_owned())
            .spawn(move || writer.run())
            .map_err(PostgresError::Thread)?;
        Ok(Self { queue, thread: Some(thread) })
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
    chain: ChainWriter,
    commit_seconds: Histogram,
}

impl WriterLoop {
    fn run(mut self) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!(%error, "cannot write the audit log"),
        };
        while self.queue.take_batch(&mut self.batch) {
            self.write(&runtime);
        }
        // The session ends before its runtime.
        drop(self);
    }

    fn write(&mut self, runtime: &Runtime) {
        if self.batch.is_empty() {
            return self.batch.group.finish(Ok(()));
        }
        match runtime.block_on(self.chain.write(&self.batch)) {
            Ok(()) => {
                self.commit_seconds.record(self.batch.age().as_secs_f64());
                self.batch.group.finish(Ok(()));
            }
            Err(error) => self.on_failure(&error),
        }
    }

    fn on_failure(&mut self, error: &PostgresError) {
        tracing::error!(%error, "writing to the audit log failed");
        metrics::counter!("octoprox_audit_write_errors_total").increment(1);
        self.batch.group.finish(Err(error.to_string().into()));
        let lost = self.queue.requeue(&self.batch);
        if lost > 0 {
            self.chain.forget();
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
