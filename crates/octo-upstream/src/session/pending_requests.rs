//! Requests of one connection that wait for their responses.

use crate::error::{UpstreamError, UpstreamResult};
use crate::transport::abort_on_drop::AbortOnDrop;
use octo_model::Json;
use octo_toolkit::Peer;
use octo_wire::Id;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Maximum pending server requests per call.
const MAX_SERVER_REQUESTS: usize = 16;

/// Client on whose behalf a request was sent.
#[derive(Clone)]
pub(crate) struct RequestClient {
    pub(crate) peer: Arc<dyn Peer>,
    /// The client's own progress token.
    pub(crate) progress_token: Option<Json>,
}

/// One active request.
#[derive(Default)]
pub(crate) struct PendingRequest {
    client: Option<RequestClient>,
    /// Notified when a subscription is acknowledged.
    acknowledged: Option<oneshot::Sender<()>>,
    answer: Option<oneshot::Sender<UpstreamResult>>,
    /// Unanswered requests of the server within this call.
    server_requests: Vec<(Id, AbortOnDrop)>,
}

impl PendingRequest {
    pub(crate) fn new(behalf: Option<RequestClient>, opened: Option<oneshot::Sender<()>>) -> Self {
        Self { client: behalf, acknowledged: opened, answer: None, server_requests: Vec::new() }
    }
}

/// A client whose call goes on as a task.
pub(crate) struct ClientPresence {
    requests: Arc<PendingRequests>,
    id: u64,
}

impl Drop for ClientPresence {
    fn drop(&mut self) {
        self.requests.remove(self.id);
    }
}

#[derive(Default)]
pub(crate) struct PendingRequests {
    last_id: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<u64, PendingRequest>,
    closed: Option<UpstreamError>,
}

impl PendingRequests {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a fresh id, which is also the progress token of the request.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn insert(&self, id: u64, entry: PendingRequest) {
        self.table().entries.insert(id, entry);
    }

    /// Removes an entry, and with it all its server requests.
    pub(crate) fn remove(&self, id: u64) {
        let entry = self.table().entries.remove(&id);
        drop(entry);
    }

    /// Receiver for the response to a request.
    pub(crate) fn response_receiver(&self, id: u64) -> oneshot::Receiver<UpstreamResult> {
        let (sender, receiver) = oneshot::channel();
        let mut table = self.table();
        match (&table.closed, table.entries.contains_key(&id)) {
            (Some(fail), _) => drop(sender.send(Err(fail.clone()))),
            (None, false) => {}
            (None, true) => {
                table.entries.entry(id).or_default().answer = Some(sender);
            }
        }
        receiver
    }

    /// Delivers a response; false if the request is unknown.
    pub(crate) fn complete(&self, id: u64, outcome: UpstreamResult) -> bool {
        let answer = self.table().entries.get_mut(&id).and_then(|entry| entry.answer.take());
        answer.is_some_and(|answer| answer.send(outcome).is_ok())
    }

    /// Number of requests that wait for a response.
    pub(crate) fn waiting_count(&self) -> usize {
        self.table().entries.values().filter(|entry| entry.answer.is_some()).count()
    }

    /// Fails all pending and later requests. Only later ones fail with the reason itself: the server may have accepted a
    /// pending one, even if it has refused another.
    pub(crate) fn close(&self, why: UpstreamError) {
        let lost = lost_error(&why);
        let answers: Vec<_> = {
            let mut table = self.table();
            table.closed = Some(why);
            table.entries.values_mut().filter_map(|entry| entry.answer.take()).collect()
        };
        for answer in answers {
            let _ = answer.send(Err(lost.clone()));
        }
    }

    pub(crate) fn client_of(&self, id: u64) -> Option<RequestClient> {
        self.table().entries.get(&id).and_then(|entry| entry.client.clone())
    }

    /// Counts a client as one with an active call until the value is dropped, also while no request of it is pending.
    pub(crate) fn represent(self: &Arc<Self>, peer: &Arc<dyn Peer>) -> ClientPresence {
        let id = self.next_id();
        let client = RequestClient { peer: Arc::clone(peer), progress_token: None };
        self.insert(id, PendingRequest::new(Some(client), None));
        ClientPresence { requests: Arc::clone(self), id }
    }

    /// Newest call, if all active calls belong to the same client.
    pub(crate) fn sole_client(&self) -> Option<(u64, RequestClient)> {
        let table = self.table();
        let mut found: Option<(u64, &RequestClient)> = None;
        for (id, entry) in &table.entries {
            let Some(behalf) = &entry.client else { continue };
            match found {
                Some((_, other)) if other.peer.key() != behalf.peer.key() => return None,
                Some((newest, _)) if newest > *id => {}
                _ => found = Some((*id, behalf)),
            }
        }
        found.map(|(id, behalf)| (id, behalf.clone()))
    }

