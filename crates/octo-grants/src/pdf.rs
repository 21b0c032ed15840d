//! The process that takes a PDF apart: this very program with a hidden command, shut in, and ended when its time is over
//! or nobody waits for it any more.

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

/// Files that are taken apart at the same time.
const MAX_CONCURRENT: usize = 4;
/// Bytes of an answer that are taken.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// What the process may use.
const WORKER_LIMITS: ComputeJail = ComputeJail { memory: 512 << 20, seconds: 20 };

/// Takes PDF files apart, each in a process of its own.
#[derive(Clone)]
pub struct Pdf(Arc<PdfState>);

struct PdfState {
    worker: Vec<OsString>,
    slots: Semaphore,
}

/// What the process said, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOutput {
    pub lines: Vec<u8>,
    pub end: WorkerEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// It said all that it had to say.
    Done,
    /// It was ended when its time was over.
    TimedOut,
    /// It came to its end: it wanted more memory or time than it may have, or fell over the file.
    Died,
}

impl Pdf {
    /// `worker` is the program and its arguments: this binary with a hidden command.
    pub fn new(worker: Vec<OsString>) -> Self {
        Self(Arc::new(PdfState { worker, slots: Semaphore::new(MAX_CONCURRENT) }))
    }

    /// Gives a file to the process and hears what it says. Dropping the future ends the process.
    pub async fn extract(&self, file: Bytes, within: Duration) -> Result<WorkerOutput, ToolError> {
        let deadline = Instant::now() + within;
        let turn = timeout_at(deadline, self.0.slots.acquire()).await;
        let _turn = turn.map_err(|_| busy_error())?.map_err(ToolError::internal)?;
        self.run_worker(file, deadline).await.map_err(ToolError::internal)
    }

    async fn run_worker(&self, file: Bytes, deadline: Instant) -> io::Result<WorkerOutput> {
        let mut words = self.0.worker.iter();
        let program = words.next().ok_or_else(|| io::Error::other("there is no program that reads PDF"))?;
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
        let (mut input, output) =
            input.zip(output).ok_or_else(|| io::Error::other("the process has no pipes"))?;
        let mut lines = Vec::new();
        let mut output = output.take(MAX_OUTPUT_BYTES);
        let telling = async move {
            // One that has ended early does not read on; what counts is what it said.
            let _ = input.write_all(&file).await;
        };
        let all = async {
            let (_, heard) = tokio::join!(telling, output.read_to_end(&mut lines));
            heard?;
            // One that has more to say than is taken waits for ever.
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

    /// What the process does first: bounds itself and shuts itself in.
    pub fn confine_worker() -> io::Result<()> {
        WORKER_LIMITS.enter()
    }
}

fn busy_error() -> ToolError {
    ToolError::new(Kind::Unavailable, "Too many PDF files are being read.").hint("Try again in a moment.")
}

impl Grant for Pdf {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
