//! Events of one legacy stream, stored so that a client can resume it.

use bytes::Bytes;
use octo_ports::sessions::StreamEvent;
use octo_wire::{Message, sse};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the events of a finished stream are kept.
const RETENTION: Duration = Duration::from_secs(300);
/// Delay before a client reconnects.
pub const RECONNECT_DELAY_MS: u64 = 1_000;
/// Maximum stored notifications and requests for a client that does not read. Older ones are dropped; the response
/// never is.
const MAX_EVENTS: usize = 1_024;
const MAX_EVENT_BYTES: usize = 512 << 10;
/// Limit per stream once all streams of the hub together exceed their budget.
const MAX_EVENT_BYTES_WHEN_FULL: usize = 16 << 10;
/// Budget of all streams of the hub, in bytes. Above it each stream gets less, and finished ones are dropped.
const MAX_TOTAL_BYTES: usize = 32 << 20;

/// Size of all event logs of the hub.
#[derive(Default)]
pub struct EventBudget(AtomicUsize);

impl EventBudget {
    fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_TOTAL_BYTES
    }
}

pub struct EventLog {
    number: u64,
    /// Sequence number of its first event.
    start: u64,
    inner: Mutex<LogState>,
    changed: Notify,
    budget: Arc<EventBudget>,
}

struct Event {
    sequence: u64,
    text: Bytes,
    droppable: bool,
    /// Number of the question that it asks.
    question: Option<u64>,
}

/// Events that are not stored yet.
pub struct UnstoredEvents {
    pub first: u64,
    pub next: u64,
    pub events: Vec<StreamEvent>,
    /// Droppable events before this one were dropped.
    pub dropped_before: u64,
    /// Number of the last question among them.
    pub question: Option<u64>,
    pub is_finished: bool,
}

#[derive(Default)]
struct LogState {
    /// By sequence number; some may be missing.
    events: VecDeque<Event>,
    next: u64,
    /// Events are sent up to this one: those of a session that others can continue are stored first.
    sendable: u64,
    /// Events are stored up to this one.
    stored: u64,
    /// Another front continues the stream.
    is_lost: bool,
    /// Number of droppable events.
    count: usize,
    bytes: usize,
    finished: Option<Instant>,
    /// Dropped after its end for lack of room.
    discarded: bool,
}

impl LogState {
    fn push(&mut self, text: Bytes, droppable: bool, question: Option<u64>, most: usize) {
        if droppable {
            self.count += 1;
            self.bytes += text.len();
        }
        self.events.push_back(Event { sequence: self.next, text, droppable, question });
        self.next += 1;
        // The newest event stays: a reading client is about to take it.
        while self.count > 1 && (self.count > MAX_EVENTS || self.bytes > most) {
            let Some(oldest) = self.events.iter().position(|event| event.droppable) else { return };
            if let Some(dropped) = self.events.remove(oldest) {
                self.count -= 1;
                self.bytes -= dropped.text.len();
            }
        }
    }

    fn size(&self) -> usize {
        self.events.iter().map(|event| event.text.len()).sum()
    }

    fn unstored(&self) -> UnstoredEvents {
        let rest = || self.events.iter().filter(|event| event.sequence >= self.stored);
        let to_stored = |event: &Event| StreamEvent {
            sequence: event.sequence,
            text: event.text.to_vec(),
            is_droppable: event.droppable,
        };
        let oldest = self.events.iter().find(|event| event.droppable);
        UnstoredEvents {
            first: self.stored,
            next: self.next,
            events: rest().map(to_stored).collect(),
            dropped_before: oldest.map_or(0, |event| event.sequence),
            question: rest().filter_map(|event| event.question).next_back(),
            is_finished: self.finished.is_some(),
        }
    }

    /// First event at or after a position.
    fn first_from(&self, place: u64) -> Option<&Event> {
        self.events.get(self.events.partition_point(|event| event.sequence < place))
    }
}

impl EventLog {
    /// A priming event gives the client an id to resume with before anything was sent.
    pub fn new(number: u64, primed: bool, budget: &Arc<EventBudget>) -> Self {
        let first =
            if primed { sse::encode_priming(&event_id(number, 0), RECONNECT_DELAY_MS) } else { Bytes::new() };
        let log = Self::resumed(number, 0, budget);
        log.lock().sendable = u64::MAX;
        log.add(&mut log.lock(), first, false, None);
        log
    }

