//! `shell_read`.

use crate::session_output::{self, ReadRequest, SessionReply, Wait};
use crate::shell_defaults;
use octo_toolkit::exec::{SessionState, Sessions};
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError, json_len};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// Returns a session's output since the last read, or from an offset, or only lines that match; waits for output and
/// reports the session's end. Prefer a pattern when waiting for one line, such as "listening on".
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The session's id from shell_start.
    session_id: String,
    /// Offset of the output to start at, 0 for the beginning; by default the end of the last read.
    #[serde(default)]
    from: Option<u64>,
    /// Milliseconds to wait for output, or for a line that matches; at most 60000.
    #[serde(default = "shell_defaults::wait_ms")]
    wait_ms: u64,
    /// Maximum bytes of output.
    #[serde(default = "shell_defaults::max_read_bytes")]
    max_bytes: u64,
    /// Regular expression; only lines that match are returned, and waited for.
    #[serde(default)]
    pattern: Option<String>,
}

pub struct Read;

impl Tool for Read {
    const NAME: &'static str = "shell_read";
    const TITLE: &'static str = "Read a session";
    const KEYWORDS: &'static str = "output logs of the background command tail";
    const REQUESTS: &'static [&'static str] = &[
        "what has the background job printed since last time",
        "wait until the dev server says listening on",
        "new output of the running session",
        "did the long-running command finish, and with what exit code",
        "see the watcher's latest messages",
        "read the started program's output again from the beginning",
    ];
    const EFFECT: Effect = Effect::reads_volatile();
    type Input = Input;
    type Output = SessionReply;
    type Grants = Sessions;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("What is new", json!({"session_id": "s_0123456789abcdef"})),
            Example::new(
                "Wait until a server is up",
                json!({"session_id": "s_0123456789abcdef", "pattern": "listening on", "wait_ms": 20_000}),
            ),
        ]
    }

    async fn run(
        &self,
        input: Input,
        sessions: Sessions,
        cx: &CallContext,
    ) -> Result<SessionReply, ToolError> {
        let Input { session_id: id, from, wait_ms, max_bytes, pattern } = &input;
        let Some(pattern) = pattern else {
            let ask = ReadRequest {
                id,
                from: *from,
                max_bytes: *max_bytes,
                wait_ms: *wait_ms,
                wait: Wait::FirstOutput,
            };
            return Ok(SessionReply::from_reading(session_output::read(&sessions, &ask, cx).await?));
        };
        let pattern = Regex::new(pattern).map_err(|error| {
            ToolError::invalid(format!("The pattern is not a valid regular expression: {error}."))
                .hint("Escape characters such as ( and [ with a backslash.")
        })?;
        matching(&sessions, &input, &pattern, cx).await
    }
}

/// Reads until a line matches. An unterminated line counts, because a prompt is not terminated.
async fn matching(
    sessions: &Sessions,
    input: &Input,
    pattern: &Regex,
    cx: &CallContext,
) -> Result<SessionReply, ToolError> {
    let until = Instant::now() + session_output::wait_limit(input.wait_ms, cx);
    let ask = |from, wait: Duration| ReadRequest {
        id: &input.session_id,
        from,
        max_bytes: session_output::MAX_READ_BYTES,
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        wait: Wait::FirstOutput,
    };
    let mut all = session_output::read(sessions, &ask(input.from, Duration::ZERO), cx).await?;
    let from = all.from;
    loop {
        let text = String::from_utf8_lossy(&all.bytes);
        let lines: Vec<&str> = text.lines().filter(|line| pattern.is_match(line)).collect();
        let left = until.saturating_duration_since(Instant::now());
        let over = left.is_zero() || all.state != SessionState::Running && all.next >= all.total;
        if !lines.is_empty() || over {
            let max = usize::try_from(input.max_bytes).unwrap_or(usize::MAX);
            let output =
                last_lines(&lines, max, cx.reply.remaining_after(session_output::REPLY_OVERHEAD_BYTES));
            return Ok(SessionReply { output, from, ..SessionReply::from_reading(all) });
        }
        // Complete lines that do not match are done.
        let done = all.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        all.bytes.drain(..done);
        let more = session_output::read(sessions, &ask(Some(all.next), left), cx).await?;
        all.bytes.extend(more.bytes);
        (all.next, all.total, all.state) = (more.next, more.total, more.state);
    }
}

/// The last lines that fit, because the newest matter most.
fn last_lines(lines: &[&str], max: usize, room: usize) -> String {
    let (mut size, mut json) = (0, 0);
    let fits = lines.iter().rev().take_while(|line| {
        size += line.len() + 1;
        json += json_len(line) + json_len("\n");
        size <= max && json <= room
    });
    let mut kept: Vec<&str> = fits.copied().collect();
    kept.reverse();
    let mut text = kept.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_newest_lines_are_kept() {
        assert_eq!(super::last_lines(&["one", "two", "three"], 10, 100), "two\nthree\n");
        assert_eq!(super::last_lines(&["one"], 3, 100), "");
        assert_eq!(super::last_lines(&[], 3, 100), "");
    }
}
