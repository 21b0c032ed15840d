//! Runs a program to completion: captures its output, enforces its timeout, and leaves no process behind.

use super::capture::Capture;
use super::launcher_protocol::DRAIN_TIMEOUT;
use super::start_program::{JobStreams, ProgramEnd, RunningProgram};
use super::{Captured, ExceededLimit, Exec, ExecResult, Exit, Job, OnOutput, Sandbox, Stream};
use bytes::Bytes;
use octo_model::ToolError;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

/// Delay between terminating a program and killing it.
pub(super) const TERMINATE_GRACE: Duration = Duration::from_millis(500);
pub(super) const READ_CHUNK_BYTES: usize = 64 << 10;
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400 * 365);

impl Exec {
    /// Runs a program to completion. Dropping the future kills it with all descendants.
    pub async fn run(&self, job: Job) -> Result<ExecResult, ToolError> {
        let begun = Instant::now();
        let (order, JobStreams { stdin, timeout, max_output_bytes: keep, on_output }) = job.into_parts(false);
        let deadline = begun + timeout.min(MAX_TIMEOUT);
        let (output, stdout) = output_pipe().map_err(ToolError::internal)?;
        let (errors, stderr) = output_pipe().map_err(ToolError::internal)?;
        let (input, feed) = match stdin {
            Some(bytes) => input_pipe().map(|(theirs, ours)| (theirs, Some((ours, bytes)))),
            None => File::open("/dev/null").map(|file| (OwnedFd::from(file), None)),
        }
        .map_err(ToolError::internal)?;
        let state = &self.spec().state;
        let mut heard = OutputStreams {
            output: Some(output),
            errors: Some(errors),
            out: Capture::new(keep, state),
            err: Capture::new(keep, state),
            on_output,
        };
        let starting = self.start_program(&order, [input, stdout, stderr]);
        let (exit, limit, sandbox) = match tokio::time::timeout_at(deadline, starting).await {
            Ok(running) => {
                let mut running = running?;
                let sandbox = running.sandbox;
                let (exit, limit) = heard.drive(&mut running, feed, deadline).await;
                running.kill_and_wait().await;
                (exit, limit, sandbox)
            }
            Err(_) => (
                Exit::TimedOut,
                None,
                self.0.sandbox.get().and_then(|trial| trial.sandbox).unwrap_or(Sandbox::None),
            ),
        };
        let (stdout, stderr) = (heard.out.finish().await, heard.err.finish().await);
        match bwrap_start_error(sandbox, exit, &stdout, &stderr) {
            Some(error) => Err(error),
            None => Ok(ExecResult { exit, stdout, stderr, took: begun.elapsed(), sandbox, limit }),
        }
    }
}

/// Both streams and their output so far.
struct OutputStreams {
    output: Option<Receiver>,
    errors: Option<Receiver>,
    out: Capture,
    err: Capture,
    on_output: Option<OnOutput>,
}

/// Stage of a program's termination.
enum RunStage {
    Running,
    /// Timed out and terminated.
    Terminating,
    /// Timed out; everything is being killed.
    Killed,
    Ended(Exit, Option<ExceededLimit>),
}

impl OutputStreams {
    async fn drive(
        &mut self,
        running: &mut RunningProgram,
        feed: Option<(Sender, Bytes)>,
        mut deadline: Instant,
    ) -> (Exit, Option<ExceededLimit>) {
        let (mut first, mut second) = (vec![0; READ_CHUNK_BYTES], vec![0; READ_CHUNK_BYTES]);
        let feeding = feed_stdin(feed);
        tokio::pin!(feeding);
        let (mut fed, mut stage) = (false, RunStage::Running);
        loop {
            let waits = matches!(stage, RunStage::Running | RunStage::Terminating);
            if !waits && self.output.is_none() && self.errors.is_none() {
                return stage_outcome(&stage);
            }
            tokio::select! {
                ended = running.wait_end(), if waits => {
                    stage = match (stage, ended) {
                        (RunStage::Running, ProgramEnd { exit, limit }) => RunStage::Ended(exit, limit),
                        _ => RunStage::Killed,
                    };
                    deadline = Instant::now() + DRAIN_TIMEOUT;
                }
                count = read_pipe(&mut self.output, &mut first) => {
                    store_chunk(count, &first, &mut self.output, &mut self.out, Stream::Out, &mut self.on_output).await;
                }
                count = read_pipe(&mut self.errors, &mut second) => {
                    store_chunk(count, &second, &mut self.errors, &mut self.err, Stream::Err, &mut self.on_output).await;
                }
                () = &mut feeding, if !fed => fed = true,
                () = tokio::time::sleep_until(deadline) => match stage {
                    RunStage::Running => {
                        running.terminate().await;
                        (stage, deadline) = (RunStage::Terminating, Instant::now() + TERMINATE_GRACE);
                    }
                    RunStage::Terminating => {
                        running.kill();
                        (stage, deadline) = (RunStage::Killed, Instant::now() + DRAIN_TIMEOUT);
                    }
                    RunStage::Killed | RunStage::Ended(..) => return stage_outcome(&stage),
                },
            }
        }
    }
}

fn stage_outcome(stage: &RunStage) -> (Exit, Option<ExceededLimit>) {
    match stage {
        RunStage::Ended(exit, limit) => (*exit, *limit),
        _ => (Exit::TimedOut, None),
    }
}

/// Never completes after the end of the stream.
async fn read_pipe(pipe: &mut Option<Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => std::future::pending().await,
    }
}

async fn store_chunk(
    count: io::Result<usize>,
    buffer: &[u8],
    pipe: &mut Option<Receiver>,
    capture: &mut Capture,
    stream: Stream,
    on_output: &mut Option<OnOutput>,
) {
    let bytes = count.ok().and_then(|count| buffer.get(..count)).unwrap_or_default();
    if bytes.is_empty() {
        *pipe = None;
        return;
    }
    if let Some(call) = on_output {
        call(stream, bytes);
    }
    capture.push(bytes).await;
}

/// A program need not read its input.
async fn feed_stdin(feed: Option<(Sender, Bytes)>) {
    if let Some((mut pipe, bytes)) = feed {
        let _ = pipe.write_all(&bytes).await;
    }
}

/// The hub's end and the program's.
pub(crate) fn output_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Receiver::from_owned_fd(ours)?, theirs))
}

/// The program's end and the hub's.
pub(crate) fn input_pipe() -> io::Result<(OwnedFd, Sender)> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((theirs, Sender::from_owned_fd(ours)?))
}

/// Bubblewrap reports on the program's stderr that it could not start it.
fn bwrap_start_error(
    sandbox: Sandbox,
    exit: Exit,
    stdout: &Captured,
    stderr: &Captured,
) -> Option<ToolError> {
    let line = std::str::from_utf8(&stderr.head).ok()?.strip_prefix("bwrap: ")?.trim_end();
    let all = sandbox == Sandbox::Bubblewrap
        && exit == Exit::Code(1)
        && stdout.total == 0
        && stderr.tail.is_empty();
    if !all || line.contains('\n') {
        return None;
    }
    let error = if line.starts_with("execvp ") {
        ToolError::not_found("The program does not exist or is not executable.").hint(
            "Check the path, which is relative to the working directory, or run it with its interpreter.",
        )
    } else {
        ToolError::unavailable("The sandbox could not be set up.")
            .hint("Ask the operator to check the hub's log.")
    };
    Some(error.detail(line))
}
