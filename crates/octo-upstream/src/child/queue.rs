//! What is to be written to a child, in order.

use super::unread::Unread;
use crate::fail::{Fail, Outcome};
use crate::inbox::Inbox;
use crate::lost::Lost;
use crate::wire::Request;
use bytes::Bytes;
use octo_wire::{Id, Message};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// So many lines may wait; who comes later waits for room.
const ROOM: usize = 1024;
/// Small lines are written together up to this size.
const TOGETHER: usize = 64 << 10;

#[derive(Debug)]
pub(super) enum Line {
    /// A message, and the request that fails when it cannot be written.
    Text(Option<u64>, Bytes),
    /// Nothing follows: the child's input is closed.
    End,
}

/// The sending end; it outlives neither the process nor the runtime.
#[derive(Clone)]
pub(crate) struct Queue {
    lines: mpsc::Sender<Line>,
    runtime: Handle,
}

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Line>) {
        let (lines, receiver) = mpsc::channel(ROOM);
        (Self { lines, runtime: Handle::current() }, receiver)
    }

    pub(crate) async fn exchange(&self, inbox: &Arc<Inbox>, request: Request) -> Outcome {
        let id = request.id;
        let answer = inbox.calls.expect(id);
        let message = Message::Request { id: Id::number(id), method: request.method, params: request.params };
        self.put(Line::Text(Some(id), message.to_bytes())).await?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn send(&self, message: Message) -> Outcome<()> {
        self.put(Line::Text(None, message.to_bytes())).await
    }

    pub(crate) fn post(&self, message: Message) {
        let line = Line::Text(None, message.to_bytes());
        if let Err(mpsc::error::TrySendError::Full(line)) = self.lines.try_send(line) {
            let lines = self.lines.clone();
            self.runtime.spawn(async move { lines.send(line).await });
        }
    }

    /// Closes the child's input after what is on its way.
    pub(super) fn end(&self) {
        let _ = self.lines.try_send(Line::End);
    }

    async fn put(&self, line: Line) -> Outcome<()> {
        self.lines.send(line).await.map_err(|_| Fail::NotSent("the program has ended".to_owned()))
    }
}

fn gone() -> Fail {
    Fail::Lost("the program has ended".to_owned())
}

/// Writes lines until there are no more, the child no longer reads, or it has ended. Requests that the child
/// cannot have read then fail as not sent, so that they may be sent to its successor.
pub(super) async fn write(
    mut stdin: Sender,
    mut lines: mpsc::Receiver<Line>,
    inbox: Arc<Inbox>,
    lost: Lost,
    ended: CancellationToken,
) {
    let mut batch = Vec::new();
    let mut buffer = Vec::new();
    let mut unread = Unread::default();
    loop {
        tokio::select! {
            biased;
            () = ended.cancelled() => break,
            received = lines.recv_many(&mut batch, 64) => if received == 0 { break },
        }
        match write_batch(&mut stdin, &batch, &mut buffer).await {
            Ok(goes_on) => {
                unread.wrote(&batch);
                batch.clear();
                if !goes_on {
                    break;
                }
            }
            Err(error) => {
                lost.set(Fail::Lost(format!("the program no longer reads: {error}")));
                break;
            }
        }
    }
    lines.close();
    while let Ok(line) = lines.try_recv() {
        batch.push(line);
    }
    let unwritten = batch.iter().filter_map(Line::request);
    let unread = if ended.is_cancelled() { unread.left_in(&stdin) } else { Vec::new() };
    for id in unwritten.chain(unread) {
        inbox.calls.settle(id, Err(Fail::NotSent("the program has ended".to_owned())));
    }
}

impl Line {
    fn request(&self) -> Option<u64> {
        match self {
            Line::Text(id, _) => *id,
            Line::End => None,
        }
    }
}

/// Small lines go out together. False when the last line has been written.
async fn write_batch(stdin: &mut Sender, batch: &[Line], buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut goes_on = true;
    for line in batch {
        match line {
            Line::End => goes_on = false,
            Line::Text(_, text) if text.len() > TOGETHER => {
                stdin.write_all(buffer).await?;
                buffer.clear();
                stdin.write_all(text).await?;
                buffer.push(b'\n');
            }
            Line::Text(_, text) => {
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
