//! One call: within its deadline, cancelled when nobody waits, repeated only where that is safe.

use crate::connection::{Ask, Connection};
use crate::fail::{Fail, timeout};
use crate::kind::Kind;
use crate::listing;
use crate::state::Inner;
use octo_model::{Kind as ErrorKind, Members, Method, Op, ToolError};
use octo_toolkit::{Cx, Json, Peer};
use octo_wire::code;
use std::sync::Arc;
use tokio::time::Instant;

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
            Method::CallTool | Method::GetPrompt => drop(params.set("name", Json::text(&name))),
            Method::ReadResource => drop(params.set("uri", Json::text(&name))),
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
pub(crate) async fn run(inner: &Inner, job: Job<'_>, cx: &Cx) -> Result<Members, ToolError> {
    let begun = Instant::now();
    let deadline = Instant::from_std(cx.deadline).min(begun + inner.spec.call_timeout);
    tokio::select! {
        biased;
        answer = tokio::time::timeout_at(deadline, attempts(inner, &job, deadline)) => {
            answer.unwrap_or_else(|_| Err(timeout(&inner.name, begun.elapsed())))
        }
        () = cx.cancel.cancelled() => Err(ToolError::new(ErrorKind::Cancelled, "The call was cancelled.")),
    }
}

async fn attempts(inner: &Inner, job: &Job<'_>, deadline: Instant) -> Result<Members, ToolError> {
    let connection = inner.connection(deadline).await?;
    let why = match attempt(&connection, job).await {
        Ok(answer) => return Ok(answer),
        Err(why) => why,
    };
    if !prepare_another(inner, &connection, job, &why).await {
        return Err(why.to_error(&inner.name));
    }
    let connection = inner.connection(deadline).await?;
    attempt(&connection, job).await.map_err(|why| why.to_error(&inner.name))
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
        // The schema has changed, and with it the headers that the server wants.
        Fail::Rpc(error) if error.code == code::HEADER_MISMATCH => {
            listing::refresh(inner, connection, &[Kind::Tools]).await.is_ok()
        }
        _ => false,
    }
}
