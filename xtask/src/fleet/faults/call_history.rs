//! What a client did and what it was told, as JSON lines: one when a call starts, one when it ends.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// A command appends a line at the worker.
    ShellAppend,
    /// A command appends a line, and another one a few seconds later.
    LongCall,
    /// A file tool appends a line at the worker.
    FileAppend,
    MemoryWrite,
    /// A workflow with one step, which appends a line at the worker.
    WorkflowRun,
    FileRead,
    MemoryRead,
}

impl CallKind {
    pub const ALL: [Self; 7] = [
        Self::ShellAppend,
        Self::LongCall,
        Self::FileAppend,
        Self::MemoryWrite,
        Self::WorkflowRun,
        Self::FileRead,
        Self::MemoryRead,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ShellAppend => "shell-append",
            Self::LongCall => "long-call",
            Self::FileAppend => "file-append",
            Self::MemoryWrite => "memory-write",
            Self::WorkflowRun => "workflow-run",
            Self::FileRead => "file-read",
            Self::MemoryRead => "memory-read",
        }
    }

    /// Whether it needs no worker.
    pub fn is_at_database(self) -> bool {
        matches!(self, Self::MemoryWrite | Self::MemoryRead)
    }

    /// The effects that a call has if it is done, each of them once.
    pub fn effects(self, id: &str) -> Vec<String> {
        match self {
            Self::ShellAppend | Self::FileAppend | Self::MemoryWrite | Self::WorkflowRun => {
                vec![id.to_owned()]
            }
            Self::LongCall => vec![format!("{id}.first"), format!("{id}.last")],
            Self::FileRead | Self::MemoryRead => Vec::new(),
        }
    }
}

/// What the client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Done,
    /// It took no effect.
    Failed,
    Denied,
    /// It may have taken effect.
    Unknown,
    /// No front accepted the connection.
    NotSent,
}

impl Outcome {
    pub const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Denied, Self::Unknown, Self::NotSent];

    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
            Self::NotSent => "not-sent",
        }
    }
}

#[derive(Debug, Clone)]
pub struct CallEnd {
    pub at_ms: u64,
    pub outcome: Outcome,
    /// The message of the error.
    pub detail: String,
    /// Id of the call in the audit log.
    pub audit_id: Option<String>,
}

#[derive(Debug, Clone)]
pub struct CallRecord {
    pub id: String,
    pub kind: CallKind,
    pub start_ms: u64,
    pub end: Option<CallEnd>,
}

pub fn now_ms() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes the history of one client.
pub struct HistoryWriter(File);

impl HistoryWriter {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self(File::create(path)?))
    }

    pub fn start(&mut self, id: &str, kind: CallKind, front: &str) -> Result<()> {
        self.write(&json!({"id": id, "start": now_ms(), "kind": kind.name(), "front": front}))
    }

    pub fn end(&mut self, id: &str, end: &CallEnd) -> Result<()> {
        let CallEnd { at_ms, outcome, detail, audit_id } = end;
        self.write(
            &json!({"id": id, "end": at_ms, "outcome": outcome.name(), "detail": detail, "audit": audit_id}),
        )
    }

    fn write(&mut self, line: &Value) -> Result<()> {
        Ok(self.0.write_all(format!("{line}\n").as_bytes())?)
    }
}

/// Reads the lines of one client.
pub fn parse(text: &str) -> Result<Vec<CallRecord>> {
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let string = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
        let id = string("id").context("a line without id")?;
        if let Some(start_ms) = line.get("start").and_then(Value::as_u64) {
            let name = string("kind").context("a start without kind")?;
            let kind =
                CallKind::ALL.into_iter().find(|kind| kind.name() == name).context("an unknown kind")?;
            calls.insert(id.clone(), CallRecord { id, kind, start_ms, end: None });
        } else if let Some(at_ms) = line.get("end").and_then(Value::as_u64) {
            let name = string("outcome").context("an end without outcome")?;
            let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.name() == name);
            let outcome = outcome.context("an unknown outcome")?;
            let detail = string("detail").unwrap_or_default();
            let call = calls.get_mut(&id).context("an end without a start")?;
            call.end = Some(CallEnd { at_ms, outcome, detail, audit_id: string("audit") });
        } else {
            bail!("a line of neither start nor end: {line}");
        }
    }
    Ok(calls.into_values().collect())
}
