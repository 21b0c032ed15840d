//! Reads a stream that another front writes, or wrote until it died.

use crate::incoming::response_message;
use crate::legacy_session::event_log::encode_event;
use crate::rpc_errors::rpc_error;
use crate::shared_fronts::SharedSession;
use bytes::Bytes;
use octo_model::Json;
use octo_ports::StoreResult;
use octo_ports::sessions::{AdoptedStream, StreamAppend, StreamEvent};
use octo_wire::{Id, code};
use std::collections::VecDeque;
use std::time::Duration;

/// How often the store is read while nothing happens, at first and at last.
const POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Attempts to store the end of a stream: about two minutes.
const MAX_FINISH_ATTEMPTS: u32 = 120;
/// Failures of the store in a row after which the client has to try again.
const MAX_FAILURES: u32 = 10;

pub struct StreamFollower {
    session: SharedSession,
    number: u64,
    /// Sequence number of the next event.
    next: u64,
    ready: VecDeque<StreamEvent>,
    is_finished: bool,
    poll_interval: Duration,
    failures: u32,
}

impl StreamFollower {
    /// Follows a stream from an event on; `None` if its events are gone.
    pub async fn open(session: SharedSession, number: u64, from: u64) -> StoreResult<Option<Self>> {
        let mut follower = Self {
            session,
            number,
            next: from,
            ready: VecDeque::new(),
            is_finished: false,
            poll_interval: POLL_INTERVALS.0,
            failures: 0,
        };
        Ok(follower.read().await?.then_some(follower))
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event.text.into());
            }
            if self.is_finished {
                return None;
            }
            match self.read().await {
                Ok(true) => self.failures = 0,
                Ok(false) => return None,
                Err(_) if self.failures < MAX_FAILURES => self.failures += 1,
                Err(_) => return None,
            }
            if self.ready.is_empty() && !self.is_finished {
                tokio::time::sleep(self.poll_interval).await;
                self.poll_interval = (self.poll_interval * 2).min(POLL_INTERVALS.1);
            }
        }
    }

    /// Reads what is new; `false` if the stream is gone.
    async fn read(&mut self) -> StoreResult<bool> {
        let fronts = &self.session.fronts;
        let Some(part) = fronts.sessions.read(&self.session.key, self.number, self.next).await? else {
            return Ok(false);
        };
        if let Some(last) = part.events.last() {
            self.next = last.sequence + 1;
            self.poll_interval = POLL_INTERVALS.0;
        }
        self.is_finished = part.is_finished && !part.has_more;
        self.ready.extend(part.events);
        if part.is_orphaned && self.session.fronts.may_adopt() {
            finish_orphan(self.session.clone(), self.number).await?;
        }
        Ok(true)
    }
}

/// Answers the request of a front that died: nobody knows what became of the call.
async fn finish_orphan(session: SharedSession, number: u64) -> StoreResult<()> {
    let fronts = &session.fronts;
    let owner = fronts.owner().await;
    if let Some(stream) = fronts.sessions.adopt(&session.key, number, owner).await? {
        finish_lost(&session, stream);
    }
    Ok(())
}

/// Ends a stream that this front has taken with the answer that nobody knows what became of the call. Goes on when the
/// client has disconnected, since nobody else ends it.
pub fn finish_lost(session: &SharedSession, stream: AdoptedStream) {
    let session = session.clone();
    tokio::spawn(async move {
        let owner = session.fronts.owner().await;
        let append = last_event(stream, owner);
        let mut pause = POLL_INTERVALS.0;
        for _ in 0..MAX_FINISH_ATTEMPTS {
            match session.fronts.sessions.append(&session.key, append.clone()).await {
                Ok(_) => return,
                Err(error) => tracing::warn!(target: "fleet", %error, "the end of a stream was not stored"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_INTERVALS.1);
        }
    });
}

fn last_event(stream: AdoptedStream, owner: &str) -> StreamAppend {
    let error = rpc_error(
        code::INTERNAL,
        "The hub that ran this call has stopped. It is unknown whether the call took effect: check before you repeat it.",
    );
    let id =
        Json::parse(stream.request.clone()).ok().and_then(Id::from_json).unwrap_or_else(|| Id::number(0));
    let text = encode_event(stream.number, stream.next, &response_message(id, Err(error)));
    StreamAppend {
        number: stream.number,
        owner: owner.to_owned(),
        request: stream.request,
        first: stream.next,
        next: stream.next + 1,
        events: vec![StreamEvent { sequence: stream.next, text: text.to_vec(), is_droppable: false }],
        dropped_before: 0,
        question: None,
        is_finished: true,
    }
}
