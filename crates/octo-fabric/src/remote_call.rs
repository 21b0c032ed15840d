//! A call of a source on another node, on the side of the caller.

use crate::call_message::{Answer, AnswerOutcome, MessageBody, Notification, Question, call_message, kind};
use crate::call_stream::{CallMessage, CallStream, OutgoingMessage, StreamError};
use crate::caller_results::STORE_RESULT;
use crate::node::Node;
use crate::{BusError, SourceAddress, Subject};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use octo_admission::ReceiveBudget;
use octo_model::{BoxFuture, JsonObject, Operation, ToolError};
use octo_ports::ResultStore;
use octo_toolkit::CallContext;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the other node may be silent. It reports every few seconds that it runs the call.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait before a call to a source that nobody serves is made again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Requests to the client at the same time; the others are refused.
const MAX_QUESTIONS: usize = 16;

type Questions<'a> = FuturesUnordered<BoxFuture<'a, Answer>>;

/// Why a call has no result.
pub(crate) enum CallError {
    /// The server process is gone; nobody has received the call.
    NoServer,
    Failed(ToolError),
}

impl From<ToolError> for CallError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// Where the calls of a remote source go.
pub(crate) struct CallTarget {
    pub(crate) node: Arc<Node>,
    pub(crate) address: SourceAddress,
    pub(crate) budget: ReceiveBudget,
    /// Where the source may store results for the callers.
    pub(crate) results: Arc<dyn ResultStore>,
}

/// Runs a call on one server process.
pub(crate) async fn run(
    target: &CallTarget,
    server: &str,
    op: Operation,
    cx: &CallContext,
) -> Result<JsonObject, CallError> {
    let address = &target.address;
    cx.check()?;
    let opened = open_stream(target, &address.requests_to(server), call_message(op, cx)?).await?;
    let mut stream = match opened {
        // Of a large call, the beginning was not received.
        Err(StreamError::NoResponders) => return Err(CallError::NoServer),
        opened => opened.map_err(|error| stream_error(address, &error))?,
    };
    let mut questions = Questions::new();
    loop {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled().into()),
            Some(answer) = questions.next() => {
                let message = answer.to_message()?;
                stream.send(message).await.map_err(|error| lost_call(address, &error))?;
            }
            message = receive(&mut stream) => {
                let message = match message {
                    Err(StreamError::NoResponders) => return Err(CallError::NoServer),
                    message => message.map_err(|error| running_error(address, &error))?,
                };
                if let Some(outcome) = handle(&message, target, cx, &mut questions)? {
                    stream.complete();
                    return Ok(outcome?);
                }
            }
        }
    }
}

/// Opens a stream with a request.
pub(crate) async fn request_stream(
    target: &CallTarget,
    to: &Subject,
    request: OutgoingMessage,
) -> Result<CallStream, ToolError> {
    let opened = open_stream(target, to, request).await?;
    opened.map_err(|error| stream_error(&target.address, &error))
}

async fn open_stream(
    CallTarget { node, budget, .. }: &CallTarget,
    to: &Subject,
    request: OutgoingMessage,
) -> Result<Result<CallStream, StreamError>, ToolError> {
    if !node.is_connected() {
        return Err(not_connected());
    }
    let open = async {
        let mut stream = CallStream::new(node, budget, None);
        stream.open(to, request).await?;
        Ok(stream)
    };
    Ok(open.await)
}

/// Waits for a message, as long as the other node is alive.
pub(crate) async fn receive(stream: &mut CallStream) -> Result<CallMessage, StreamError> {
    let started = Instant::now();
    loop {
        let silent_since = stream.last_received().map_or(started, |last| last.max(started));
        let silence_end = tokio::time::Instant::from_std(silent_since + SILENCE_TIMEOUT);
        match tokio::time::timeout_at(silence_end, stream.receive()).await {
            Ok(message) => return message,
            Err(_) if stream.last_received().is_some_and(|last| last > silent_since) => {}
            Err(_) => return Err(StreamError::Lost),
        }
    }
}

