//! One call: within its deadline, cancelled when the caller gives up, retried only where that is safe.

use crate::admission::breaker::CallHealth;
use crate::error::{UpstreamError, timeout_error};
use crate::lifecycle::link::Link;
use crate::lifecycle::link_set::LinkSet;
use crate::lifecycle::link_state::LinkState;
use crate::listing::listing_refresh;
use crate::session::connection::{Connection, OutgoingRequest};
use crate::session::pending_requests::ClientPresence;
use crate::session::upstream_task::{follow_task, is_task};
use octo_model::{ItemKind, JsonObject, Method, Operation, ToolError};
use octo_toolkit::{CallContext, Json, Peer};
use octo_wire::code;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval of messages to the client while the server starts.
const START_REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// A call that the caller's deadline ended earlier than this does not count as a failure of the server.
const MIN_CONCLUSIVE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest Retry-After that the call waits for before its retry.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(10);

/// A request on behalf of a client.
pub(crate) struct CallRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: JsonObject,
    pub(crate) peer: &'a Arc<dyn Peer>,
}

impl<'a> CallRequest<'a> {
    /// The operation with the server's own name of the item.
    pub(crate) fn new(op: Operation, peer: &'a Arc<dyn Peer>) -> Self {
        let Operation { method, name, mut params } = op;
        match method {
            Method::CallTool | Method::GetPrompt => {
                params.set("name", Json::text(&name));
            }
            Method::ReadResource | Method::Subscribe | Method::Unsubscribe | Method::GetSkill => {
                params.set("uri", Json::text(&name));
            }
            Method::Complete => {}
        }
        Self { method: method.as_str(), params, peer }
    }

    /// Whether it is a tool that can only be called as a task.
    async fn requires_task(&self, link: &Link, connection: &Connection) -> bool {
        if self.method != Method::CallTool.as_str() || !connection.offers_legacy_tasks() {
            return false;
        }
        if connection.task_tools.load().is_none() {
            // Boxed, because every call would carry its state otherwise.
            let _ = Box::pin(listing_refresh::refresh(link, connection, &[ItemKind::Tool])).await;
        }
        let tools = connection.task_tools.load();
        tools.as_ref().zip(self.params.text("name")).is_some_and(|(tools, name)| tools.contains(&name))
    }

    /// Whether the method is idempotent.
    fn is_safe_to_repeat(&self) -> bool {
        matches!(self.method, "prompts/get" | "resources/read" | "completion/complete" | "skills/get")
    }
}

/// Runs a call until it is answered, cancelled or out of time. Dropping the future cancels it as well.
pub(crate) async fn run(
    links: &LinkSet,
    job: CallRequest<'_>,
    cx: &CallContext,
) -> Result<JsonObject, ToolError> {
    let begun = Instant::now();
    let deadline = Instant::from_std(cx.deadline).min(begun + links.server.spec.call_timeout);
    cx.run(run_in_slot(links, &job, cx, deadline)).await?
}

/// Waits for a slot, then calls unless the circuit breaker is open.
async fn run_in_slot(
    links: &LinkSet,
    job: &CallRequest<'_>,
    cx: &CallContext,
    deadline: Instant,
) -> Result<JsonObject, ToolError> {
    let name = &links.server.name;
    let _turn = links
        .server
        .queue
        .acquire(&cx.caller, deadline)
        .await
        .map_err(|wait| overloaded_error(name, wait))?;
    let (link, _busy) = links.link_for_call(&cx.caller, job.peer.as_ref())?;
    let pass = link.breaker.admit(Instant::now()).map_err(|wait| {
        ToolError::unavailable(format!(
            "{name} failed several times in a row; calls are refused for a while."
        ))
        .hint("Use another tool, or try again later.")
        .retry_after(wait)
    })?;
    let begun = Instant::now();
    let call = report_start(&link, cx, send_with_retry(&link, job, cx, deadline));
    let Ok(answer) = tokio::time::timeout_at(deadline, call).await else {
        link.health_check.notify_one();
        let took = begun.elapsed();
        // Most of the configured timeout; the rest may have passed in the queue.
        let is_fair = took >= MIN_CONCLUSIVE_TIMEOUT.min(link.server.spec.call_timeout) * 9 / 10;
        if pass.record(if is_fair { CallHealth::Failing } else { CallHealth::Inconclusive }) {
            link.drop_connection("several calls in a row timed out");
        }
        return Err(timeout_error(name, took));
    };
    let (verdict, answer) = match answer {
        Ok(answer) => (CallHealth::Healthy, Ok(answer)),
        Err((verdict, error)) => (verdict, Err(error)),
    };
    pass.record(verdict);
    answer
}

