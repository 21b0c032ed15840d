//! What the session tools share: a part of a session's output, and how the session stands.

use crate::{signal_name, truncate_output};
use octo_toolkit::exec::{Exit, SessionOutput, SessionState, Sessions};
use octo_toolkit::{CallContext, ToolError, json_len};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Bytes that are read at most in one go.
pub const MAX_READ_BYTES: u64 = 8 << 20;

/// Bytes that the members beside the output take in a reply, at most.
pub const REPLY_OVERHEAD_BYTES: usize = 700;

/// No part is made smaller than this, so that reading on always gets somewhere.
const MIN_PART_BYTES: usize = 4;

/// Longest wait for output; a client may give up on longer ones.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// After the first output, more of the same is waited for this long.
const SETTLE_DELAY: Duration = Duration::from_millis(40);

/// New output of a session and how the session stands.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SessionReply {
    /// What it wrote, stdout and stderr in the order of writing.
    pub output: String,
    /// Where this part begins, in bytes of all output.
    pub from: u64,
    /// Where the next read goes on by itself.
    pub next: u64,
    /// Bytes of all output so far; more than next when not all was given.
    pub total: u64,
    /// Bytes that were asked for and are not kept any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Whether the program still runs.
    pub running: bool,
    /// Its exit code, once it has ended; -1 when a signal or the time limit ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, such as SIGKILL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// True when the time limit ended it.
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

/// Exit code and signal of what has ended.
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
    /// A moment after the first output.
    FirstOutput,
    /// The whole time, as long as there is room.
    FullTime,
}

/// What to read.
pub struct ReadRequest<'a> {
    pub id: &'a str,
    pub from: Option<u64>,
    pub max_bytes: u64,
    pub wait_ms: u64,
    pub wait: Wait,
}

/// How long this call can wait, with room to answer.
pub fn wait_limit(wait_ms: u64, cx: &CallContext) -> Duration {
    let left = cx.time_left().saturating_sub(Duration::from_millis(500));
    Duration::from_millis(wait_ms).min(MAX_WAIT).min(left)
}

/// Reads until there is enough, the time is over, or the program has ended.
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

/// What does not fit into the reply is left for the next read.
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
    // Reading nothing from there moves the place where the next read begins.
    sessions.read(&cx.caller, id, Some(all.next), 0, Duration::ZERO).await?;
    Ok(())
}

/// A character that is torn at the end is left for the next read.
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
    // Reading nothing from there moves the place where the next read begins.
    sessions.read(&cx.caller, id, Some(all.next), 0, Duration::ZERO).await?;
    Ok(())
}
