//! The requests of one connection that wait for their answers.

use crate::fail::{Fail, Outcome};
use crate::task::Owned;
use octo_model::Json;
use octo_toolkit::Peer;
use octo_wire::Id;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Questions of one call that may wait for an answer at once.
const MAX_QUESTIONS: usize = 16;

/// The client on whose behalf a request was sent.
#[derive(Clone)]
pub(crate) struct Behalf {
    pub(crate) peer: Arc<dyn Peer>,
    /// The client's own progress token.
    pub(crate) token: Option<Json>,
}

/// One request under way.
#[derive(Default)]
pub(crate) struct Entry {
    behalf: Option<Behalf>,
    /// Told when a subscription is acknowledged.
    opened: Option<oneshot::Sender<()>>,
    answer: Option<oneshot::Sender<Outcome>>,
    /// What the server has asked in return and nobody has answered yet.
    questions: Vec<(Id, Owned)>,
}

impl Entry {
    pub(crate) fn new(behalf: Option<Behalf>, opened: Option<oneshot::Sender<()>>) -> Self {
        Self { behalf, opened, answer: None, questions: Vec::new() }
    }
}

#[derive(Default)]
pub(crate) struct Calls {
    last: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<u64, Entry>,
    closed: Option<Fail>,
}

impl Calls {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fresh id, which is also the progress token of its request.
    pub(crate) fn mint(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn enter(&self, id: u64, entry: Entry) {
        self.table().entries.insert(id, entry);
    }

    /// Ends an entry, and with it every question that hangs on it.
    pub(crate) fn leave(&self, id: u64) {
        let entry = self.table().entries.remove(&id);
        drop(entry);
    }

    /// Where the answer to a request will arrive.
    pub(crate) fn expect(&self, id: u64) -> oneshot::Receiver<Outcome> {
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

    /// Hands over an answer; false when nobody waits for it.
    pub(crate) fn settle(&self, id: u64, outcome: Outcome) -> bool {
        let answer = self.table().entries.get_mut(&id).and_then(|entry| entry.answer.take());
        answer.is_some_and(|answer| answer.send(outcome).is_ok())
    }

    /// How many requests wait for an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.table().entries.values().filter(|entry| entry.answer.is_some()).count()
    }

    /// Fails what waits and whatever comes later.
    pub(crate) fn close(&self, fail: Fail) {
        let answers: Vec<_> = {
            let mut table = self.table();
            table.closed = Some(fail.clone());
            table.entries.values_mut().filter_map(|entry| entry.answer.take()).collect()
        };
        for answer in answers {
            let _ = answer.send(Err(fail.clone()));
        }
    }

    pub(crate) fn behalf(&self, id: u64) -> Option<Behalf> {
        self.table().entries.get(&id).and_then(|entry| entry.behalf.clone())
    }

    /// The newest call, as long as all calls under way belong to the same client.
    pub(crate) fn only_client(&self) -> Option<(u64, Behalf)> {
        let table = self.table();
        let mut found: Option<(u64, &Behalf)> = None;
        for (id, entry) in &table.entries {
            let Some(behalf) = &entry.behalf else { continue };
            match found {
                Some((_, other)) if other.peer.key() != behalf.peer.key() => return None,
                Some((newest, _)) if newest > *id => {}
                _ => found = Some((*id, behalf)),
            }
        }
        found.map(|(id, behalf)| (id, behalf.clone()))
    }

    /// A subscription was acknowledged.
    pub(crate) fn opened(&self, id: u64) {
        if let Some(opened) = self.table().entries.get_mut(&id).and_then(|entry| entry.opened.take()) {
            let _ = opened.send(());
        }
    }

    /// Whether the server may ask one more question in a call. Those that were answered make room.
    pub(crate) fn has_room_for_question(&self, call: u64) -> bool {
        self.table().entries.get_mut(&call).is_some_and(|entry| {
            entry.questions.retain(|(_, task)| !task.is_finished());
            entry.questions.len() < MAX_QUESTIONS
        })
    }

    /// Ties the server's question to the call it belongs to: it ends with the call, at the latest.
    pub(crate) fn hang(&self, call: u64, question: Id, task: Owned) {
        if let Some(entry) = self.table().entries.get_mut(&call) {
            entry.questions.push((question, task));
        }
    }

    /// The server takes a question back.
    pub(crate) fn withdraw(&self, question: &Id) {
        for entry in self.table().entries.values_mut() {
            entry.questions.retain(|(id, _)| id != question);
        }
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

    fn entry(key: u64) -> Entry {
        Entry::new(Some(Behalf { peer: Arc::new(Client(key)), token: None }), None)
    }

    #[test]
    fn a_question_without_address_goes_to_the_newest_call_of_the_only_client() {
        let calls = Calls::default();
        assert!(calls.only_client().is_none());
        calls.enter(1, entry(7));
        calls.enter(2, Entry::default());
        calls.enter(3, entry(7));
        assert_eq!(calls.only_client().unwrap().0, 3);
        calls.enter(4, entry(8));
        assert!(calls.only_client().is_none());
        calls.leave(4);
        assert_eq!(calls.only_client().unwrap().0, 3);
    }

    #[tokio::test]
    async fn answers_reach_only_those_who_wait() {
        let calls = Calls::default();
        calls.enter(1, Entry::default());
        let answer = calls.expect(1);
        assert!(!calls.settle(2, Ok(JsonObject::new())));
        assert!(calls.settle(1, Ok(JsonObject::new())));
        assert!(!calls.settle(1, Ok(JsonObject::new())));
        assert!(answer.await.unwrap().is_ok());
        calls.close(Fail::Lost("x".into()));
        calls.enter(5, Entry::default());
        assert!(calls.expect(5).await.unwrap().is_err());
    }
}
