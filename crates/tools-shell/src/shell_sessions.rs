//! `shell_sessions`.

use crate::session_output;
use octo_toolkit::exec::{SessionInfo, SessionState, Sessions};
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists your sessions, oldest first, with their commands and state; ended ones remain for ten minutes. Prefer
/// shell_read if the id is known.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Omit ended sessions.
    #[serde(default)]
    running: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Your sessions; other callers cannot see them.
    sessions: Vec<SessionEntry>,
}

#[derive(Serialize, JsonSchema)]
pub struct SessionEntry {
    /// For shell_read, shell_write, shell_resize and shell_stop.
    session_id: String,
    /// Its command line.
    command: String,
    /// Working folder.
    cwd: String,
    /// Start time, RFC 3339.
    started: String,
    /// Whether it is still running.
    running: bool,
    /// Exit code after its end; -1 if killed by a signal or the timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Signal that killed it, such as SIGKILL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// Bytes of output so far.
    output_bytes: u64,
    /// Whether it has a terminal.
    tty: bool,
    /// Process id of its main process, or of the sandbox around it.
    pid: u32,
}

pub struct ListSessions;

impl Tool for ListSessions {
    const NAME: &'static str = "shell_sessions";
    const TITLE: &'static str = "List sessions";
    const KEYWORDS: &'static str = "background commands running list terminals";
    const REQUESTS: &'static [&'static str] = &[
        "which background commands did i start",
        "what is still running in my terminals",
        "i lost the session id of the dev server",
        "list my long-running jobs with their state",
        "did i leave any watchers on",
        "overview of open terminals and their exit codes",
    ];
    const EFFECT: Effect = Effect::reads_volatile();
    type Input = Input;
    type Output = Output;
    type Grants = Sessions;

    fn examples() -> Vec<Example> {
        vec![Example::new("What runs", json!({"running": true}))]
    }

    async fn run(&self, input: Input, sessions: Sessions, cx: &CallContext) -> Result<Output, ToolError> {
        let wanted = |info: &SessionInfo| !input.running || info.state == SessionState::Running;
        let sessions = sessions.list(&cx.caller).into_iter().filter(wanted).map(SessionEntry::from).collect();
        Ok(Output { sessions })
    }
}

impl From<SessionInfo> for SessionEntry {
    fn from(info: SessionInfo) -> Self {
        let (exit_code, signal) = session_output::exit_status(info.state);
        Self {
            session_id: info.id,
            command: info.command,
            cwd: info.cwd,
            started: info.started.to_string(),
            running: info.state == SessionState::Running,
            exit_code,
            signal,
            output_bytes: info.bytes,
            tty: info.tty,
            pid: info.pid,
        }
    }
}
