//! A client that calls without pause, and records what it does and what it is told.

use crate::fleet::faults::call_history::{CallEnd, CallKind, HistoryWriter, Outcome, now_ms};
use crate::fleet::faults::seeded_random::SeededRandom;
use crate::fleet::front_client::FrontClient;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Timeout of a call, as the fronts know it.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Within which a call has to end, whatever happens. A front may be unreachable for a while, and then TCP has to notice
/// that it is not any more.
pub const CALL_DEADLINE: Duration = Duration::from_secs(60);
/// Between two calls, so that faults meet many clients and not a full processor.
const PAUSE: Duration = Duration::from_millis(100);
const REFUSED_PAUSE: Duration = Duration::from_millis(500);
/// Lines of commands.
pub const COMMAND_FILE: &str = "commands.log";
/// Lines of the file tools.
pub const APPEND_FILE: &str = "appends.log";
/// Lines of the workflows.
pub const WORKFLOW_FILE: &str = "workflows.log";
/// Ends a line that is complete.
pub const LINE_END: &str = " .";
pub const WORKFLOW_PATH: &str = "append.yaml";
pub const WORKFLOW: &str = "version: 1
name: Append
params:
  id: {required: true, description: The line.}
steps:
  - id: append
    tool: fs_append
    with: {path: workflows.log, text: \"\\n{{ params.id }} .\"}
";

pub struct LoadClient<'a> {
    pub number: usize,
    pub fronts: &'a [SocketAddr],
    pub token: &'a str,
    pub random: SeededRandom,
    pub history: HistoryWriter,
}

impl LoadClient<'_> {
    /// Some clients do not wait for workers.
    fn kinds(&self) -> &'static [CallKind] {
        if self.number % 3 == 2 { &[CallKind::MemoryWrite, CallKind::MemoryRead] } else { &CallKind::ALL }
    }

    /// As behind a load balancer, a front that cannot be reached is passed over.
    fn connect(&self, front: &mut usize) -> Option<FrontClient> {
        for _ in 0..self.fronts.len() {
            let address = *self.fronts.get(*front % self.fronts.len())?;
            if let Ok(client) = FrontClient::connect(address, self.token, CALL_DEADLINE) {
                return Some(client);
            }
            *front += 1;
        }
        None
    }

    pub fn run(mut self, stop: &AtomicBool) -> Result<()> {
        let mut front = self.number;
        let mut client = None;
        let mut count = 0;
        while !stop.load(Ordering::Acquire) {
            count += 1;
            let id = format!("c{}n{count}", self.number);
            let kind = *self.random.choose(self.kinds()).context("no kinds")?;
            if client.take_if(|client: &mut FrontClient| !client.is_open()).is_some() {
                front += 1;
            }
            if client.is_none() {
                client = self.connect(&mut front);
            }
            let address = *self.fronts.get(front % self.fronts.len()).context("no fronts")?;
            self.history.start(&id, kind, &address.to_string())?;
            let (outcome, detail, audit_id) = match &mut client {
                None => (Outcome::NotSent, "no connection".to_owned(), None),
                Some(connection) => match call(connection, kind, &id) {
                    Ok(reply) => judge(kind, &reply),
                    Err(error) => {
                        client = None;
                        (Outcome::Unknown, format!("{error:#}"), None)
                    }
                },
            };
            if client.is_none() {
                front += 1;
            }
            self.history.end(&id, &CallEnd { at_ms: now_ms(), outcome, detail, audit_id })?;
            std::thread::sleep(if outcome == Outcome::NotSent { REFUSED_PAUSE } else { PAUSE });
        }
        Ok(())
    }
}

/// A command that appends a line with its worker and the time.
fn append_command(effect: &str) -> String {
    format!("printf '\\n%s %s %s{LINE_END}' {effect} \"$FLEET_NODE\" \"$(date +%s%N)\" >>{COMMAND_FILE}")
}

fn call(client: &mut FrontClient, kind: CallKind, id: &str) -> Result<Value> {
    let (tool, arguments) = match kind {
        CallKind::ShellAppend => ("shell_exec", json!({"command": append_command(id)})),
        CallKind::LongCall => {
            let lines = CallKind::LongCall.effects(id);
            let lines: Vec<String> = lines.iter().map(|effect| append_command(effect)).collect();
            ("shell_exec", json!({"command": lines.join(" && sleep 4 && ")}))
        }
        CallKind::FileAppend => {
            ("fs_append", json!({"path": APPEND_FILE, "text": format!("\n{id}{LINE_END}")}))
        }
        CallKind::MemoryWrite => {
            let entity = json!({"name": id, "type": "probe", "observations": [id]});
            ("memory_upsert_entities", json!({"entities": [entity]}))
        }
        CallKind::WorkflowRun => ("workflow_run", json!({"path": WORKFLOW_PATH, "params": {"id": id}})),
        CallKind::FileRead => ("fs_read_text", json!({"path": APPEND_FILE, "tail": 3})),
        CallKind::MemoryRead => ("memory_query", json!({"query": "probe", "max_results": 1})),
    };
    client.call(tool, &arguments, Some(CALL_TIMEOUT))
}

/// What a reply tells the client.
fn judge(kind: CallKind, reply: &Value) -> (Outcome, String, Option<String>) {
    let text = |path: &str| reply.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let audit_id = Some(text("/metadata/call_id")).filter(|id| !id.is_empty());
    let is_unknown = |message: &str| {
        message.contains("unknown whether")
            || reply.pointer("/error/outcome_unknown") == Some(&Value::Bool(true))
    };
    let (outcome, detail) = if reply.get("success") == Some(&Value::Bool(true)) {
        match kind {
            CallKind::ShellAppend | CallKind::LongCall => match reply.pointer("/result/exit_code") {
                Some(code) if *code == json!(0) => (Outcome::Done, String::new()),
                // A line is either complete or not; of two, the first one may be.
                _ if kind == CallKind::ShellAppend => (Outcome::Failed, text("/result/stderr")),
                _ => (Outcome::Unknown, text("/result/stderr")),
            },
            CallKind::WorkflowRun => match text("/result/status").as_str() {
                "done" => (Outcome::Done, String::new()),
                "failed" => {
                    let message = reply.pointer("/result/error").map(ToString::to_string).unwrap_or_default();
                    let outcome = if is_unknown(&message) { Outcome::Unknown } else { Outcome::Failed };
                    (outcome, message)
                }
                status => (Outcome::Unknown, status.to_owned()),
            },
            _ => (Outcome::Done, String::new()),
        }
    } else {
        let message = text("/error/message");
        let outcome = match text("/error/kind").as_str() {
            "denied" | "unauthorized" => Outcome::Denied,
            "timeout" | "cancelled" => Outcome::Unknown,
            _ if is_unknown(&message) => Outcome::Unknown,
            _ => Outcome::Failed,
        };
        (outcome, format!("{}: {message}", text("/error/kind")))
    };
    (outcome, detail, audit_id)
}
