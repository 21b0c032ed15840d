//! Worker process for PDF extraction: this binary with a hidden command, sandboxed, and killed at its timeout or when
//! the caller is gone.

use crate::exec::compute_jail::ComputeJail;
use crate::{Capabilities, Grant};
use bytes::Bytes;
use octo_model::{Kind, ToolError};
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Maximum concurrent extractions.
const MAX_CONCURRENT: usize = 4;
/// Maximum bytes of worker output.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// Resource limits of the worker.
const WORKER_LIMITS: ComputeJail = ComputeJail { memory: 512 << 20, seconds: 20 };

/// Extracts PDF files, each in a separate process.
#[derive(Clone)]
pub struct Pdf(Arc<PdfState>);

struct PdfState {
    worker: Vec<OsString>,
    slots: Semaphore,
}

/// Output of the worker and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOutput {
    pub lines: Vec<u8>,
    pub end: WorkerEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// Completed.
    Done,
    /// Killed at the timeout.
    TimedOut,
    /// Exceeded its memory or CPU limit, or crashed on the file.
    Died,
}

impl Pdf {
    /// `worker` is the program and its arguments: this binary with a hidden command.
    pub fn new(worker: Vec<OsString>) -> Self {
        Self(Arc::new(PdfState { worker, slots: Semaphore::new(MAX_CONCURRENT) }))
    }

    /// Passes a file to a worker and returns its output. Dropping the future kills the worker.
    pub async fn extract(&self, file: Bytes, within: Duration) -> Result<WorkerOutput, ToolError> {
        let deadline = Instant::now() + within;
        let turn = timeout_at(deadline, self.0.slots.acquire()).await;
        let _turn = turn.map_err(|_| busy_error())?.map_err(ToolError::internal)?;
        self.run_worker(file, deadline).await.map_err(ToolError::internal)
    }

    async fn run_worker(&self, file: Bytes, deadline: Instant) -> io::Result<WorkerOutput> {
        let mut words = self.0.worker.iter();
        let program = words.next().ok_or_else(|| io::Error::other("no PDF worker program"))?;
        let mut child = tokio::process::Command::new(program)
            .args(words)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (mut input, output) = input.zip(output).ok_or_else(|| io::Error::other("worker has no pipes"))?;
        let mut lines = Vec::new();
        let mut output = output.take(MAX_OUTPUT_BYTES);
        let telling = async move {
            // A worker that exits early stops reading; only its output counts.
            let _ = input.write_all(&file).await;
        };
        let all = async {
            let (_, heard) = tokio::join!(telling, output.read_to_end(&mut lines));
            heard?;
            // Otherwise a worker with more output than the limit would block forever.
            drop(output);
            child.wait().await
        };
        let end = match timeout_at(deadline, all).await {
            Ok(status) => {
                if status?.success() {
                    WorkerEnd::Done
                } else {
                    WorkerEnd::Died
                }
            }
            Err(_) => WorkerEnd::TimedOut,
        };
        Ok(WorkerOutput { lines, end })
    }

    /// Called first in the worker: sets its limits and enters the sandbox.
    pub fn confine_worker() -> io::Result<()> {
        WORKER_LIMITS.enter()
    }
}

fn busy_error() -> ToolError {
    ToolError::new(Kind::Unavailable, "Too many concurrent PDF extractions.").hint("Try again in a moment.")
}

impl Grant for Pdf {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
