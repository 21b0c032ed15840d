//! A running child process: tasks serve its streams and end with it.

use super::invalid_lines::InvalidLines;
use super::line_reader::{LineReader, NextLine};
use super::stderr_log::StderrLog;
use super::stdin_writer::{StdinSender, run_writer};
use crate::error::UpstreamError;
use crate::session::dispatcher::{Dispatcher, MessageOrigin};
use crate::transport::Transport;
use crate::transport::abort_on_drop::AbortOnDrop;
use crate::transport::close_signal::CloseSignal;
use crate::transport::decode::decode_message;
use crate::transport::message_memory::ReceiveLimit;
use octo_grants::{Child, ChildHandle};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Maximum bytes of a line on standard error.
const MAX_STDERR_LINE_BYTES: usize = 2000;
/// Time for a child to exit by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Lines read before the task yields to other servers.
const LINES_PER_YIELD: u32 = 32;
const UNREAD_CHECK_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) struct ChildProcess {
    pub(crate) pid: Option<u32>,
    group: ChildHandle,
    stdin: StdinSender,
    _writer: AbortOnDrop,
    _reader: AbortOnDrop,
    _stderr: AbortOnDrop,
}

impl ChildProcess {
    /// Serves the streams of a child that has just been started.
    pub(crate) fn serve_streams(
        child: Child,
        limit: ReceiveLimit,
        inbox: &Arc<Dispatcher>,
        lost: &CloseSignal,
        said: &Arc<StderrLog>,
    ) -> (Transport, Self) {
        let pid = child.id();
        let (stdin, stdout, stderr, group) = child.split();
        let (queue, lines) = StdinSender::new();
        let wire = Transport::Stdio(queue.clone());
        let (ended, (sorted, sorting)) = (CancellationToken::new(), oneshot::channel());
        let (its_inbox, its_lost, its_end) = (inbox.clone(), lost.clone(), ended.clone());
        let process = Self {
            pid,
            group,
            stdin: queue,
            _writer: tokio::spawn(async move {
                run_writer(stdin, lines, its_inbox, its_lost, its_end).await;
                let _ = sorted.send(());
            })
            .into(),
            _stderr: tokio::spawn(read_stderr(stderr, inbox.name.clone(), said.clone())).into(),
            _reader: tokio::spawn(read_stdout(
                stdout,
                limit,
                inbox.clone(),
                wire.clone(),
                lost.clone(),
                said.clone(),
                WriterHandle { ended, done: sorting },
            ))
            .into(),
        };
        (wire, process)
    }

    /// Closes the child's stdin, waits briefly, and kills the rest of its process group.
    pub(crate) async fn close(self) {
        self.stdin.close_input();
        self.group.shut_down(EXIT_TIMEOUT).await;
    }
}

/// Signals the end to the writer, and receives that it has determined the unread requests.
struct WriterHandle {
    ended: CancellationToken,
    done: oneshot::Receiver<()>,
}

/// Reads messages until the child exits; then all pending requests fail.
async fn read_stdout(
    stdout: impl AsyncRead + Unpin,
    limit: ReceiveLimit,
    inbox: Arc<Dispatcher>,
    wire: Transport,
    lost: CloseSignal,
    said: Arc<StderrLog>,
    writer: WriterHandle,
) {
    let mut lines = LineReader::new(stdout, limit.max_bytes);
    let mut rubbish = InvalidLines::default();
    let mut count = 0_u32;
    let why = loop {
        count = count.wrapping_add(1);
        if count.is_multiple_of(LINES_PER_YIELD) {
            // The buffered lines would otherwise be processed before any other task runs.
            tokio::task::yield_now().await;
        }
        match lines.next(&limit).await {
            NextLine::Line(line) if line.is_empty() => {}
            NextLine::Line(line) => match decode_message(line).await {
                Ok(messages) => {
                    messages.into_iter().for_each(|one| inbox.dispatch(one, MessageOrigin::Shared, &wire))
                }
                Err(broken) => rubbish.record(&inbox, broken).await,
            },
            // A single pending call is the one that was being answered.
            NextLine::TooLong if inbox.pending.waiting_count() == 1 => {
                break UpstreamError::TooLarge(limit.max_bytes);
            }
            NextLine::TooLong => {
                let why = format!("line exceeds the limit of {} bytes", limit.max_bytes);
                break UpstreamError::ConnectionLost(why);
            }
            NextLine::TooSlow(why) => break UpstreamError::ConnectionLost(why.to_string()),
            NextLine::End => break UpstreamError::ConnectionLost(exit_message(&said).await),
        }
    };
    writer.ended.cancel();
    // A child that closed its stdout but does not read its stdin keeps the writer busy.
    let _ = tokio::time::timeout(UNREAD_CHECK_TIMEOUT, writer.done).await;
    inbox.pending.close(why.clone());
    lost.set(why);
}

async fn exit_message(said: &StderrLog) -> String {
    // Standard error may lag behind a little.
    tokio::time::sleep(Duration::from_millis(10)).await;
    match said.excerpt() {
        None => "the process exited".to_owned(),
        Some(last) => format!("the process exited; last stderr output: {last}"),
    }
}

async fn read_stderr(stderr: impl AsyncRead + Unpin, name: Arc<str>, said: Arc<StderrLog>) {
    let mut lines = LineReader::new(stderr, MAX_STDERR_LINE_BYTES);
    while let Some(line) = lines.next_truncated().await {
        if !line.is_empty() {
            let line = said.push(&line);
            tracing::debug!(target: "upstream", server = %name, "{line}");
        }
    }
}
