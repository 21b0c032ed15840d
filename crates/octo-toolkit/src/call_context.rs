//! Context of a running call.

use crate::{JsonObject, Peer, ReplyBudget};
use octo_model::{CallId, Caller, Frontend, Json, ToolError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Origin of a call, for tools that make nested calls: those are made on behalf of the same client.
#[derive(Clone)]
pub struct CallOrigin {
    pub frontend: Frontend,
    /// Name of the profile; empty for everything.
    pub profile: String,
    pub peer: Arc<dyn Peer>,
    /// The `traceparent` of nested calls, which links to this one.
    pub trace: String,
}

/// Call id, caller, deadline, cancellation, reply budget, progress sink and origin. Nothing else.
#[derive(Clone)]
pub struct CallContext {
    pub id: CallId,
    pub caller: Arc<Caller>,
    pub deadline: Instant,
    pub cancel: CancellationToken,
    pub reply: ReplyBudget,
    /// `None` for a tool that runs without a hub.
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

    /// Sends progress to the client with this token.
    #[must_use]
    pub fn with_progress(mut self, token: Json, peer: Arc<dyn Peer>) -> Self {
        self.progress = Some(Arc::new(Sink { token, peer, last: AtomicU64::new(0) }));
        self
    }

    /// Reports progress. Values that do not increase are skipped, as the protocol requires.
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

    /// Waits for a future or the end of the call, whichever comes first; in the latter case drops the future.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            () = self.cancel.cancelled() => Err(ToolError::cancelled()),
        }
    }

    /// Fails if the call was cancelled, for loops without another check.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        Ok(())
    }
}
