//! What a running call knows of itself.

use crate::{JsonObject, Peer, ReplyBudget};
use octo_model::{CallId, Caller, Frontend, Json, ToolError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Where a call came in, for tools that make calls of their own: those are made as if the same client had made them.
#[derive(Clone)]
pub struct CallOrigin {
    pub frontend: Frontend,
    /// The name of the profile; empty for everything.
    pub profile: String,
    pub peer: Arc<dyn Peer>,
    /// The `traceparent` of inner calls, which leads to this one.
    pub trace: String,
}

/// Call id, caller, deadline, cancellation, the size of the reply, a progress sink and where it came in. Nothing else.
#[derive(Clone)]
pub struct CallContext {
    pub id: CallId,
    pub caller: Arc<Caller>,
    pub deadline: Instant,
    pub cancel: CancellationToken,
    pub reply: ReplyBudget,
    /// Nothing for a tool that runs without a hub.
    pub origin: Option<Arc<CallOrigin>>,
    progress: Option<Arc<Sink>>,
}

struct Sink {
    token: Json,
    peer: Arc<dyn Peer>,
    last: AtomicU64,
}

impl CallContext {
    pub fn new(caller: Arc<Caller>, deadline: Instant, cancel: CancellationToken) -> Self {
        let reply = ReplyBudget::UNLIMITED;
        Self { id: CallId::fresh(), caller, deadline, cancel, reply, origin: None, progress: None }
    }

    /// Sends progress to the client that gave this token.
    #[must_use]
    pub fn with_progress(mut self, token: Json, peer: Arc<dyn Peer>) -> Self {
        self.progress = Some(Arc::new(Sink { token, peer, last: AtomicU64::new(0) }));
        self
    }

    /// Tells how far the work is; steps that do not rise are left out, as the protocol asks.
    pub fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        let Some(sink) = &self.progress else { return };
        if sink.last.fetch_max(done, Ordering::AcqRel) >= done {
            return;
        }
        let mut params =
            JsonObject::new().with("progressToken", sink.token.clone()).with("progress", Json::of(&done));
        if let Some(total) = total {
            params.set("total", Json::of(&total));
        }
        if !message.is_empty() {
            params.set("message", message);
        }
        sink.peer.notify("notifications/progress", params);
    }

    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits for a future, or for the end of the call if that comes first: then the future is dropped.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            () = self.cancel.cancelled() => Err(ToolError::cancelled()),
        }
    }

    /// An error when the call was cancelled, for loops that have no other place to notice.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        Ok(())
    }
}