    /// The rest of a stream, from a sequence number on, that another front began. Its events are stored before they are
    /// sent.
    pub fn resumed(number: u64, next: u64, budget: &Arc<EventBudget>) -> Self {
        let inner = LogState { next, sendable: next, stored: next, ..LogState::default() };
        Self {
            number,
            start: next,
            inner: Mutex::new(inner),
            changed: Notify::new(),
            budget: Arc::clone(budget),
        }
    }

    /// Events are stored before they are sent.
    pub fn store_first(&self) {
        self.lock().sendable = 0;
    }

    /// Whether all events of the stream go through this log.
    pub fn is_complete(&self) -> bool {
        self.start == 0 && !self.lock().is_lost
    }

    fn add(&self, inner: &mut LogState, text: Bytes, may_go: bool, question: Option<u64>) {
        let most = if self.budget.is_full() { MAX_EVENT_BYTES_WHEN_FULL } else { MAX_EVENT_BYTES };
        let before = inner.bytes;
        let added = if may_go { 0 } else { text.len() };
        inner.push(text, may_go, question, most);
        self.budget.0.fetch_add(inner.bytes + added, Ordering::Relaxed);
        self.budget.0.fetch_sub(before, Ordering::Relaxed);
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, message: &Message) {
        let mut inner = self.lock();
        let event = encode_event(self.number, inner.next, message);
        let may_go = matches!(message, Message::Notification { .. } | Message::Request { .. });
        let question = if let Message::Request { id, .. } = message { id.to_number() } else { None };
        self.add(&mut inner, event, may_go, question);
        drop(inner);
        self.changed.notify_waiters();
    }

    pub fn finish(&self) {
        let mut inner = self.lock();
        inner.finished = Some(Instant::now());
        inner.discarded = self.budget.is_full();
        drop(inner);
        self.changed.notify_waiters();
    }

    pub fn is_finished(&self) -> bool {
        self.lock().finished.is_some()
    }

    pub fn is_stale(&self) -> bool {
        let inner = self.lock();
        inner.discarded || inner.finished.is_some_and(|at| at.elapsed() > RETENTION)
    }

    /// Returns the first event at or after a position, and the next position; waits for one, and returns `None` past
    /// the end.
    pub async fn next(&self, place: u64) -> Option<(Bytes, u64)> {
        loop {
            let news = self.changed.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let inner = self.lock();
                match inner.first_from(place) {
                    Some(event) if event.sequence < inner.sendable => {
                        return Some((event.text.clone(), event.sequence + 1));
                    }
                    None if inner.finished.is_some() => return None,
                    _ if inner.is_lost => return None,
                    _ => {}
                }
            }
            news.await;
        }
    }
}

/// For streams whose events are stored first.
impl EventLog {
    /// Waits for events that are not stored yet, or the end.
    pub async fn unstored(&self) -> UnstoredEvents {
        loop {
            let news = self.changed.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let inner = self.lock();
                if inner.next > inner.stored || inner.finished.is_some() {
                    return inner.unstored();
                }
            }
            news.await;
        }
    }

    /// Events up to this one are stored, and may be sent.
    pub fn set_stored(&self, next: u64) {
        let mut inner = self.lock();
        inner.stored = next;
        inner.sendable = inner.sendable.max(next);
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Events are sent from now on, whether they are stored or not.
    pub fn send_unstored(&self) {
        self.lock().sendable = u64::MAX;
        self.changed.notify_waiters();
    }

    /// Ends the stream here: another front continues it.
    pub fn set_lost(&self) {
        self.lock().is_lost = true;
        self.finish();
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.lock().size(), Ordering::Relaxed);
    }
}

/// A message as an event of a stream.
pub fn encode_event(stream: u64, event: u64, message: &Message) -> Bytes {
    sse::encode_event(Some(&event_id(stream, event)), &message.to_bytes())
}

fn event_id(stream: u64, event: u64) -> String {
    format!("{stream}-{event}")
}

/// Stream and event numbers of an event id.
pub fn parse_event_id(text: &str) -> Option<(u64, u64)> {
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
        assert!(taken < 2 * MAX_TOTAL_BYTES, "{taken} bytes");
        assert!(!logs[0].is_stale() && logs[999].is_stale(), "finished streams are kept while there is room");
        drop(logs);
        assert!(!budget.is_full());
    }
}
