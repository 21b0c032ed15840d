//! `shell_stop`.

use crate::session_output::{self, MAX_READ_BYTES, SessionReply};
use crate::shell_defaults;
use octo_toolkit::exec::Sessions;
use octo_toolkit::reply_budget::suffix_within;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Ends a session with all its processes, gently first, and returns its last output and exit code, also if it has
/// already ended. Prefer shell_write with \u0003 to interrupt without ending.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The session's id from shell_start.
    session_id: String,
    /// Maximum bytes of its last output, from the end.
    #[serde(default = "shell_defaults::max_read_bytes")]
    max_bytes: u64,
}

pub struct Stop;

impl Tool for Stop {
    const NAME: &'static str = "shell_stop";
    const TITLE: &'static str = "Stop a session";
    const KEYWORDS: &'static str = "kill terminate end background process";
    const REQUESTS: &'static [&'static str] = &[
        "kill the dev server that i started",
        "end the background job",
        "terminate the watcher session",
        "shut down the running command and get its last output",
        "stop a session that hangs",
        "i do not need the started server any more",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = SessionReply;
    type Grants = Sessions;

    fn examples() -> Vec<Example> {
        vec![Example::new("End a server", json!({"session_id": "s_0123456789abcdef"}))]
    }

    async fn run(
        &self,
        input: Input,
        sessions: Sessions,
        cx: &CallContext,
    ) -> Result<SessionReply, ToolError> {
        let mut reading = sessions.stop(&cx.caller, &input.session_id).await?;
        let max = usize::try_from(input.max_bytes.min(MAX_READ_BYTES)).unwrap_or(usize::MAX);
        let over = reading.bytes.len().saturating_sub(max);
        // The last output shows the reason; characters are not split.
        let torn =
            reading.bytes.iter().skip(over).take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000);
        let from = if over == 0 { 0 } else { over + torn.count() };
        reading.bytes.drain(..from.min(reading.bytes.len()));
        reading.from += from as u64;
        let mut part = SessionReply::from_reading(reading);
        let shown =
            suffix_within(&part.output, cx.reply.remaining_after(session_output::REPLY_OVERHEAD_BYTES));
        part.from += (part.output.len() - shown.len()) as u64;
        part.output = shown.to_owned();
        Ok(part)
    }
}
