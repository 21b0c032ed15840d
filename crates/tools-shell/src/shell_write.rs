//! `shell_write`.

use crate::session_output::{self, ReadRequest, SessionReply, Wait};
use crate::shell_defaults;
use octo_toolkit::exec::Sessions;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Maximum bytes per write.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Types text into a session, followed by Enter, and returns the program's response; fails if it has ended. For
/// Ctrl-C in a terminal write \u0003 without Enter. Prefer shell_stop to end it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The session's id from shell_start.
    session_id: String,
    /// Text to type; it may be empty.
    text: String,
    /// Whether Enter follows the text.
    #[serde(default = "shell_defaults::enabled")]
    enter: bool,
    /// Close the program's input afterwards, like Ctrl-D.
    #[serde(default)]
    end_input: bool,
    /// Milliseconds to wait for the response.
    #[serde(default = "shell_defaults::wait_ms")]
    wait_ms: u64,
    /// Maximum bytes of output.
    #[serde(default = "shell_defaults::max_read_bytes")]
    max_bytes: u64,
}

pub struct Write;

impl Tool for Write {
    const NAME: &'static str = "shell_write";
    const TITLE: &'static str = "Write to a session";
    const KEYWORDS: &'static str = "input stdin answer prompt interactive send";
    const REQUESTS: &'static [&'static str] = &[
        "answer yes to the prompt of the running program",
        "send input to the interactive session",
        "press ctrl-c in the terminal session",
        "type a line into the python repl that i started",
        "give the installer waiting in the background its answer",
        "close the stdin of a running program",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = SessionReply;
    type Grants = Sessions;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Answer a prompt", json!({"session_id": "s_0123456789abcdef", "text": "yes"})),
            Example::new(
                "Interrupt it",
                json!({"session_id": "s_0123456789abcdef", "text": "\u{3}", "enter": false}),
            ),
        ]
    }

    async fn run(
        &self,
        input: Input,
        sessions: Sessions,
        cx: &CallContext,
    ) -> Result<SessionReply, ToolError> {
        if input.text.len() > MAX_TEXT_BYTES {
            return Err(ToolError::invalid(format!("The text is longer than {MAX_TEXT_BYTES} bytes."))
                .hint("Write a file with fs_write_text and let the program read it."));
        }
        let id = input.session_id.as_str();
        let tty = sessions.list(&cx.caller).iter().any(|session| session.id == id && session.tty);
        let mut text = input.text;
        if input.enter {
            // Character that the Enter key sends.
            text.push(if tty { '\r' } else { '\n' });
        }
        if input.end_input && tty {
            text.push('\u{4}');
        }
        sessions.write(&cx.caller, id, text.as_bytes()).await?;
        if input.end_input && !tty {
            sessions.close_input(&cx.caller, id).await?;
        }
        let (max_bytes, wait_ms) = (input.max_bytes, input.wait_ms);
        let ask = ReadRequest { id, from: None, max_bytes, wait_ms, wait: Wait::FirstOutput };
        Ok(SessionReply::from_reading(session_output::read(&sessions, &ask, cx).await?))
    }
}
