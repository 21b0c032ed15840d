//! The parent's side of a program: starts the process, answers its calls, and kills it at the limits.

use crate::frame::{FrameReader, MAX_PARENT_FRAME_BYTES, encode};
use crate::message::{ChildMessage, ParentMessage, Start};
use crate::{CallError, CodeLimits, ProgramError, ProgramFailure, ProgramLimit, ToolBinding, ToolCalls};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use octo_grants::{ChildHandle, Command};
use octo_model::Json;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Longest arguments of a call.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// Longest result of a call, with room for its envelope in a frame.
pub const MAX_RESULT_BYTES: usize = MAX_PARENT_FRAME_BYTES - (1 << 20);
/// Bytes of results that the process has not read. Then calls wait, and results of running ones are refused.
const MAX_UNREAD_BYTES: usize = 32 << 20;
/// Longest result that is encoded on the calling thread.
const MAX_INLINE_BYTES: usize = 256 << 10;
/// Longest text of an error of a call.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How long a process that closed its output may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Variables of the process: no directories of this machine, universal time, and one thread.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("PATH", ""),
    ("HOME", ""),
    ("LANG", "C"),
    ("TZ", "UTC0"),
    ("_RJEM_MALLOC_CONF", "background_thread:false"),
];
const SIGSYS: i32 = 31;
const SIGXCPU: i32 = 24;

/// How the process is started: a program that calls [`crate::child_main`], usually this one with a hidden command.
#[derive(Debug, Clone)]
pub struct ChildCommand {
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// JavaScript or TypeScript: the body of an async function.
    pub source: &'a str,
    /// What it can call.
    pub tools: &'a [ToolBinding],
    /// Milliseconds since 1970 that the program sees as the present.
    pub time_ms: i64,
}

/// Result of a program that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramOutput {
    /// What it returned, unless that is `undefined`.
    pub returned: Option<Json>,
    pub printed: String,
    /// Number of calls it made.
    pub calls: usize,
}

/// Runs a program. Dropping the future kills its process and cancels its calls.
pub async fn run_program(
    child: &ChildCommand,
    program: &Program<'_>,
    calls: &impl ToolCalls,
    limits: &CodeLimits,
) -> Result<ProgramOutput, ProgramFailure> {
    let mut run = ProgramRun {
        limits,
        names: program.tools.iter().map(|tool| tool.name.as_str()).collect(),
        printed: String::new(),
        calls: 0,
        unanswered: 0,
    };
    let answered = match tokio::time::timeout(limits.timeout, run.run(child, program, calls)).await {
        Ok(ended) => ended,
        Err(_) => Err(ProgramLimit::time(limits)),
    };
    let ProgramRun { printed, calls, .. } = run;
    match answered {
        Ok(returned) => Ok(ProgramOutput { returned, printed, calls }),
        Err(error) => Err(ProgramFailure { error, printed, calls }),
    }
}

/// State of a running program.
struct ProgramRun<'a> {
    limits: &'a CodeLimits,
    names: HashSet<&'a str>,
    printed: String,
    calls: usize,
    /// Calls whose result the process has not been sent whole.
    unanswered: usize,
}

