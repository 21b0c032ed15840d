//! Runs one command to completion: timeout, progress, and the returned part of its output.

use crate::shell::Shell;
use crate::signal_name;
use crate::truncate_output::{self, TruncatedStream};
use octo_toolkit::exec::{Captured, ExceededLimit, ExecResult, Exit, Job, Program, Stream};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Exec, Fs, ModelText, ResultWriter, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom};
use std::time::{Duration, Instant};

/// Grants for running commands.
pub type Grants = (Exec, Fs<Read>, ResultWriter);

/// Interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum characters of output in a progress notification.
const MAX_PROGRESS_CHARS: usize = 200;

/// Maximum bytes of `CommandResult` in a reply besides the output.
pub const REPLY_OVERHEAD_BYTES: usize = 900;

/// Maximum bytes of a stream that are stored, or parsed for a report.
const MAX_STREAM_BYTES: u64 = 16 << 20;

const BACKGROUND_NOTE: &str =
    "Background processes were killed with it; use shell_start for long-running programs.";

const LOOPBACK_NOTE: &str = "Commands without network access have separate loopbacks, so servers of other sessions \
     cannot be reached. Start and query the server in one command, or ask the operator to set \
    `shell.local_servers: true`.";

/// Whether a command line refers to this machine.
fn names_loopback(command: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"].iter().any(|name| command.contains(name))
}

/// Request of a caller.
pub struct CommandRequest {
    pub command: String,
    pub cwd: WorkPath,
    pub env: BTreeMap<String, String>,
    pub timeout_s: u64,
    pub max_output_bytes: u64,
    pub network: Option<bool>,
    /// Maximum bytes of the output in the reply.
    pub reply_budget: usize,
    pub stdin: Option<String>,
    /// Whether the whole output is needed besides what is shown.
    pub wants_full_output: bool,
}

/// Exit status and output of a command.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CommandResult {
    /// Exit code; -1 if killed by a signal or the timeout.
    pub exit_code: i32,
    /// Standard output, or its beginning.
    pub stdout: String,
    /// End of standard output, if its middle was omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_tail: Option<String>,
    /// Standard error, or its beginning.
    pub stderr: String,
    /// End of standard error, if its middle was omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
    /// True if a part of the output was omitted.
    pub truncated: bool,
    /// Bytes of all output, if a part was omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_bytes: Option<u64>,
    /// Pass to result_read for all of standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Pass to result_read for all of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_handle: Option<String>,
    /// True if the timeout was exceeded.
    pub timed_out: bool,
    /// Signal that killed it, such as SIGSEGV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Run time in milliseconds.
    pub duration_ms: u64,
    /// Sandbox: bubblewrap, landlock or none.
    pub sandbox: String,
    /// Whether it had network access.
    pub network: bool,
    /// Possible data loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Deviations from the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl CommandResult {
    /// The exit status, notices, and the output; standard output extends to the end.
    pub fn write_text(&self, text: ModelText) -> ModelText {
        let text = text
            .line(self.status_line())
            .field_if("warning", self.warning.as_ref())
            .field_if("note", self.note.as_ref())
            .field_if("handle", self.handle.as_ref())
            .field_if("stderr_handle", self.stderr_handle.as_ref())
            .text("stderr", &self.stderr)
            .text("end of stderr", self.stderr_tail.as_deref().unwrap_or_default());
        match (&self.stdout_tail, self.stdout.is_empty()) {
            (Some(tail), _) => text.text("stdout", &self.stdout).line("end of stdout:").rest(tail),
            (None, false) => text.line("stdout:").rest(&self.stdout),
            (None, true) => text.line_if(self.stderr.is_empty(), "no output"),
        }
    }

    fn status_line(&self) -> String {
        let mut line = format!("exit_code: {}", self.exit_code);
        let signal = self.signal.iter().map(|signal| format!(", killed by {signal}"));
        let timeout = self.timed_out.then(|| ", timed out".to_owned());
        let network = (self.exit_code != 0 && !self.network).then(|| ", no network".to_owned());
        let slow = (self.duration_ms >= 1_000).then(|| format!(", {} ms", self.duration_ms));
        let total = self.original_bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
        let cut = self.truncated.then(|| format!(", output{total} truncated"));
        line.extend(signal.chain(timeout).chain(network).chain(slow).chain(cut));
        line
    }
}

