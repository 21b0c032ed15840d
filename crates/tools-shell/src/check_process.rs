//! `check_process`.

use octo_toolkit::exec::{ProcessFilter, ProcessInfo, SessionState, Sessions};
use octo_toolkit::{CallContext, Effect, Example, Exec, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Checks whether a process runs, by name or pid, with its state, memory and CPU time; without either, lists those of
/// your sessions. Arguments are shown only for your sessions. Prefer shell_sessions for what you started.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the program, such as postgres; the kernel stores 15 characters of it.
    #[serde(default)]
    process_name: Option<String>,
    /// Process id.
    #[serde(default)]
    pid: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Whether such a process is running.
    running: bool,
    /// Matching processes of the hub's user, at most 100.
    processes: Vec<Process>,
}

#[derive(Serialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pid: u32,
    /// Name of the program according to the kernel.
    name: String,
    /// State: running, sleeping, stopped, zombie.
    state: String,
    /// Start time, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    /// CPU time in seconds.
    cpu_seconds: f64,
    /// Memory in use.
    memory_bytes: u64,
    /// With its arguments; only for your sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

pub struct CheckProcess;

impl Tool for CheckProcess {
    const NAME: &'static str = "check_process";
    const TITLE: &'static str = "Look for a process";
    const KEYWORDS: &'static str = "running alive pid memory cpu top ps";
    const REQUESTS: &'static [&'static str] = &[
        "is postgres running",
        "how much memory does the nginx process use",
        "is pid 4242 still alive",
        "did the daemon crash or is it up",
        "cpu time of the worker program",
        "find a zombie or hanging process by name",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Exec, Sessions);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Whether a program runs", json!({"process_name": "no-such-program"}))
                .with_output(json!({"running": false, "processes": []})),
            Example::new("What your sessions run", json!({})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (exec, sessions): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let own = sessions.list(&cx.caller).into_iter();
        let own =
            own.filter(|session| session.state == SessionState::Running).map(|session| session.pid).collect();
        let name = input.process_name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let found = exec.processes(ProcessFilter { name, pid: input.pid, own }).await?;
        let running = found.iter().any(|process| !matches!(process.state, "zombie" | "dead"));
        Ok(Output { running, processes: found.into_iter().map(Process::from).collect() })
    }
}

impl From<ProcessInfo> for Process {
    fn from(info: ProcessInfo) -> Self {
        Self {
            pid: info.pid,
            name: info.name,
            state: info.state.to_owned(),
            started: info.started.map(|started| started.to_string()),
            cpu_seconds: info.cpu,
            memory_bytes: info.memory_bytes,
            command: info.command,
        }
    }
}
