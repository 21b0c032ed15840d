//! `shell_start`.

use crate::session_output::{self, ReadRequest, SessionReply, Wait};
use crate::shell::Shell;
use crate::shell_defaults;
use octo_toolkit::exec::{Job, Program, Sessions, TerminalSize};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum lifetime of a session, in seconds.
const MAX_TIMEOUT_S: u64 = 86_400;

/// Starts a long-running command: a server, a watcher, a prompt. Returns a session id and the first output, or the
/// exit code if it has already ended. Without network access, only its own processes reach its ports. Prefer
/// shell_exec for commands that end by themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Command line for bash, or sh if missing.
    command: String,
    /// Folder to run in, relative to the workspace.
    #[serde(default = "shell_defaults::current_dir")]
    cwd: WorkPath,
    /// Additional environment variables.
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    /// Allocate a terminal, for programs that need one; their output then has colours and cursor movements.
    #[serde(default)]
    tty: bool,
    /// Width of the terminal in characters.
    #[serde(default = "shell_defaults::columns")]
    cols: u16,
    /// Height of the terminal in lines.
    #[serde(default = "shell_defaults::rows")]
    rows: u16,
    /// Timeout in seconds; at most 86400.
    #[serde(default = "shell_defaults::session_timeout_s")]
    timeout_s: u64,
    /// Milliseconds to wait for the first output; less if it ends.
    #[serde(default = "shell_defaults::wait_ms")]
    wait_ms: u64,
    /// Maximum bytes of output; shell_read returns the rest.
    #[serde(default = "shell_defaults::max_read_bytes")]
    max_bytes: u64,
    /// False disables the network; true cannot enable it against the operator's settings.
    #[serde(default)]
    network: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Id for shell_read, shell_write, shell_resize and shell_stop.
    session_id: String,
    #[serde(flatten)]
    part: SessionReply,
    /// Whether it has network access.
    network: bool,
    /// Possible data loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Deviations from the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct Start(pub Shell);

impl Tool for Start {
    const NAME: &'static str = "shell_start";
    const TITLE: &'static str = "Start a session";
    const KEYWORDS: &'static str = "background dev server daemon long running watch launch";
    const REQUESTS: &'static [&'static str] = &[
        "launch the dev server in the background",
        "start a watcher that keeps running",
        "open an interactive python prompt",
        "run npm start and leave it on while i work",
        "begin a long job without waiting for it to end",
        "follow a log live with tail -f",
        "run a full-screen terminal program such as vim or top",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Sessions, Fs<Read>);

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Follow a file",
                json!({"command": "tail -f notes.txt", "timeout_s": 5, "wait_ms": 200}),
            ),
            Example::new("A terminal of its own", json!({"command": "stty size", "tty": true, "cols": 80})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (sessions, fs): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        if input.timeout_s == 0 || input.cols == 0 || input.rows == 0 {
            return Err(ToolError::invalid("timeout_s, cols and rows must be at least 1.").hint("Omit them."));
        }
        let env = input.env.unwrap_or_default();
        let checked = self.0.check(&input.command, &input.cwd, &env, &fs, cx).await?;
        let mut notes = Vec::new();
        let network = self.0.network(input.network, &mut notes);
        if input.timeout_s > MAX_TIMEOUT_S {
            notes.push(format!("timeout_s was lowered to {MAX_TIMEOUT_S}."));
        }
        let job = Job {
            program: Program::Shell(input.command),
            cwd: checked.cwd,
            env,
            stdin: None,
            timeout: Duration::from_secs(input.timeout_s.min(MAX_TIMEOUT_S)),
            max_output_bytes: 0,
            network,
            writes: true,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: None,
        };
        let size = input.tty.then_some(TerminalSize { rows: input.rows, columns: input.cols });
        let id = sessions.start(&cx.caller, job, size).await?;
        let (max_bytes, wait_ms) = (input.max_bytes, input.wait_ms);
        let ask = ReadRequest { id: &id, from: None, max_bytes, wait_ms, wait: Wait::FullTime };
        let reading = session_output::read(&sessions, &ask, cx).await?;
        Ok(Output {
            part: SessionReply::from_reading(reading),
            session_id: id,
            network,
            warning: checked.warning,
            note: (!notes.is_empty()).then(|| notes.join(" ")),
        })
    }
}