/// Result of a command request.
pub struct CommandRun {
    pub result: CommandResult,
    /// All of standard output and standard error, if requested.
    pub full_output: (String, String),
}

impl Shell {
    pub async fn run(
        &self,
        order: CommandRequest,
        grants: &Grants,
        cx: &CallContext,
    ) -> Result<CommandRun, ToolError> {
        let (exec, fs, keep) = grants;
        let checked = self.check(&order.command, &order.cwd, &order.env, fs, cx).await?;
        let mut notes = Vec::new();
        let timeout = self.timeout(order.timeout_s, cx)?;
        let network = self.network(order.network, &mut notes);
        let own_loopback = !network && names_loopback(&order.command);
        let bound =
            usize::try_from(order.max_output_bytes).unwrap_or(usize::MAX).min(MAX_STREAM_BYTES as usize);
        let job = Job {
            program: Program::Shell(order.command),
            cwd: checked.cwd,
            env: order.env,
            stdin: order.stdin.map(Into::into),
            timeout: timeout.limit,
            max_output_bytes: bound,
            network,
            writes: true,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: Some(Box::new(notices(cx))),
        };
        // Dropping the future kills the command.
        let done = cx.run(exec.run(job)).await??;
        notes.extend(timeout.note(done.exit == Exit::TimedOut));
        if done.limit == Some(ExceededLimit::Processes) {
            notes.push("It was killed because it exceeded the process limit.".to_owned());
        }
        if checked.background {
            notes.push(BACKGROUND_NOTE.to_owned());
        }
        if own_loopback && done.exit != Exit::Code(0) {
            notes.push(LOOPBACK_NOTE.to_owned());
        }
        let (out, err) = (&done.stdout, &done.stderr);
        let shares = truncate_output::split_budget(bound.min(order.reply_budget), out.total, err.total);
        let sizes = (
            truncate_output::truncate_to_reply(out, shares.0, order.reply_budget).json_len(),
            truncate_output::truncate_to_reply(err, shares.1, order.reply_budget).json_len(),
        );
        let rooms = truncate_output::split_budget(order.reply_budget, sizes.0 as u64, sizes.1 as u64);
        let (out, err) = (
            truncate_output::truncate_to_reply(out, shares.0, rooms.0),
            truncate_output::truncate_to_reply(err, shares.1, rooms.1),
        );
        let mut ended = CommandResult { network, warning: checked.warning, ..to_result(&done) };
        let out = stream(done.stdout, out, order.wants_full_output, keep, cx, &mut notes).await;
        let err = stream(done.stderr, err, order.wants_full_output, keep, cx, &mut notes).await;
        ended.truncated = out.truncated.tail.is_some() || err.truncated.tail.is_some();
        ended.original_bytes = ended.truncated.then_some(out.total + err.total);
        (ended.stdout, ended.stdout_tail, ended.handle) =
            (out.truncated.head, out.truncated.tail, out.handle);
        (ended.stderr, ended.stderr_tail, ended.stderr_handle) =
            (err.truncated.head, err.truncated.tail, err.handle);
        ended.note = (!notes.is_empty()).then(|| notes.join(" "));
        Ok(CommandRun { result: ended, full_output: (out.full_text, err.full_text) })
    }
}

/// Facts that do not depend on the output.
fn to_result(done: &ExecResult) -> CommandResult {
    let (exit_code, signal) = match done.exit {
        Exit::Code(code) => (code, None),
        Exit::Signal(number) => (-1, Some(signal_name::name(number))),
        Exit::TimedOut => (-1, None),
    };
    CommandResult {
        exit_code,
        signal,
        timed_out: done.exit == Exit::TimedOut,
        duration_ms: u64::try_from(done.took.as_millis()).unwrap_or(u64::MAX),
        sandbox: done.sandbox.as_str().to_owned(),
        ..CommandResult::default()
    }
}