impl ProgramRun<'_> {
    async fn run(
        &mut self,
        child: &ChildCommand,
        program: &Program<'_>,
        calls: &impl ToolCalls,
    ) -> Result<Option<Json>, ProgramError> {
        if program.source.len() > self.limits.max_program_bytes {
            return Err(ProgramError::Limit(ProgramLimit::ProgramSize(self.limits.max_program_bytes)));
        }
        let start = encode(&ParentMessage::Start(self.start(program))).map_err(unavailable)?;
        // Kills the process when it is dropped.
        let (stdin, stdout, _stderr, process) = child.start()?.split();
        match self.exchange(start, stdin, stdout, calls).await? {
            ProgramEnd::Returned(value) => Ok(value),
            ProgramEnd::Closed => Err(self.exit_error(process).await),
        }
    }

    fn start(&self, program: &Program<'_>) -> Start {
        Start {
            source: program.source.to_owned(),
            tools: program.tools.to_vec(),
            time_ms: program.time_ms,
            cpu_seconds: self.limits.cpu_seconds,
            memory_bytes: self.limits.memory_bytes,
            max_calls: self.limits.max_calls,
            max_concurrent_calls: self.limits.max_concurrent_calls,
            max_output_bytes: self.limits.max_output_bytes,
        }
    }

    /// Answers calls until the program ends or the process closes its output.
    async fn exchange(
        &mut self,
        start: Vec<u8>,
        mut stdin: Sender,
        stdout: Receiver,
        calls: &impl ToolCalls,
    ) -> Result<ProgramEnd, ProgramError> {
        let mut messages = FrameReader::new(stdout, self.max_frame_bytes());
        let unread = AtomicUsize::new(0);
        let (mut admitted, mut running) = (VecDeque::new(), FuturesUnordered::new());
        let mut outgoing = OutgoingFrames::new(start);
        loop {
            while unread.load(Ordering::Relaxed) < MAX_UNREAD_BYTES
                && let Some((id, name, arguments)) = admitted.pop_front()
            {
                running.push(answer(id, name, arguments, calls, &unread));
            }
            tokio::select! {
                message = messages.next() => match message.map_err(protocol)? {
                    Some(ChildMessage::Call { id, name, arguments }) => {
                        self.admit(id, &name, &arguments)?;
                        admitted.push_back((id, name, arguments));
                    }
                    Some(ChildMessage::Print(text)) => self.print(&text)?,
                    Some(ChildMessage::Returned(value)) => return self.end(value),
                    Some(ChildMessage::Ended) => return Ok(ProgramEnd::Returned(None)),
                    Some(ChildMessage::Failed(error)) => return Err(error.into_error(self.limits)),
                    None => return Ok(ProgramEnd::Closed),
                },
                Some(frame) = running.next() => outgoing.frames.push_back(frame?),
                written = outgoing.write(&mut stdin), if !outgoing.frames.is_empty() => match written {
                    // The first frame is the program.
                    Ok(None) => {}
                    Ok(Some(result_bytes)) => {
                        self.unanswered = self.unanswered.saturating_sub(1);
                        unread.fetch_sub(result_bytes, Ordering::Relaxed);
                    }
                    // It has ended. What it said before is still to be read.
                    Err(_) => outgoing.frames.clear(),
                },
            }
        }
    }

    /// Longest frame of an honest process: its output, of which JSON makes six times as much at most, or arguments.
    const fn max_frame_bytes(&self) -> usize {
        self.limits.max_output_bytes.saturating_mul(6).saturating_add(2 * MAX_ARGUMENT_BYTES)
    }

    /// Checks a call that the process asks for. An honest process keeps all of these rules.
    fn admit(&mut self, id: usize, name: &str, arguments: &Json) -> Result<(), ProgramError> {
        let broken = |why: &str| Err(ProgramError::Protocol(why.to_owned()));
        if id != self.calls {
            return broken("a call has a wrong id");
        }
        if self.calls >= self.limits.max_calls {
            return Err(ProgramError::Limit(ProgramLimit::Calls(self.limits.max_calls)));
        }
        if self.unanswered >= self.limits.max_concurrent_calls.max(1) {
            return broken("too many calls at the same time");
        }
        if !self.names.contains(name) {
            return broken("a call of an unknown tool");
        }
        if !arguments.is_object() {
            return broken("arguments that are no object");
        }
        if arguments.bytes().len() > MAX_ARGUMENT_BYTES {
            return broken("arguments that are too long");
        }
        (self.calls, self.unanswered) = (self.calls + 1, self.unanswered + 1);
        Ok(())
    }

    fn print(&mut self, text: &str) -> Result<(), ProgramError> {
        if text.is_empty() {
            return Err(ProgramError::Protocol("a line without an end".to_owned()));
        }
        if self.printed.len() + text.len() > self.limits.max_output_bytes {
            return Err(ProgramError::Limit(ProgramLimit::Output(self.limits.max_output_bytes)));
        }
        self.printed.push_str(text);
        Ok(())
    }

    fn end(&self, value: Json) -> Result<ProgramEnd, ProgramError> {
        if self.printed.len() + value.as_str().len() > self.limits.max_output_bytes {
            return Err(ProgramError::Limit(ProgramLimit::Output(self.limits.max_output_bytes)));
        }
        Ok(ProgramEnd::Returned(Some(value)))
    }

    /// Why a process ended without a result.
    async fn exit_error(&self, process: ChildHandle) -> ProgramError {
        let status = tokio::time::timeout(EXIT_TIMEOUT, process.exit_status()).await;
        match status.ok().and_then(Result::ok).as_ref().and_then(ExitStatus::signal) {
            Some(SIGXCPU) => ProgramError::Limit(ProgramLimit::Cpu(self.limits.cpu_seconds)),
            Some(SIGSYS) => ProgramError::ForbiddenSystemCall,
            _ => ProgramError::Crashed,
        }
    }
}

/// How the exchange with the process ended.
enum ProgramEnd {
    Returned(Option<Json>),
    /// Without a result.
    Closed,
}

impl ChildCommand {
    fn start(&self) -> Result<octo_grants::Child, ProgramError> {
        let command = Command {
            program: self.program.to_string_lossy().into_owned(),
            args: self.args.clone(),
            env: ENVIRONMENT
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect::<BTreeMap<_, _>>(),
            cwd: Some("/".into()),
        };
        command.spawn().map_err(unavailable)
    }
}

