//! In-memory sessions.

use super::InMemoryLeases;
use crate::sessions::{
    AdoptedStream, MAX_PART_EVENTS, SessionChange, SessionKey, SessionRecord, StreamAppend, StreamEvent,
    StreamPart, StreamQuestion,
};
use crate::{SessionStore, StoreResult};
use octo_model::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct InMemorySessions {
    leases: Arc<InMemoryLeases>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    records: HashMap<SessionKey, SessionRecord>,
    streams: HashMap<(SessionKey, u64), Stream>,
}

#[derive(Default)]
struct Stream {
    owner: String,
    request: String,
    next: u64,
    events: Vec<StreamEvent>,
    question: Option<StreamQuestion>,
    is_finished: bool,
}

impl Stream {
    /// Whether it is continued neither by its end nor by an answer.
    fn is_running(&self) -> bool {
        let waits = self.question.as_ref().is_some_and(|question| question.call.is_some());
        !self.is_finished && !waits
    }

    fn hand_over(&mut self, number: u64, owner: &str) -> AdoptedStream {
        owner.clone_into(&mut self.owner);
        let call = self.question.take().and_then(|question| question.call);
        AdoptedStream { number, request: self.request.clone(), next: self.next, call }
    }
}

impl InMemorySessions {
    pub fn new(leases: &Arc<InMemoryLeases>) -> Self {
        Self { leases: Arc::clone(leases), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its owner may not be replaced by this one.
    fn is_protected(&self, stream: &Stream, from: &str) -> bool {
        stream.owner != from && self.leases.is_held(&stream.owner)
    }
}

impl SessionStore for InMemorySessions {
    fn get<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, StoreResult<Option<SessionRecord>>> {
        super::ready(Ok(self.lock().records.get(session).cloned()))
    }

    fn change<'a>(
        &'a self,
        session: &'a SessionKey,
        change: SessionChange,
    ) -> BoxFuture<'a, StoreResult<()>> {
        let mut state = self.lock();
        let record = state.records.entry(session.clone()).or_default();
        match change {
            SessionChange::LogLevel(level) => record.log_level = Some(level),
            SessionChange::Subscribe(uri) if record.subscriptions.contains(&uri) => {}
            SessionChange::Subscribe(uri) => record.subscriptions.push(uri),
            SessionChange::Unsubscribe(uri) => record.subscriptions.retain(|known| *known != uri),
            SessionChange::End => record.has_ended = true,
        }
        super::ready(Ok(()))
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionKey,
        append: StreamAppend,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let mut state = self.lock();
        let stream = state.streams.entry((session.clone(), append.number)).or_insert_with(|| Stream {
            owner: append.owner.clone(),
            request: append.request.clone(),
            ..Stream::default()
        });
        if stream.owner != append.owner || (stream.next != append.first && stream.next != append.next) {
            return super::ready(Ok(false));
        }
        if stream.next == append.first {
            stream.events.extend(append.events);
            stream.question = append.question.or(stream.question.take());
        }
        stream.next = append.next;
        stream.events.retain(|event| !event.is_droppable || event.sequence >= append.dropped_before);
        stream.is_finished = append.is_finished;
        super::ready(Ok(true))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionKey,
        number: u64,
        from: u64,
    ) -> BoxFuture<'a, StoreResult<Option<StreamPart>>> {
        let state = self.lock();
        let part = state.streams.get(&(session.clone(), number)).map(|stream| {
            let rest = || stream.events.iter().filter(|event| event.sequence >= from);
            StreamPart {
                events: rest().take(MAX_PART_EVENTS).cloned().collect(),
                has_more: rest().count() > MAX_PART_EVENTS,
                is_finished: stream.is_finished,
                is_orphaned: stream.is_running() && !self.leases.is_held(&stream.owner),
            }
        });
        super::ready(Ok(part))
    }

    fn take_question<'a>(
        &'a self,
        session: &'a SessionKey,
        question: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<AdoptedStream>>> {
        let mut state = self.lock();
        let taken = state.streams.iter_mut().find_map(|((of, number), stream)| {
            let is_asked =
                stream.question.as_ref().is_some_and(|it| it.number == question && it.call.is_some());
            let may_take = of == session && is_asked && !self.is_protected(stream, owner);
            may_take.then(|| stream.hand_over(*number, owner))
        });
        super::ready(Ok(taken))
    }

    fn is_asked<'a>(
        &'a self,
        session: &'a SessionKey,
        question: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let asks = |stream: &Stream| {
            stream.owner == owner && stream.question.as_ref().is_some_and(|it| it.number == question)
        };
        let state = self.lock();
        super::ready(Ok(state.streams.iter().any(|((of, _), stream)| of == session && asks(stream))))
    }

    fn has_open_stream<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, StoreResult<bool>> {
        let state = self.lock();
        super::ready(Ok(state.streams.iter().any(|((of, _), stream)| of == session && !stream.is_finished)))
    }

    fn adopt<'a>(
        &'a self,
        session: &'a SessionKey,
        number: u64,
        owner: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<AdoptedStream>>> {
        let mut state = self.lock();
        let stream = state.streams.get_mut(&(session.clone(), number));
        let orphan = stream.filter(|stream| stream.is_running() && !self.is_protected(stream, owner));
        super::ready(Ok(orphan.map(|stream| stream.hand_over(number, owner))))
    }
}
