//! Queue of lines for a child's stdin.

use super::stdin_line::StdinLine;
use super::unread_requests::UnreadRequests;
use crate::error::{UpstreamError, UpstreamResult};
use crate::session::dispatcher::Dispatcher;
use crate::transport::TransportRequest;
use crate::transport::close_signal::CloseSignal;
use octo_wire::{Id, Message};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Lines that may wait; further senders wait for room.
const QUEUE_CAPACITY: usize = 1024;
/// Small lines are written together up to this size.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// Sender for a child's stdin; outlives neither the process nor the runtime.
#[derive(Clone)]
pub(crate) struct StdinSender {
    lines: mpsc::Sender<StdinLine>,
    runtime: Handle,
}

impl StdinSender {
    pub(super) fn new() -> (Self, mpsc::Receiver<StdinLine>) {
        let (lines, receiver) = mpsc::channel(QUEUE_CAPACITY);
        (Self { lines, runtime: Handle::current() }, receiver)
    }

    pub(crate) async fn exchange(
        &self,
        inbox: &Arc<Dispatcher>,
        request: TransportRequest,
    ) -> UpstreamResult {
        let id = request.id;
        let answer = inbox.pending.response_receiver(id);
        let message = Message::Request { id: Id::number(id), method: request.method, params: request.params };
        self.enqueue(StdinLine::Text(Some(id), message.to_bytes())).await?;
        answer.await.unwrap_or_else(|_| Err(process_ended()))
    }

    pub(crate) async fn send(&self, message: Message) -> UpstreamResult<()> {
        self.enqueue(StdinLine::Text(None, message.to_bytes())).await
    }

    pub(crate) fn post(&self, message: Message) {
        let line = StdinLine::Text(None, message.to_bytes());
        if let Err(mpsc::error::TrySendError::Full(line)) = self.lines.try_send(line) {
            let lines = self.lines.clone();
            self.runtime.spawn(async move { lines.send(line).await });
        }
    }

    /// Closes the child's stdin after the queued lines.
    pub(super) fn close_input(&self) {
        let _ = self.lines.try_send(StdinLine::End);
    }

    async fn enqueue(&self, line: StdinLine) -> UpstreamResult<()> {
        self.lines.send(line).await.map_err(|_| UpstreamError::NotSent("the process exited".to_owned()))
    }
}

fn process_ended() -> UpstreamError {
    UpstreamError::ConnectionLost("the process exited".to_owned())
}

/// Writes lines until there are no more, the child no longer reads, or it has exited. Requests that the child cannot
/// have read then fail as not sent, so they may be sent to its successor.
pub(super) async fn run_writer(
    mut stdin: Sender,
    mut lines: mpsc::Receiver<StdinLine>,
    inbox: Arc<Dispatcher>,
    lost: CloseSignal,
    ended: CancellationToken,
) {
    let mut batch = Vec::new();
    let mut buffer = Vec::new();
    let mut unread = UnreadRequests::default();
    loop {
        tokio::select! {
            biased;
            () = ended.cancelled() => break,
            received = lines.recv_many(&mut batch, 64) => if received == 0 { break },
        }
        match write_batch(&mut stdin, &batch, &mut buffer).await {
            Ok(goes_on) => {
                unread.record_written(&batch);
                batch.clear();
                if !goes_on {
                    break;
                }
            }
            Err(error) => {
                lost.set(UpstreamError::ConnectionLost(format!("cannot write to stdin: {error}")));
                break;
            }
        }
    }
    lines.close();
    while let Ok(line) = lines.try_recv() {
        batch.push(line);
    }
    let unwritten = batch.iter().filter_map(StdinLine::request_id);
    let unread = if ended.is_cancelled() { unread.unread_in(&stdin) } else { Vec::new() };
    for id in unwritten.chain(unread) {
        inbox.pending.complete(id, Err(UpstreamError::NotSent("the process exited".to_owned())));
    }
}

/// Writes small lines together. Returns false after the last line.
async fn write_batch(stdin: &mut Sender, batch: &[StdinLine], buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut goes_on = true;
    for line in batch {
        match line {
            StdinLine::End => goes_on = false,
            StdinLine::Text(_, text) if text.len() > MAX_BATCH_BYTES => {
                stdin.write_all(buffer).await?;
                buffer.clear();
                stdin.write_all(text).await?;
                buffer.push(b'\n');
            }
            StdinLine::Text(_, text) => {
                buffer.extend_from_slice(text);
                buffer.push(b'\n');
            }
        }
    }
    stdin.write_all(buffer).await?;
    buffer.clear();
    stdin.flush().await?;
    Ok(goes_on)
}
