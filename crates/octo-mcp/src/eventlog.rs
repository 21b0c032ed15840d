//! The events of one legacy stream, kept so that a client can come back for them.

use bytes::Bytes;
use octo_wire::{Message, sse};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the events of a finished stream are kept.
const KEEP: Duration = Duration::from_secs(300);
/// Time that a client waits before it comes back.
pub const RETRY_MS: u64 = 1_000;
/// Notices that are kept for a client that does not read. Older ones are dropped; questions and the answer never are.
const MAX_NOTICES: usize = 1_024;
const MAX_NOTICE_BYTES: usize = 512 << 10;

pub struct EventLog {
    number: u64,
    inner: Mutex<Inner>,
    news: Notify,
}

struct Event {
    place: u64,
    text: Bytes,
    is_notice: bool,
}

#[derive(Default)]
struct Inner {
    /// By their places, some of which may be missing.
    events: VecDeque<Event>,
    next: u64,
    notices: usize,
    notice_bytes: usize,
    finished: Option<Instant>,
}

impl Inner {
    fn push(&mut self, text: Bytes, is_notice: bool) {
        if is_notice {
            self.notices += 1;
            self.notice_bytes += text.len();
        }
        self.events.push_back(Event { place: self.next, text, is_notice });
        self.next += 1;
        while self.notices > MAX_NOTICES || self.notice_bytes > MAX_NOTICE_BYTES {
            let Some(oldest) = self.events.iter().position(|event| event.is_notice) else { return };
            if let Some(dropped) = self.events.remove(oldest) {
                self.notices -= 1;
                self.notice_bytes -= dropped.text.len();
            }
        }
    }

    /// The first event at a place or behind it.
    fn from(&self, place: u64) -> Option<&Event> {
        self.events.get(self.events.partition_point(|event| event.place < place))
    }
}

impl EventLog {
    /// With a priming event the client has an id to come back with before anything was sent.
    pub fn new(number: u64, primed: bool) -> Self {
        let first = if primed { sse::priming(&id(number, 0), RETRY_MS) } else { Bytes::new() };
        let mut inner = Inner::default();
        inner.push(first, false);
        Self { number, inner: Mutex::new(inner), news: Notify::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, message: &Message) {
        let mut inner = self.inner();
        let event = sse::event(Some(&id(self.number, inner.next)), &message.to_bytes());
        inner.push(event, matches!(message, Message::Notification { .. }));
        drop(inner);
        self.news.notify_waiters();
    }

    pub fn finish(&self) {
        self.inner().finished = Some(Instant::now());
        self.news.notify_waiters();
    }

    pub fn is_finished(&self) -> bool {
        self.inner().finished.is_some()
    }

    pub fn is_stale(&self) -> bool {
        self.inner().finished.is_some_and(|at| at.elapsed() > KEEP)
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
    use octo_model::Members;
    use octo_wire::Id;

    fn notice(size: usize) -> Message {
        let params = Members::new().with("text", "x".repeat(size).as_str());
        Message::Notification { method: "notifications/message".to_owned(), params }
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_costs_a_bounded_amount() {
        for (size, many) in [(10, 20_000), (200_000, 50)] {
            let log = EventLog::new(7, true);
            log.push(&Message::Request {
                id: Id::number(1),
                method: "ask".to_owned(),
                params: Members::new(),
            });
            for _ in 0..many {
                log.push(&notice(size));
            }
            log.push(&Message::Response { id: Id::number(2), result: Members::new() });
            log.finish();
            let (mut place, mut seen, mut bytes) = (0, Vec::new(), 0);
            while let Some((event, next)) = log.next(place).await {
                assert!(next > place);
                bytes += event.len();
                seen.push(String::from_utf8(event.to_vec()).unwrap());
                place = next;
            }
            assert!(
                bytes < MAX_NOTICE_BYTES + 4_096 && seen.len() <= MAX_NOTICES + 3,
                "{bytes} {}",
                seen.len()
            );
            assert!(seen.iter().any(|event| event.contains("\"ask\"")), "questions stay");
            assert!(seen.last().unwrap().contains("\"result\""), "the answer stays");
            assert_eq!(place, 3 + many, "places are never given twice");
        }
    }
}
