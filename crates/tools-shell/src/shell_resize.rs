//! `shell_resize`.

use octo_toolkit::exec::{Sessions, TerminalSize};
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Changes the size of a session's terminal, so that programs redraw their screens; fails for sessions without a
/// terminal. Prefer cols and rows of shell_start if the size is known.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The session's id from shell_start.
    session_id: String,
    /// Width in characters.
    cols: u16,
    /// Height in lines.
    rows: u16,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Width in characters now.
    cols: u16,
    /// Height in lines now.
    rows: u16,
}

pub struct Resize;

impl Tool for Resize {
    const NAME: &'static str = "shell_resize";
    const TITLE: &'static str = "Resize a session";
    const KEYWORDS: &'static str = "terminal columns rows window";
    const REQUESTS: &'static [&'static str] = &[
        "make the terminal 200 columns wide",
        "the screen of the session is too narrow, widen it",
        "change rows and columns of the tty",
        "lines wrap badly in top, enlarge the window of the session",
        "set the terminal height to 50 lines",
        "redraw the text interface at another size",
    ];
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Sessions;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "A wide terminal",
            json!({"session_id": "s_0123456789abcdef", "cols": 200, "rows": 50}),
        )]
    }

    async fn run(&self, input: Input, sessions: Sessions, cx: &CallContext) -> Result<Output, ToolError> {
        let Input { session_id, cols, rows } = input;
        if cols == 0 || rows == 0 {
            return Err(ToolError::invalid("cols and rows must be at least 1.").hint("80 and 24 are usual."));
        }
        sessions.resize(&cx.caller, &session_id, TerminalSize { rows, columns: cols }).await?;
        Ok(Output { cols, rows })
    }
}
