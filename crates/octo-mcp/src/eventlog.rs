//! The events of one legacy stream, kept so that a client can come back for them.

use bytes::Bytes;
use octo_wire::{Message, sse};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the events of a finished stream are kept.
const KEEP: Duration = Duration::from_secs(300);
/// Time that a client waits before it comes back.
pub const RETRY_MS: u64 = 1_000;

pub struct EventLog {
    number: u64,
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Default)]
struct Inner {
    events: Vec<Bytes>,
    finished: Option<Instant>,
}

impl EventLog {
    /// With a priming event the client has an id to come back with before anything was sent.
    pub fn new(number: u64, primed: bool) -> Self {
        let first = if primed { sse::priming(&id(number, 0), RETRY_MS) } else { Bytes::new() };
        let inner = Inner { events: vec![first], finished: None };
        Self { number, inner: Mutex::new(inner), news: Notify::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, message: &Message) {
        let mut inner = self.inner();
        let event = sse::event(Some(&id(self.number, inner.events.len() as u64)), &message.to_bytes());
        inner.events.push(event);
        drop(inner);
        self.news.notify_waiters();
    }

    pub fn finish(&self) {
        self.inner().finished = Some(Instant::now());
        self.news.notify_waiters();
    }

    pub fn is_stale(&self) -> bool {
        self.inner().finished.is_some_and(|at| at.elapsed() > KEEP)
    }

    /// The event at a place; waits for it, and gives nothing past the end.
    pub async fn at(&self, place: usize) -> Option<Bytes> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let inner = self.inner();
                if let Some(event) = inner.events.get(place) {
                    return Some(event.clone());
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
