//! One call: within its deadline, cancelled when nobody waits, repeated only where that is safe.

use crate::breaker::Verdict;
use crate::connection::{Ask, Connection};
use crate::fail::{Fail, timeout};
use crate::kind::Kind;
use crate::listing;
use crate::pool::Pool;
use crate::state::{Inner, Status};
use octo_model::{Members, Method, Op, ToolError};
use octo_toolkit::{Cx, Json, Peer};
use octo_wire::code;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A call that took no longer than this says nothing about the server when its caller's time was up.
const FAIR: Duration = Duration::from_secs(30);
/// A server that wants a pause of no more than this is asked once more after it.
const SHORT_PAUSE: Duration = Duration::from_secs(10);

/// What is asked for whom.
pub(crate) struct Job<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Members,
    pub(crate) peer: &'a Arc<dyn Peer>,
}

impl<'a> Job<'a> {
    /// The operation with the server's own name of the item in its place.
    pub(crate) fn new(op: Op, peer: &'a Arc<dyn Peer>) -> Self {
        let Op { method, name, mut params } = op;
        match method {
            Method::CallTool | Method::GetPrompt => {
                params.set("name", Json::text(&name));
            }
            Method::ReadResource | Method::Subscribe | Method::Unsubscribe => {
                params.set("uri", Json::text(&name));
            }
            Method::Complete => {}
        }
        Self { method: method.as_str(), params, peer }
    }

    /// Doing it twice is the same as doing it once.
    fn only_reads(&self) -> bool {
        matches!(self.method, "prompts/get" | "resources/read" | "completion/complete")
    }
}

/// Runs a job until it is answered, cancelled or out of time. Dropping the future cancels it as well.
pub(crate) async fn run(pool: &Pool, job: Job<'_>, cx: &Cx) -> Result<Members, ToolError> {
    let begun = Instant::now();
    let deadline = Instant::from_std(cx.deadline).min(begun + pool.first.spec.call_timeout);
    cx.run(in_turn(pool, &job, cx, deadline)).await?
}

/// Waits for the caller's turn, and then calls unless the server is known to be ill.
async fn in_turn(pool: &Pool, job: &Job<'_>, cx: &Cx, deadline: Instant) -> Result<Members, ToolError> {
    let name = &pool.first.name;
    let _turn = pool.first.turns.take(&cx.caller, deadline).await.map_err(|wait| busy(name, wait))?;
    let (inner, _busy) = pool.pick(&cx.caller, job.peer.as_ref())?;
    let pass = inner.breaker.admit(Instant::now()).map_err(|wait| {
        ToolError::unavailable(format!(
            "{name} has failed several times in a row and is left alone for a while."
        ))
        .hint("Use another tool, or try again later.")
        .retry_after(wait)
    })?;
    let begun = Instant::now();
    let Ok(answer) = tokio::time::timeout_at(deadline, attempts(&inner, job, deadline)).await else {
        inner.doubt.notify_one();
        let took = begun.elapsed();
        // Most of the time that the settings give it; the rest may have gone in the queue.
        let is_fair = took >= FAIR.min(inner.spec.call_timeout) * 9 / 10;
        if pass.judge(if is_fair { Verdict::Ill } else { Verdict::Unknown }) {
            inner.give_up("it has not answered several calls in a row");
        }
        return Err(timeout(name, took));
    };
    let (verdict, answer) = match answer {
        Ok(answer) => (Verdict::Well, Ok(answer)),
        Err((verdict, error)) => (verdict, Err(error)),
    };
    pass.judge(verdict);
    answer
}

fn busy(name: &str, wait: Duration) -> ToolError {
    ToolError::unavailable(format!("{name} takes no more calls at the moment."))
        .hint("Wait as long as it says, and call less often.")
        .retry_after(wait)
}

/// An error, and what it says about the server.
type Failed = (Verdict, ToolError);

async fn attempts(inner: &Inner, job: &Job<'_>, deadline: Instant) -> Result<Members, Failed> {
    let connection = connected(inner, deadline).await?;
    let why = match attempt(&connection, job).await {
        Ok(answer) => return Ok(answer),
        Err(why) => why,
    };
    // In a box, because every call would carry its states otherwise.
    Box::pin(second_attempt(inner, job, &connection, &why, deadline)).await
}

async fn second_attempt(
    inner: &Inner,
    job: &Job<'_>,
    connection: &Connection,
    why: &Fail,
    deadline: Instant,
) -> Result<Members, Failed> {
    if let Fail::Status { code: 429 | 503, retry_after: Some(pause), .. } = why {
        inner.turns.hold(*pause);
    }
    if !prepare_another(inner, connection, job, why).await {
        return Err(failed(inner, why));
    }
    let connection = connected(inner, deadline).await?;
    attempt(&connection, job).await.map_err(|why| failed(inner, &why))
}

fn failed(inner: &Inner, why: &Fail) -> Failed {
    (Verdict::of(why), why.to_error(&inner.name))
}

async fn connected(inner: &Inner, deadline: Instant) -> Result<Arc<Connection>, Failed> {
    inner.connection(deadline).await.map_err(|error| {
        let is_refused = matches!(&*inner.status.borrow(), Status::Refused(_) | Status::Stopped);
        (if is_refused { Verdict::Unknown } else { Verdict::Away }, error)
    })
}

async fn attempt(connection: &Connection, job: &Job<'_>) -> Result<Members, Fail> {
    connection.speak_up(&job.params).await;
    let ask = Ask { method: job.method, params: job.params.clone(), peer: Some(job.peer), opened: None };
    connection.ask(ask).await
}

/// Whether the server cannot have acted on the request, and what has to be done before it is sent again.
async fn prepare_another(inner: &Inner, connection: &Connection, job: &Job<'_>, why: &Fail) -> bool {
    match why {
        Fail::NotSent(_) | Fail::Expired => {
            connection.lost.set(why.clone());
            true
        }
        Fail::Login(401) => {
            connection.lost.set(why.clone());
            false
        }
        Fail::Reset(_) => job.only_reads(),
        // It was turned away at the door, and will be let in soon.
        Fail::Status { code: 429, retry_after: Some(pause), .. } if *pause <= SHORT_PAUSE => {
            tokio::time::sleep(inner.turns.held()).await;
            true
        }
        // The schema has changed, and with it the headers that the server wants.
        Fail::Rpc(error) if error.code == code::HEADER_MISMATCH => {
            listing::refresh(inner, connection, &[Kind::Tools]).await.is_ok()
        }
        _ => false,
    }
}
