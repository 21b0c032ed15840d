//! Context of a running call.

use crate::{CallHeader, JsonObject, NestedCalls, NestedOutcome, NoPeer, Peer};
use octo_model::{Caller, Json, Operation, Remedy, ToolError};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The call's header, its cancellation, the way to its client and the way back into the hub. A clone belongs to the
/// same call.
#[derive(Clone)]
pub struct CallContext {
    pub cancel: CancellationToken,
    pub peer: Arc<dyn Peer>,
    call: Arc<Call>,
    /// Weak, because the hub holds the tools that keep contexts. `None` for a call without a hub.
    nested: Option<Weak<dyn NestedCalls>>,
}

struct Call {
    header: CallHeader,
    /// The progress that was reported last.
    progress: AtomicU64,
}

impl Deref for CallContext {
    type Target = CallHeader;

    fn deref(&self) -> &CallHeader {
        self.header()
    }
}

impl CallContext {
    /// A call without a hub and without a client.
    pub fn new(caller: Arc<Caller>, deadline: Instant, cancel: CancellationToken) -> Self {
        Self::from_header(CallHeader::new(caller, deadline), cancel, Arc::new(NoPeer))
    }

    pub fn from_header(header: CallHeader, cancel: CancellationToken, peer: Arc<dyn Peer>) -> Self {
        let call = Arc::new(Call { header, progress: AtomicU64::new(0) });
        Self { cancel, peer, call, nested: None }
    }

    /// What another process needs to know of the call, with its own cancellation and peer.
    pub fn header(&self) -> &CallHeader {
        &self.call.header
    }

    /// The same call, run by this hub.
    #[must_use]
    pub fn with_nested_calls(self, hub: Weak<dyn NestedCalls>) -> Self {
        Self { nested: Some(hub), ..self }
    }

    /// The same call with another way to its client.
    #[must_use]
    pub fn with_peer(&self, peer: Arc<dyn Peer>) -> Self {
        Self { peer, ..self.clone() }
    }

    /// The same call with its own cancellation, for work that may outlive it.
    #[must_use]
    pub fn with_cancel(&self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self.clone() }
    }

    /// Returns the hub that runs the call.
    pub fn nested_calls(&self) -> Result<Arc<dyn NestedCalls>, ToolError> {
        let hub = self.nested.as_ref().ok_or_else(|| {
            ToolError::unavailable("This tool requires a hub.")
                .hint("Call it through MCP, REST or the command line.")
        })?;
        hub.upgrade()
            .ok_or_else(|| ToolError::unavailable("The hub is not available.").hint("Try again in a moment."))
    }

    /// Makes a nested call on behalf of the same caller, cancelled with this one.
    pub async fn call(&self, op: Operation, timeout: Option<Duration>) -> Result<NestedOutcome, ToolError> {
        Ok(self.nested_calls()?.call(self, op, timeout).await)
    }

    /// Reports progress, if the client requests it. Values that do not increase are skipped, as the protocol
    /// requires.
    pub fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        let Some(token) = &self.progress_token else { return };
        if self.call.progress.fetch_max(done, Ordering::AcqRel) >= done {
            return;
        }
        let mut params =
            JsonObject::new().with("progressToken", token.clone()).with("progress", Json::of(&done));
        if let Some(total) = total {
            params.set("total", Json::of(&total));
        }
        if !message.is_empty() {
            params.set("message", message);
        }
        self.peer.notify("notifications/progress", params);
    }

    /// Reports that the call has not begun yet, if the client requests progress. The values are below those of the call
    /// itself, which may only increase.
    pub fn report_waiting(&self, step: u32, message: &str) {
        let Some(token) = &self.progress_token else { return };
        let params = JsonObject::new()
            .with("progressToken", token.clone())
            .with("progress", Json::of(&(f64::from(step) / 1_000_000.0)))
            .with("message", message);
        self.peer.notify("notifications/progress", params);
    }

    /// Appends the sentence about a remedy to a text of the reply. Errors carry theirs as data.
    pub fn append_remedy(&self, text: &str, remedy: &Remedy) -> String {
        match self.nested_calls() {
            Ok(hub) => format!("{text} {}", hub.remedy_text(remedy)),
            Err(_) => text.to_owned(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AskError, BoxFuture};
    use octo_model::Kind;
    use std::sync::Mutex;

    #[derive(Default)]
    struct RecordingPeer(Mutex<Vec<String>>);

    impl Peer for RecordingPeer {
        fn capabilities(&self) -> &JsonObject {
            NoPeer.capabilities()
        }

        fn notify(&self, _: &str, params: JsonObject) {
            self.0.lock().unwrap().push(params.to_json().as_str().to_owned());
        }

        fn ask<'a>(&'a self, _: &'a str, _: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
            Box::pin(async { Err(AskError::Unable) })
        }
    }

    fn header() -> CallHeader {
        CallHeader::new(Arc::new(Caller::local()), Instant::now() + Duration::from_secs(10))
    }

    #[test]
    fn another_peer_hears_the_progress_of_the_same_call() {
        let [first, second] = [(); 2].map(|()| Arc::new(RecordingPeer::default()));
        let header = CallHeader { progress_token: Some(Json::text("t")), ..header() };
        let peer = Arc::clone(&first) as Arc<dyn Peer>;
        let cx = CallContext::from_header(header, CancellationToken::new(), peer);
        let derived = cx.with_peer(Arc::clone(&second) as Arc<dyn Peer>);
        cx.progress(2, None, "");
        derived.progress(2, None, "not more than before");
        derived.progress(3, Some(4), "");
        assert_eq!(*first.0.lock().unwrap(), [r#"{"progressToken":"t","progress":2}"#]);
        assert_eq!(*second.0.lock().unwrap(), [r#"{"progressToken":"t","progress":3,"total":4}"#]);
    }

    #[test]
    fn own_cancellation_leaves_the_call_running() {
        let cx = CallContext::from_header(header(), CancellationToken::new(), Arc::new(NoPeer));
        let detached = cx.with_cancel(CancellationToken::new());
        detached.cancel.cancel();
        assert_eq!(detached.check().unwrap_err().kind, Kind::Cancelled);
        assert!(cx.check().is_ok());
    }

    #[test]
    fn nested_calls_need_a_hub() {
        let cx = CallContext::from_header(header(), CancellationToken::new(), Arc::new(NoPeer));
        assert_eq!(cx.nested_calls().err().unwrap().kind, Kind::Unavailable);
    }
}