/// Makes a call, and tells the client while it waits for the server to start.
async fn report_start<T>(link: &Link, cx: &CallContext, call: impl Future<Output = T>) -> T {
    if !link.is_starting() || cx.progress_token.is_none() {
        return call.await;
    }
    // Boxed, because every call would carry its state otherwise.
    let mut call = Box::pin(call);
    for step in 1.. {
        cx.report_waiting(step, &format!("Starting {}", link.server.name));
        tokio::select! {
            answer = &mut call => return answer,
            () = tokio::time::sleep(START_REPORT_INTERVAL) => {}
        }
        if link.state().is_up() {
            break;
        }
    }
    call.await
}

fn overloaded_error(name: &str, wait: Duration) -> ToolError {
    ToolError::unavailable(format!("{name} is at its rate or concurrency limit."))
        .hint("Retry after the given time, and call less often.")
        .retry_after(wait)
}

/// An error, and what it implies about the server.
type CallFailure = (CallHealth, ToolError);

async fn send_with_retry(
    link: &Link,
    job: &CallRequest<'_>,
    cx: &CallContext,
    deadline: Instant,
) -> Result<JsonObject, CallFailure> {
    let mut connection = wait_for_connection(link, deadline).await?;
    // Boxed, because every call would carry their state otherwise.
    let (answer, _presence) = match send_once(link, &connection, job).await {
        Ok(answered) => answered,
        Err(why) => {
            let again = Box::pin(send_again(link, job, &connection, &why, deadline));
            let answered;
            (connection, answered) = again.await?;
            answered
        }
    };
    if job.method != Method::CallTool.as_str() || !is_task(&answer, connection.era()) {
        return Ok(answer);
    }
    let task = Box::pin(follow_task(link, &connection, answer, cx, deadline));
    task.await.map_err(|why| call_failure(link, &why))
}

async fn send_again(
    link: &Link,
    job: &CallRequest<'_>,
    connection: &Connection,
    why: &UpstreamError,
    deadline: Instant,
) -> Result<(Arc<Connection>, Answered), CallFailure> {
    if let UpstreamError::Status { code: 429 | 503, retry_after: Some(pause), .. } = why {
        link.server.queue.pause_for(*pause);
    }
    if !prepare_retry(link, connection, job, why).await {
        return Err(call_failure(link, why));
    }
    let connection = wait_for_connection(link, deadline).await?;
    let answer = send_once(link, &connection, job).await.map_err(|why| call_failure(link, &why))?;
    Ok((connection, answer))
}

fn call_failure(link: &Link, why: &UpstreamError) -> CallFailure {
    // Disconnecting a server ends its calls; that implies nothing about the server.
    let health = if link.state().is_suspended() { CallHealth::Inconclusive } else { CallHealth::of(why) };
    (health, why.to_tool_error(&link.server.name))
}

async fn wait_for_connection(link: &Link, deadline: Instant) -> Result<Arc<Connection>, CallFailure> {
    link.connection(deadline).await.map_err(|error| {
        let is_refused = matches!(
            &*link.state(),
            LinkState::Refused(_) | LinkState::Suspended { .. } | LinkState::Stopped
        );
        (if is_refused { CallHealth::Inconclusive } else { CallHealth::Unreachable }, error)
    })
}

/// The answer of a server. If it may be a task, its client stays represented at the connection.
type Answered = (JsonObject, Option<ClientPresence>);

async fn send_once(
    link: &Link,
    connection: &Connection,
    job: &CallRequest<'_>,
) -> Result<Answered, UpstreamError> {
    connection.raise_log_level(&job.params).await;
    let mut params = job.params.clone();
    let mut presence = None;
    if job.requires_task(link, connection).await {
        params.set("task", JsonObject::new());
        presence = Some(connection.dispatcher.pending.represent(job.peer));
    }
    let ask = OutgoingRequest { method: job.method, params, peer: Some(job.peer), acknowledged: None };
    Ok((connection.request(ask).await?, presence))
}

/// Whether the server cannot have acted on the request. Prepares the retry.
async fn prepare_retry(
    link: &Link,
    connection: &Connection,
    job: &CallRequest<'_>,
    why: &UpstreamError,
) -> bool {
    match why {
        UpstreamError::NotSent(_) | UpstreamError::SessionExpired => {
            connection.closed.set(why.clone());
            true
        }
        UpstreamError::Unauthorized(401) => {
            connection.closed.set(why.clone());
            false
        }
        UpstreamError::ConnectionReset(_) => job.is_safe_to_repeat(),
        // Rate limited, with a short Retry-After.
        UpstreamError::Status { code: 429, retry_after: Some(pause), .. } if *pause <= MAX_RETRY_PAUSE => {
            tokio::time::sleep(link.server.queue.pause_remaining()).await;
            true
        }
        // The schema has changed, and with it the required headers.
        UpstreamError::Rpc(error) if error.code == code::HEADER_MISMATCH => {
            listing_refresh::refresh(link, connection, &[ItemKind::Tool]).await.is_ok()
        }
        _ => false,
    }
}