/// Reports the last line and the size so far, a few times per second.
fn notices(cx: &CallContext) -> impl FnMut(Stream, &[u8]) + Send + use<> {
    let cx = cx.clone();
    let (mut bytes, mut last) = (0_u64, None::<Instant>);
    move |_, chunk| {
        bytes += chunk.len() as u64;
        if last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
            last = Some(Instant::now());
            cx.progress(bytes, None, &last_line(chunk));
        }
    }
}

fn last_line(chunk: &[u8]) -> String {
    let text = String::from_utf8_lossy(chunk);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    crate::ansi::strip_ansi(line).chars().take(MAX_PROGRESS_CHARS).collect()
}

struct StreamReply {
    truncated: TruncatedStream,
    total: u64,
    handle: Option<String>,
    full_text: String,
}

async fn stream(
    captured: Captured,
    shown: TruncatedStream,
    wanted: bool,
    results: &ResultWriter,
    cx: &CallContext,
    notes: &mut Vec<String>,
) -> StreamReply {
    let total = captured.total;
    let cut = shown.tail.is_some();
    let whole = if cut || wanted { all(captured).await } else { String::new() };
    let mut handle = None;
    if cut {
        if total > MAX_STREAM_BYTES {
            notes.push(format!("The handle contains the first {MAX_STREAM_BYTES} bytes of {total}."));
        }
        match results.write(&cx.caller, cx.id, &whole).await {
            Ok(kept) => handle = Some(kept),
            Err(error) => {
                tracing::warn!(call = %cx.id, %error, "could not store the output of a command");
                notes.push("The omitted part could not be stored.".to_owned());
            }
        }
    }
    StreamReply { truncated: shown, total, handle, full_text: whole }
}

/// The whole stream as text.
async fn all(captured: Captured) -> String {
    let Captured { mut head, tail, full_output: whole, .. } = captured;
    if let Some(file) = whole {
        let read = tokio::task::spawn_blocking(move || from_start(file)).await;
        if let Ok(Ok(bytes)) = read {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    head.extend(tail);
    String::from_utf8_lossy(&head).into_owned()
}

fn from_start(mut file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_STREAM_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_raw_and_its_end_is_unambiguous() {
        let ended = |exit_code, stdout: &str, stderr: &str| CommandResult {
            exit_code,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            ..CommandResult::default()
        };
        let cut = CommandResult {
            stdout_tail: Some("z\n".to_owned()),
            truncated: true,
            original_bytes: Some(9_000),
            handle: Some("r_1".to_owned()),
            duration_ms: 2_500,
            ..ended(0, "a\nb\n", "")
        };
        let killed = CommandResult {
            timed_out: true,
            signal: Some("SIGKILL".to_owned()),
            network: true,
            ..ended(-1, "", "")
        };
        let rows = [
            (ended(0, "a \"b\"\nc\n", ""), "exit_code: 0\nstdout:\na \"b\"\nc"),
            (ended(1, "", "no\n"), "exit_code: 1, no network\nstderr: no"),
            (
                ended(0, "x\nexit_code: 1\n", "1\n2\n"),
                "exit_code: 0\nstderr (2 lines):\n1\n2\nstdout:\nx\nexit_code: 1",
            ),
            (
                cut,
                "exit_code: 0, 2500 ms, output of 9000 bytes truncated\nhandle: r_1\nstdout (2 lines):\na\nb\nend of stdout:\nz",
            ),
            (killed, "exit_code: -1, killed by SIGKILL, timed out\nno output"),
        ];
        for (result, wanted) in rows {
            assert_eq!(result.write_text(ModelText::new()).finish().as_deref(), Some(wanted));
        }
    }
}
