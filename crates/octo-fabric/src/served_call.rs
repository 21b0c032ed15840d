//! A call of a source on this node, for another node.

use crate::call_message::{Answer, CallRequest, MessageBody, Question, bare, kind, outcome_message};
use crate::call_stream::{CallStream, OutgoingMessage, StreamError};
use crate::caller_results::CallerResults;
use crate::fleet_metrics::{count_served, count_served_as};
use crate::remote_call::SILENCE_TIMEOUT;
use crate::remote_peer::{PeerMessage, RemotePeer};
use futures_util::FutureExt;
use octo_model::{JsonObject, Kind, ToolError};
use octo_toolkit::{AskError, CallContext, Source};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// When the other node is told that its call runs, so that it can cancel it. Shorter calls save the message.
const FIRST_ALIVE: Duration = Duration::from_millis(20);
const ALIVE_INTERVAL: Duration = Duration::from_secs(2);
/// How long a call may take to end after its cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Questions that wait for an answer.
#[derive(Default)]
struct Questions {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<JsonObject, AskError>>>,
}

impl Questions {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Runs the call and sends its outcome. The call ends early if the other node is gone.
pub(crate) async fn run(
    source: &Arc<dyn Source>,
    request: CallRequest,
    mut stream: CallStream,
    results: &CallerResults,
    service: &'static str,
    cancel: CancellationToken,
) -> Result<(), StreamError> {
    let client = client_key(stream.remote_prefix(), request.client);
    let (peer, messages) = RemotePeer::new(request.capabilities, client);
    let _running = results.add(request.header.id, peer.messages());
    let cx = CallContext::from_header(request.header, cancel, Arc::new(peer));
    let outcome = {
        let call = AssertUnwindSafe(source.run(request.op, &cx)).catch_unwind();
        let deadline = tokio::time::Instant::from_std(cx.deadline);
        let call = async {
            tokio::select! {
                outcome = call => outcome.unwrap_or_else(|_| Err(ToolError::internal("the source panicked"))),
                () = tokio::time::sleep_until(deadline) => {
                    Err(ToolError::new(Kind::Timeout, "The call took too long."))
                }
                () = cancelled_long_ago(&cx.cancel) => Err(ToolError::cancelled()),
            }
        };
        // Dropping the call cancels what it does.
        converse(call, &mut stream, messages).await.inspect_err(|_| {
            cx.cancel.cancel();
            count_served_as(service, "lost");
        })?
    };
    count_served(service, &outcome);
    let message = outcome_message(outcome).unwrap_or_else(|_| bare(kind::ERROR));
    send_outcome(&mut stream, message).await
}

/// Key of a client among those of all nodes. Nodes number their clients by themselves; zero is no client.
fn client_key(node: &str, client: u64) -> u64 {
    if client == 0 {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    (node, client).hash(&mut hasher);
    hasher.finish().max(1)
}

/// Waits until a call has had time to end by itself after its cancellation.
async fn cancelled_long_ago(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(CANCEL_TIMEOUT).await;
}

async fn send_outcome(stream: &mut CallStream, message: OutgoingMessage) -> Result<(), StreamError> {
    match stream.send_last(message).await {
        Err(StreamError::TooLarge(len)) => {
            let error = ToolError::new(Kind::TooLarge, format!("The reply of {len} bytes is too large."))
                .hint("Request less.");
            let message = error.to_message().unwrap_or_else(|_| bare(kind::ERROR));
            stream.send_last(message).await
        }
        sent => sent,
    }
}

/// Passes messages between the call and its client until the call ends.
async fn converse(
    call: impl Future<Output = Result<JsonObject, ToolError>>,
    stream: &mut CallStream,
    mut messages: mpsc::Receiver<PeerMessage>,
) -> Result<Result<JsonObject, ToolError>, StreamError> {
    let mut call = std::pin::pin!(call);
    let started = Instant::now();
    let mut questions = Questions::default();
    let mut alive = tokio::time::interval_at(tokio::time::Instant::now() + FIRST_ALIVE, ALIVE_INTERVAL);
    loop {
        tokio::select! {
            biased;
            outcome = &mut call => {
                // What it reported before its end comes first.
                while let Ok(message) = messages.try_recv() {
                    send_to_client(stream, message, &mut questions).await?;
                }
                return Ok(outcome);
            }
            Some(message) = messages.recv() => send_to_client(stream, message, &mut questions).await?,
            message = stream.receive() => {
                let message = message?;
                if message.kind == kind::ANSWER
                    && let Ok(Answer { id, outcome }) = Answer::from_message(&message)
                    && let Some(question) = questions.waiting.remove(&id)
                {
                    let _ = question.send(outcome.into());
                }
            }
            _ = alive.tick() => {
                let last = stream.last_received().map_or(started, |last| last.max(started));
                if last.elapsed() > SILENCE_TIMEOUT {
                    return Err(StreamError::Gone);
                }
                stream.send_alive().await?;
            }
        }
    }
}

async fn send_to_client(
    stream: &mut CallStream,
    message: PeerMessage,
    questions: &mut Questions,
) -> Result<(), StreamError> {
    let message = match message {
        PeerMessage::Notification(notification) => notification.to_message(),
        PeerMessage::TaskStarted => Ok(bare(kind::TASK_STARTED)),
        PeerMessage::Question { method, params, answer } => {
            let id = questions.next_id();
            questions.waiting.insert(id, answer);
            Question { id, method, params }.to_message()
        }
    };
    match message {
        Ok(message) => stream.send(message).await,
        Err(_) => Ok(()),
    }
}