/// Frames that wait for the process to read them.
struct OutgoingFrames {
    frames: VecDeque<OutgoingFrame>,
    /// Bytes of the first frame that are written.
    written: usize,
}

struct OutgoingFrame {
    bytes: Vec<u8>,
    /// Length of the result in it; none in that of the program.
    result_bytes: Option<usize>,
}

impl OutgoingFrames {
    fn new(start: Vec<u8>) -> Self {
        let start = OutgoingFrame { bytes: start, result_bytes: None };
        Self { frames: VecDeque::from([start]), written: 0 }
    }

    /// Writes the rest of the first frame, and returns the length of the result in it. Can be cancelled at any point.
    async fn write(&mut self, stdin: &mut Sender) -> std::io::Result<Option<usize>> {
        while let Some(rest) = self.frames.front().and_then(|frame| frame.bytes.get(self.written..)) {
            if rest.is_empty() {
                self.written = 0;
                return Ok(self.frames.pop_front().and_then(|frame| frame.result_bytes));
            }
            self.written += stdin.write(rest).await?;
        }
        Ok(None)
    }
}

/// Calls a tool and encodes what it answers.
async fn answer(
    id: usize,
    name: String,
    arguments: Json,
    calls: &impl ToolCalls,
    unread: &AtomicUsize,
) -> Result<OutgoingFrame, ProgramError> {
    let result = limit_result(calls.call(&name, arguments).await, unread.load(Ordering::Relaxed));
    let size = result.as_ref().map_or(0, |value| value.bytes().len());
    unread.fetch_add(size, Ordering::Relaxed);
    let encoded = if size <= MAX_INLINE_BYTES {
        encode_result(id, result)
    } else {
        let encoding = tokio::task::spawn_blocking(move || encode_result(id, result));
        encoding.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    };
    Ok(OutgoingFrame { bytes: encoded.map_err(unavailable)?, result_bytes: Some(size) })
}

fn limit_result(result: Result<Json, CallError>, unread: usize) -> Result<Json, CallError> {
    match result {
        Ok(value) if value.bytes().len() > MAX_RESULT_BYTES => Err(CallError::result_too_large()),
        Ok(value) if value.bytes().len() > MAX_INLINE_BYTES && unread >= MAX_UNREAD_BYTES => {
            Err(CallError::too_large(format!(
                "More than {MAX_UNREAD_BYTES} bytes of results wait for the program; make calls with large results one \
                 after the other."
            )))
        }
        Ok(value) => Ok(value),
        Err(mut error) => {
            error.data = error.data.filter(|data| data.bytes().len() <= MAX_ERROR_BYTES);
            error.message.truncate(error.message.floor_char_boundary(MAX_ERROR_BYTES));
            Err(error)
        }
    }
}

fn encode_result(id: usize, result: Result<Json, CallError>) -> std::io::Result<Vec<u8>> {
    let result = match result {
        Ok(value) => Ok(serde_json::from_slice::<Box<RawValue>>(value.bytes())?),
        Err(error) => Err(error),
    };
    encode(&ParentMessage::Result { id, result })
}

fn protocol(error: std::io::Error) -> ProgramError {
    ProgramError::Protocol(error.to_string())
}

fn unavailable(error: std::io::Error) -> ProgramError {
    ProgramError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with a text of this length.
    struct TextOf(usize);

    impl ToolCalls for TextOf {
        async fn call(&self, _: &str, _: Json) -> Result<Json, CallError> {
            Ok(Json::text(&"x".repeat(self.0)))
        }
    }

    #[tokio::test]
    async fn results_that_the_program_has_not_read_are_bounded() {
        let large = MAX_INLINE_BYTES;
        for (unread, bytes, is_refused) in [
            (0, large, false),
            (MAX_UNREAD_BYTES - 1, large, false),
            (MAX_UNREAD_BYTES, large, true),
            (MAX_UNREAD_BYTES, large / 2, false),
            (0, MAX_RESULT_BYTES, true),
        ] {
            let (tools, count) = (TextOf(bytes), AtomicUsize::new(unread));
            let frame = answer(3, "t".to_owned(), Json::empty_object(), &tools, &count).await.unwrap();
            let result_bytes = if is_refused { 0 } else { bytes + 2 };
            assert_eq!(frame.result_bytes, Some(result_bytes), "{unread} {bytes}");
            assert_eq!(count.into_inner(), unread + result_bytes);
            let start = String::from_utf8_lossy(frame.bytes.get(4..80).unwrap()).into_owned();
            let expected = if is_refused { r#"{"Err":{"code":"result_too_large""# } else { r#"{"Ok":"xxx"# };
            assert!(
                start.starts_with(r#"{"Result":{"id":3,"result":"#) && start.contains(expected),
                "{start}"
            );
        }
    }
}
