//! Results that a tool stores while it runs for another node: they are stored where the call came from, for its caller.

use crate::remote_peer::{PeerMessage, ask};
use octo_model::{BoxFuture, CallId, Caller, Json, JsonObject};
use octo_ports::{Port, ResultStore, StoreError, StoreResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The question with which a worker stores a result at the node of the call.
pub(crate) const STORE_RESULT: &str = "octoprox/storeResult";

/// Stores results over the calls that run on this node.
#[derive(Clone, Default)]
pub struct CallerResults(Arc<Mutex<HashMap<CallId, mpsc::Sender<PeerMessage>>>>);

/// A running call that can store results.
pub(crate) struct RunningCall {
    results: CallerResults,
    id: CallId,
}

impl CallerResults {
    pub(crate) fn add(&self, id: CallId, messages: mpsc::Sender<PeerMessage>) -> RunningCall {
        self.lock().insert(id, messages);
        RunningCall { results: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, mpsc::Sender<PeerMessage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.results.lock().remove(&self.id);
    }
}

impl ResultStore for CallerResults {
    fn store<'a>(&'a self, _: &'a Caller, call: CallId, whole: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async move {
            let messages = self.lock().get(&call).cloned();
            let messages = messages.ok_or_else(|| StoreError::internal("the call has ended"))?;
            let params = JsonObject::new().with("result", whole);
            let answer = ask(&messages, STORE_RESULT, params).await;
            let answer = answer.map_err(|_| StoreError::internal("the hub of the call stored no result"))?;
            answer.text("handle").ok_or_else(|| StoreError::internal("the hub of the call sent no handle"))
        })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async { Err(StoreError::NotFound(Port::Results)) })
    }
}
