//! Shared code of the session tools: a part of a session's output, and its state.

use crate::{signal_name, truncate_output};
use octo_toolkit::exec::{Exit, SessionOutput, SessionState, Sessions};
use octo_toolkit::{CallContext, ToolError, json_len};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Maximum bytes per read.
pub const MAX_READ_BYTES: u64 = 8 << 20;

/// Maximum bytes of a reply besides the output.
pub const REPLY_OVERHEAD_BYTES: usize = 700;

/// Minimum size of a part, so that continued reading always makes progress.
const MIN_PART_BYTES: usize = 4;

/// Maximum wait for output; a client may time out on longer ones.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Additional wait for more output after the first.
const SETTLE_DELAY: Duration = Duration::from_millis(40);

/// New output of a session and its state.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SessionReply {
    /// Output of stdout and stderr in order.
    pub output: String,
    /// Offset of this part, in bytes of all output.
    pub from: u64,
    /// Offset at which the next read continues.
    pub next: u64,
    /// Bytes of all output so far; more than next if not all was returned.
    pub total: u64,
    /// Requested bytes that are no longer stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Whether it is still running.
    pub running: bool,
    /// Exit code after its end; -1 if killed by a signal or the timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that killed it, such as SIGKILL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// True if the timeout was exceeded.
    pub timed_out: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SessionReply {
    pub fn from_reading(reading: SessionOutput) -> Self {
        let (exit_code, signal) = exit_status(reading.state);
        Self {
            output: String::from_utf8_lossy(&reading.bytes).into_owned(),
            from: reading.from,
            next: reading.next,
            total: reading.total,
            skipped: reading.skipped,
            running: reading.state == SessionState::Running,
            exit_code,
            signal,
            timed_out: reading.state == SessionState::Ended(Exit::TimedOut),
        }
    }
}

/// Exit code and signal of an ended program.
pub fn exit_status(state: SessionState) -> (Option<i32>, Option<String>) {
    match state {
        SessionState::Running => (None, None),
        SessionState::Ended(Exit::Code(code)) => (Some(code), None),
        SessionState::Ended(Exit::Signal(number)) => (Some(-1), Some(signal_name::name(number))),
        SessionState::Ended(Exit::TimedOut) => (Some(-1), None),
    }
}

/// When to stop waiting for more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Shortly after the first output.
    FirstOutput,
    /// For the whole time, until the limit of bytes.
    FullTime,
}

/// Read request.
pub struct ReadRequest<'a> {
    pub id: &'a str,
    pub from: Option<u64>,
    pub max_bytes: u64,
    pub wait_ms: u64,
    pub wait: Wait,
}

/// Maximum wait of this call, with time left to reply.
pub fn wait_limit(wait_ms: u64, cx: &CallContext) -> Duration {
    let left = cx.time_left().saturating_sub(Duration::from_millis(500));
    Duration::from_millis(wait_ms).min(MAX_WAIT).min(left)
}

/// Reads until there is enough, the time is over, or the program has exited.
pub async fn read(
    sessions: &Sessions,
    ask: &ReadRequest<'_>,
    cx: &CallContext,
) -> Result<SessionOutput, ToolError> {
    let max = usize::try_from(ask.max_bytes.min(MAX_READ_BYTES)).unwrap_or(usize::MAX);
    let patience = wait_limit(ask.wait_ms, cx);
    let mut until = Instant::now() + patience;
    let mut all = sessions.read(&cx.caller, ask.id, ask.from, max, patience).await?;
    if ask.wait == Wait::FirstOutput {
        until = until.min(Instant::now() + SETTLE_DELAY);
    }
    while all.bytes.len() < max && all.state == SessionState::Running && Instant::now() < until {
        cx.check()?;
        let wait = until.saturating_duration_since(Instant::now());
        let more = sessions.read(&cx.caller, ask.id, Some(all.next), max - all.bytes.len(), wait).await?;
        if more.skipped > 0 {
            break;
        }
        all.bytes.extend(more.bytes);
        (all.next, all.total, all.state) = (more.next, more.total, more.state);
    }
    whole_characters(sessions, ask.id, &mut all, cx).await?;
    shorten(sessions, ask.id, &mut all, cx).await?;
    Ok(all)
}

/// Leaves what does not fit into the reply for the next read.
async fn shorten(
    sessions: &Sessions,
    id: &str,
    all: &mut SessionOutput,
    cx: &CallContext,
) -> Result<(), ToolError> {
    let room = cx.reply.remaining_after(REPLY_OVERHEAD_BYTES);
    let mut end = all.bytes.len();
    loop {
        let part = all.bytes.get(..end).unwrap_or_default();
        let size = json_len(&String::from_utf8_lossy(part));
        if size <= room || end <= MIN_PART_BYTES {
            break;
        }
        end = (end.saturating_mul(room) / size).max(MIN_PART_BYTES);
        let part = part.get(..end).unwrap_or_default();
        let line = part.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1).filter(|at| at * 2 > end);
        end = line.unwrap_or_else(|| end - truncate_output::partial_char_len(part));
    }
    let over = all.bytes.len() - end;
    if over == 0 {
        return Ok(());
    }
    all.bytes.truncate(end);
    all.next -= over as u64;
    // An empty read moves the offset of the next read.
    sessions.read(&cx.caller, id, Some(all.next), 0, Duration::ZERO).await?;
    Ok(())
}

/// Leaves an incomplete character at the end for the next read.
async fn whole_characters(
    sessions: &Sessions,
    id: &str,
    all: &mut SessionOutput,
    cx: &CallContext,
) -> Result<(), ToolError> {
    let torn = truncate_output::partial_char_len(&all.bytes);
    let is_end = all.state != SessionState::Running && all.next == all.total;
    if torn == 0 || torn == all.bytes.len() || is_end {
        return Ok(());
    }
    all.next -= torn as u64;
    all.bytes.truncate(all.bytes.len() - torn);
    // An empty read moves the offset of the next read.
    sessions.read(&cx.caller, id, Some(all.next), 0, Duration::ZERO).await?;
    Ok(())
}
