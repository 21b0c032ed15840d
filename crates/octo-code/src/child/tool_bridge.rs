//! What a program has of the world: calls of tools, in a queue, and printed text.

use super::send;
use crate::ToolBinding;
use crate::message::{ChildMessage, ReportedError, Start};
use crate::program_run::MAX_ARGUMENT_BYTES;
use octo_model::{Json, nearest};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

/// Bytes of the arguments of calls that wait.
const MAX_WAITING_BYTES: usize = 8 << 20;
/// Names that an error lists.
const MAX_LISTED_NAMES: usize = 20;
/// Longest part of a wrong name that an error repeats.
const MAX_NAME_CHARS: usize = 100;

/// Sends calls and printed text to the parent, within the limits.
pub struct ToolBridge {
    output: Box<dyn Write>,
    tools: Vec<ToolBinding>,
    /// Every name of a tool, with its index: as it is listed, `server.tool`, `server:tool`, and alone if it is unique.
    names: HashMap<String, usize>,
    /// Calls that wait until others are answered.
    waiting: VecDeque<WaitingCall>,
    waiting_bytes: usize,
    running: usize,
    calls: usize,
    /// Bytes that may still be printed or returned.
    output_left: usize,
    max_calls: usize,
    max_running: usize,
    /// The end is reported; nothing may follow.
    is_ended: bool,
}

struct WaitingCall {
    id: usize,
    name: String,
    arguments: Json,
}

impl ToolBridge {
    pub fn new(start: &Start, output: Box<dyn Write>) -> Self {
        let named = |name: fn(&ToolBinding) -> String| {
            start.tools.iter().enumerate().map(move |(index, tool)| (name(tool), index))
        };
        let mut of_servers: HashMap<String, Vec<usize>> = HashMap::new();
        for (name, index) in named(|tool| tool.path.last().cloned().unwrap_or_default()) {
            of_servers.entry(name).or_default().push(index);
        }
        let unique =
            of_servers.into_iter().filter_map(|(name, tools)| Some((name, *tools.first()?, tools.len())));
        // Of two tools with one name, the later kind wins: what a client sees is what is called.
        let names = unique.filter(|(_, _, count)| *count == 1).map(|(name, index, _)| (name, index));
        let names = names.chain(named(|tool| tool.path.join(":")));
        let names = names.chain(named(|tool| tool.path.join("."))).chain(named(|tool| tool.name.clone()));
        Self {
            output,
            names: names.collect(),
            tools: start.tools.clone(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            running: 0,
            calls: 0,
            output_left: start.max_output_bytes,
            max_calls: start.max_calls,
            max_running: start.max_concurrent_calls.max(1),
            is_ended: false,
        }
    }

    /// Starts a call and returns its id. `Err` is a message for the program.
    pub fn call(&mut self, name: &str, arguments: String) -> Result<usize, String> {
        // A tool may have a name that begins like that.
        let short = name.strip_prefix("tools.").unwrap_or(name);
        let index = self.names.get(name).or_else(|| self.names.get(short));
        let tool = index.and_then(|index| self.tools.get(*index));
        let name = tool.map(|tool| tool.name.clone()).ok_or_else(|| self.unknown_name(short))?;
        if arguments.len() > MAX_ARGUMENT_BYTES {
            return Err(format!("The arguments of `{name}` are longer than {MAX_ARGUMENT_BYTES} bytes."));
        }
        let arguments =
            Json::parse(arguments).map_err(|error| format!("The arguments of `{name}`: {error}"))?;
        if !arguments.is_object() {
            return Err(format!("The arguments of `{name}` must be one object, such as {{ key: value }}."));
        }
        if self.calls >= self.max_calls {
            self.fail(ReportedError::Calls);
            return Err("The program made too many calls.".to_owned());
        }
        let bytes = arguments.as_str().len();
        if self.running >= self.max_running && self.waiting_bytes + bytes > MAX_WAITING_BYTES {
            return Err(format!(
                "The arguments of calls that wait are longer than {MAX_WAITING_BYTES} bytes. Await some of the calls \
                 before the next."
            ));
        }
        let id = self.calls;
        self.calls += 1;
        self.waiting_bytes += bytes;
        self.waiting.push_back(WaitingCall { id, name, arguments });
        self.send_waiting().map_err(|error| error.to_string())?;
        Ok(id)
    }

    /// Records that a call was answered, so that the next one may run.
    pub fn answered(&mut self) -> io::Result<()> {
        self.running = self.running.saturating_sub(1);
        self.send_waiting()
    }

    /// Whether there are calls without an answer.
    pub fn is_waiting(&self) -> bool {
        self.running > 0
    }

    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Prints a line.
    pub fn print(&mut self, mut line: String) {
        line.push('\n');
        if self.take_output(line.len()) && !self.is_ended {
            self.is_ended |= send(&mut self.output, &ChildMessage::Print(line)).is_err();
        }
    }

    /// Accounts for output. Otherwise reports that it is too much.
    pub fn take_output(&mut self, bytes: usize) -> bool {
        if let Some(left) = self.output_left.checked_sub(bytes) {
            self.output_left = left;
            true
        } else {
            self.fail(ReportedError::Output);
            false
        }
    }

    /// Reports the end, unless that has been done.
    pub fn finish(&mut self, message: &ChildMessage) -> io::Result<()> {
        if std::mem::replace(&mut self.is_ended, true) { Ok(()) } else { send(&mut self.output, message) }
    }

    fn fail(&mut self, error: ReportedError) {
        // If the parent is gone, nobody waits for the report.
        let _ = self.finish(&ChildMessage::Failed(error));
    }

    fn send_waiting(&mut self) -> io::Result<()> {
        while self.running < self.max_running
            && !self.is_ended
            && let Some(WaitingCall { id, name, arguments }) = self.waiting.pop_front()
        {
            self.waiting_bytes -= arguments.as_str().len();
            send(&mut self.output, &ChildMessage::Call { id, name, arguments })?;
            self.running += 1;
        }
        Ok(())
    }

    /// Message about a name that no tool has, with close ones or those beside it.
    pub fn unknown_name(&self, name: &str) -> String {
        let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
        let paths: Vec<String> = self.tools.iter().map(|tool| tool.path.join(".")).collect();
        let names = paths.iter().map(String::as_str).chain(self.tools.iter().map(|tool| tool.name.as_str()));
        if let Some(close) = nearest(&shown, names) {
            let known = self.names.get(close).and_then(|index| paths.get(*index));
            return format!(
                "There is no tool `{shown}`. Did you mean `tools.{}`?",
                known.map_or(close, |path| path)
            );
        }
        let group = shown.rsplit_once('.').map(|(group, _)| format!("{group}.")).unwrap_or_default();
        let mut beside: Vec<&String> = paths.iter().filter(|path| path.starts_with(&group)).collect();
        if beside.is_empty() {
            beside = paths.iter().collect();
        }
        let listed: Vec<_> =
            beside.iter().take(MAX_LISTED_NAMES).map(|path| format!("tools.{path}")).collect();
        let more = if beside.len() > MAX_LISTED_NAMES { ", …" } else { "" };
        format!("There is no tool `{shown}`. There are: {}{more}.", listed.join(", "))
    }
}