    pub(crate) fn acknowledge_subscription(&self, id: u64) {
        if let Some(opened) = self.table().entries.get_mut(&id).and_then(|entry| entry.acknowledged.take()) {
            let _ = opened.send(());
        }
    }

    /// Whether the server may send another request within a call. Answered ones do not count.
    pub(crate) fn has_room_for_server_request(&self, call: u64) -> bool {
        self.table().entries.get_mut(&call).is_some_and(|entry| {
            entry.server_requests.retain(|(_, task)| !task.is_finished());
            entry.server_requests.len() < MAX_SERVER_REQUESTS
        })
    }

    /// Ties a server request to its call: it ends with the call at the latest.
    pub(crate) fn attach_server_request(&self, call: u64, question: Id, task: AbortOnDrop) {
        if let Some(entry) = self.table().entries.get_mut(&call) {
            entry.server_requests.push((question, task));
        }
    }

    /// Cancels a server request.
    pub(crate) fn cancel_server_request(&self, question: &Id) {
        for entry in self.table().entries.values_mut() {
            entry.server_requests.retain(|(id, _)| id != question);
        }
    }
}

/// Error of a request that was pending when the connection ended.
fn lost_error(why: &UpstreamError) -> UpstreamError {
    match why {
        // Neither is ever sent again.
        UpstreamError::ConnectionLost(_) | UpstreamError::TooLarge(_) => why.clone(),
        other => UpstreamError::ConnectionLost(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::JsonObject;
    use octo_toolkit::{AskError, BoxFuture};

    struct Client(u64);

    impl Peer for Client {
        fn capabilities(&self) -> &JsonObject {
            static NONE: std::sync::OnceLock<JsonObject> = std::sync::OnceLock::new();
            NONE.get_or_init(JsonObject::new)
        }
        fn notify(&self, _: &str, _: JsonObject) {}
        fn ask<'a>(&'a self, _: &'a str, _: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
            Box::pin(async { Err(AskError::Unable) })
        }
        fn key(&self) -> u64 {
            self.0
        }
    }

    fn entry(key: u64) -> PendingRequest {
        PendingRequest::new(Some(RequestClient { peer: Arc::new(Client(key)), progress_token: None }), None)
    }

    #[test]
    fn a_question_without_address_goes_to_the_newest_call_of_the_only_client() {
        let calls = PendingRequests::default();
        assert!(calls.sole_client().is_none());
        calls.insert(1, entry(7));
        calls.insert(2, PendingRequest::default());
        calls.insert(3, entry(7));
        assert_eq!(calls.sole_client().unwrap().0, 3);
        calls.insert(4, entry(8));
        assert!(calls.sole_client().is_none());
        calls.remove(4);
        assert_eq!(calls.sole_client().unwrap().0, 3);
    }

    #[tokio::test]
    async fn answers_reach_only_those_who_wait() {
        let calls = PendingRequests::default();
        calls.insert(1, PendingRequest::default());
        let answer = calls.response_receiver(1);
        assert!(!calls.complete(2, Ok(JsonObject::new())));
        assert!(calls.complete(1, Ok(JsonObject::new())));
        assert!(!calls.complete(1, Ok(JsonObject::new())));
        assert!(answer.await.unwrap().is_ok());
        calls.close(UpstreamError::ConnectionLost("x".into()));
        calls.insert(5, PendingRequest::default());
        assert!(calls.response_receiver(5).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_pending_request_never_fails_with_the_refusal_of_another() {
        for why in [
            UpstreamError::SessionExpired,
            UpstreamError::NotSent("refused".to_owned()),
            UpstreamError::Unauthorized(401),
            UpstreamError::ConnectionLost("gone".to_owned()),
        ] {
            let calls = PendingRequests::default();
            calls.insert(1, PendingRequest::default());
            let pending = calls.response_receiver(1);
            calls.close(why.clone());
            let pending = pending.await.unwrap().unwrap_err();
            assert!(matches!(pending, UpstreamError::ConnectionLost(_)), "{why}: {pending}");
            calls.insert(2, PendingRequest::default());
            let later = calls.response_receiver(2).await.unwrap().unwrap_err();
            assert_eq!(later.to_string(), why.to_string());
        }
    }

    #[tokio::test]
    async fn the_reason_of_a_lost_connection_is_kept() {
        for (why, expected) in [
            (UpstreamError::ConnectionLost("gone".to_owned()), "connection lost: gone"),
            (UpstreamError::SessionExpired, "connection lost: the session expired"),
            (UpstreamError::TooLarge(10), "message exceeds the limit of 10 bytes"),
        ] {
            let calls = PendingRequests::default();
            calls.insert(1, PendingRequest::default());
            let pending = calls.response_receiver(1);
            calls.close(why);
            assert_eq!(pending.await.unwrap().unwrap_err().to_string(), expected);
        }
    }
}
