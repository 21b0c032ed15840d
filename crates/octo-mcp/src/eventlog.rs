//! The events of one legacy stream, kept so that a client can come back for them.

use bytes::Bytes;
use octo_wire::{Message, sse};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the events of a finished stream are kept.
const KEEP: Duration = Duration::from_secs(300);
/// Time that a client waits before it comes back.
pub const RETRY_MS: u64 = 1_000;
/// Notices and questions that are kept for a client that does not read. Older ones are dropped; the answer never is.
const MAX_EVENTS: usize = 1_024;
const MAX_EVENT_BYTES: usize = 512 << 10;
/// The same once all streams of the hub together have more than their share.
const MAX_EVENT_BYTES_WHEN_FULL: usize = 16 << 10;
/// Bytes that all streams of the hub may have before each has to do with less, and finished ones are not kept.
const MAX_ALL_BYTES: usize = 32 << 20;

/// What all event logs of the hub take up.
#[derive(Default)]
pub struct EventBudget(AtomicUsize);

impl EventBudget {
    fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_ALL_BYTES
    }
}

pub struct EventLog {
    number: u64,
    inner: Mutex<Inner>,
    news: Notify,
    budget: Arc<EventBudget>,
}

struct Event {
    place: u64,
    text: Bytes,
    may_go: bool,
}

#[derive(Default)]
struct Inner {
    /// By their places, some of which may be missing.
    events: VecDeque<Event>,
    next: u64,
    /// Of the events that may go.
    count: usize,
    bytes: usize,
    finished: Option<Instant>,
    /// There was no room to keep it after its end.
    is_forgotten: bool,
}

impl Inner {
    fn push(&mut self, text: Bytes, may_go: bool, most: usize) {
        if may_go {
            self.count += 1;
            self.bytes += text.len();
        }
        self.events.push_back(Event { place: self.next, text, may_go });
        self.next += 1;
        // The newest stays: a client that reads is about to take it.
        while self.count > 1 && (self.count > MAX_EVENTS || self.bytes > most) {
            let Some(oldest) = self.events.iter().position(|event| event.may_go) else { return };
            if let Some(dropped) = self.events.remove(oldest) {
                self.count -= 1;
                self.bytes -= dropped.text.len();
            }
        }
    }

    fn size(&self) -> usize {
        self.events.iter().map(|event| event.text.len()).sum()
    }

    /// The first event at a place or behind it.
    fn from(&self, place: u64) -> Option<&Event> {
        self.events.get(self.events.partition_point(|event| event.place < place))
    }
}

impl EventLog {
    /// With a priming event the client has an id to come back with before anything was sent.
    pub fn new(number: u64, primed: bool, budget: &Arc<EventBudget>) -> Self {
        let first = if primed { sse::priming(&id(number, 0), RETRY_MS) } else { Bytes::new() };
        let log = Self { number, inner: Mutex::default(), news: Notify::new(), budget: Arc::clone(budget) };
        log.add(&mut log.inner(), first, false);
        log
    }

    fn add(&self, inner: &mut Inner, text: Bytes, may_go: bool) {
        let most = if self.budget.is_full() { MAX_EVENT_BYTES_WHEN_FULL } else { MAX_EVENT_BYTES };
        let before = inner.bytes;
        let added = if may_go { 0 } else { text.len() };
        inner.push(text, may_go, most);
        self.budget.0.fetch_add(inner.bytes + added, Ordering::Relaxed);
        self.budget.0.fetch_sub(before, Ordering::Relaxed);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, message: &Message) {
        let mut inner = self.inner();
        let event = sse::event(Some(&id(self.number, inner.next)), &message.to_bytes());
        let may_go = matches!(message, Message::Notification { .. } | Message::Request { .. });
        self.add(&mut inner, event, may_go);
        drop(inner);
        self.news.notify_waiters();
    }

    pub fn finish(&self) {
        let mut inner = self.inner();
        inner.finished = Some(Instant::now());
        inner.is_forgotten = self.budget.is_full();
        drop(inner);
        self.news.notify_waiters();
    }

    pub fn is_finished(&self) -> bool {
        self.inner().finished.is_some()
    }

    pub fn is_stale(&self) -> bool {
        let inner = self.inner();
        inner.is_forgotten || inner.finished.is_some_and(|at| at.elapsed() > KEEP)
    }

    /// The first event at a place or behind it, and the place after it; waits for one, and gives nothing past the end.
    pub async fn next(&self, place: u64) -> Option<(Bytes, u64)> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let inner = self.inner();
                if let Some(event) = inner.from(place) {
                    return Some((event.text.clone(), event.place + 1));
                }
                if inner.finished.is_some() {
                    return None;
                }
            }
            news.await;
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.inner().size(), Ordering::Relaxed);
    }
}

fn id(stream: u64, event: u64) -> String {
    format!("{stream}-{event}")
}

/// Stream and event that an id names.
pub fn parse_id(text: &str) -> Option<(u64, u64)> {
    let (stream, event) = text.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::JsonObject;
    use octo_wire::Id;

    fn question(size: usize) -> Message {
        let params = JsonObject::new().with("message", "x".repeat(size).as_str());
        Message::Request { id: Id::number(1), method: "elicitation/create".to_owned(), params }
    }

    fn notice(size: usize) -> Message {
        let params = JsonObject::new().with("text", "x".repeat(size).as_str());
        Message::Notification { method: "notifications/message".to_owned(), params }
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_costs_a_bounded_amount() {
        for (size, many) in [(10, 20_000), (200_000, 50)] {
            let budget = Arc::default();
            let log = EventLog::new(7, true, &budget);
            for number in 0..many {
                log.push(&if number % 2 == 0 { notice(size) } else { question(size) });
            }
            log.push(&Message::Response { id: Id::number(2), result: JsonObject::new() });
            log.finish();
            let (mut place, mut seen, mut bytes) = (0, Vec::new(), 0);
            while let Some((event, next)) = log.next(place).await {
                assert!(next > place);
                bytes += event.len();
                seen.push(String::from_utf8(event.to_vec()).unwrap());
                place = next;
            }
            assert!(
                bytes < MAX_EVENT_BYTES + 4_096 && seen.len() <= MAX_EVENTS + 2,
                "{bytes} {}",
                seen.len()
            );
            assert!(seen.last().unwrap().contains("\"result\""), "the answer stays");
            assert_eq!(place, 2 + many, "places are never given twice");
            assert_eq!(budget.0.load(Ordering::Relaxed), bytes);
            drop(log);
            assert_eq!(budget.0.load(Ordering::Relaxed), 0);
        }
    }

    #[tokio::test]
    async fn a_thousand_unread_streams_share_one_budget() {
        let budget = Arc::default();
        let logs: Vec<EventLog> = (0..1_000).map(|number| EventLog::new(number, true, &budget)).collect();
        for log in &logs {
            for _ in 0..100 {
                log.push(&notice(10_000));
            }
            log.finish();
        }
        let taken = budget.0.load(Ordering::Relaxed);
        assert!(taken < 2 * MAX_ALL_BYTES, "{taken} bytes");
        assert!(!logs[0].is_stale() && logs[999].is_stale(), "finished streams are kept while there is room");
        drop(logs);
        assert!(!budget.is_full());
    }
}