/// Returns the outcome, if the message is the last one.
fn handle<'a>(
    message: &CallMessage,
    target: &'a CallTarget,
    cx: &'a CallContext,
    questions: &mut Questions<'a>,
) -> Result<Option<Result<JsonObject, ToolError>>, ToolError> {
    match message.kind {
        kind::RESULT => {
            return Ok(Some(JsonObject::parse(message.body.clone()).map_err(ToolError::internal)));
        }
        kind::ERROR => return Ok(Some(Err(ToolError::from_message(message)?))),
        kind::NOTIFICATION => {
            let Notification { method, params } = Notification::from_message(message)?;
            cx.peer.notify(&method, params);
        }
        kind::TASK_STARTED => cx.peer.task_started(),
        kind::QUESTION => {
            let Question { id, method, params } = Question::from_message(message)?;
            let is_allowed = questions.len() < MAX_QUESTIONS;
            questions.push(Box::pin(async move {
                let outcome = match method.as_str() {
                    _ if !is_allowed => AnswerOutcome::Unable,
                    STORE_RESULT => store_result(target, cx, &params).await,
                    _ => cx.peer.ask(&method, params).await.into(),
                };
                Answer { id, outcome }
            }));
        }
        // Of a newer node, and not necessary for the outcome.
        _ => {}
    }
    Ok(None)
}

/// Stores a result of the running call for its caller.
async fn store_result(target: &CallTarget, cx: &CallContext, params: &JsonObject) -> AnswerOutcome {
    let Some(result) = params.get("result") else { return AnswerOutcome::Unable };
    match target.results.store(&cx.caller, cx.id, result.clone()).await {
        Ok(handle) => AnswerOutcome::Result(JsonObject::new().with("handle", handle.as_str())),
        Err(error) => {
            tracing::warn!(source = %target.address, %error, "a result of another node was not stored");
            AnswerOutcome::Unable
        }
    }
}

pub(crate) fn stream_error(address: &SourceAddress, error: &StreamError) -> ToolError {
    match error {
        StreamError::NoResponders => nobody_serves(address),
        StreamError::Bus(BusError::Disconnected | BusError::Busy) => not_connected(),
        StreamError::Bus(BusError::TooLarge(_)) | StreamError::TooLarge(_) => {
            ToolError::new(octo_model::Kind::TooLarge, "The call is too large for another node.")
                .hint("Use smaller arguments.")
                .detail(error)
        }
        StreamError::Bus(BusError::Invalid(_) | BusError::Refused(_)) => ToolError::internal(error),
        StreamError::Version(version) => ToolError::unavailable(format!(
            "The worker that serves `{address}` has a version of Octoprox that this hub cannot talk to."
        ))
        .hint("Update the older of the two.")
        .detail(format!("version {version} of the protocol")),
        StreamError::Gone | StreamError::Lost | StreamError::Malformed(_) => lost_call(address, error),
    }
}

/// The same after the request was sent: what the bus refuses now was not the call.
fn running_error(address: &SourceAddress, error: &StreamError) -> ToolError {
    match error {
        StreamError::Bus(_) => lost_call(address, error),
        error => stream_error(address, error),
    }
}

pub(crate) fn nobody_serves(address: &SourceAddress) -> ToolError {
    ToolError::unavailable(format!("No worker serves `{address}` at the moment."))
        .hint("Start its worker, or try again in a moment.")
        .retry_after(RETRY_AFTER)
}

fn not_connected() -> ToolError {
    ToolError::unavailable("This hub is not connected to the other nodes of the fleet at the moment.")
        .hint("Try again in a moment.")
        .retry_after(RETRY_AFTER)
}

fn lost_call(address: &SourceAddress, error: &StreamError) -> ToolError {
    ToolError::unavailable(format!(
        "The connection to `{address}` was lost during the call; it is unknown whether it took effect."
    ))
    .hint("Check its effect before you call again.")
    .with_unknown_outcome()
    .detail(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_sent_may_have_taken_effect() {
        let address = SourceAddress::new("workspace/default", "shell").unwrap();
        for error in [BusError::Disconnected, BusError::Busy, BusError::Refused("x".to_owned())] {
            let error = StreamError::Bus(error);
            let running = running_error(&address, &error);
            assert!(running.message.contains("unknown whether") && running.is_outcome_unknown, "{error}");
            assert_eq!(running.retry_delay(), None, "{error}");
            let not_sent = stream_error(&address, &error);
            assert!(!not_sent.message.contains("unknown whether") && !not_sent.is_outcome_unknown, "{error}");
        }
    }
}
