//! Stores the events of a stream before they are sent, so that the client can resume it at another front.

use crate::legacy_session::Session;
use crate::legacy_session::event_log::{EventLog, UnstoredEvents};
use crate::shared_fronts::SharedSession;
use octo_ports::sessions::{StreamAppend, StreamQuestion};
use octo_wire::Id;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the stream waits for the store. After that its events are sent before they are stored.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the store is tried. After that the stream cannot be resumed elsewhere.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(300);
/// Pauses between attempts, at first and at last.
const RETRY_INTERVALS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Stores the events of a log until its end.
pub async fn store_events(session: Arc<Session>, shared: SharedSession, log: Arc<EventLog>, request: Id) {
    let owner = shared.fronts.owner().await.to_owned();
    let request = request.json().as_str().to_owned();
    loop {
        let unstored = log.unstored().await;
        let (next, is_finished) = (unstored.next, unstored.is_finished);
        let append = stream_append(&session, log.number(), &owner, &request, unstored);
        match store(&shared, append, &log).await {
            Some(true) if is_finished => return log.set_stored(next),
            Some(true) => log.set_stored(next),
            Some(false) => return log.set_lost(),
            None => {
                return tracing::warn!(target: "fleet", "a stream cannot be resumed at other fronts: its events were not stored");
            }
        }
    }
}

fn stream_append(
    session: &Session,
    number: u64,
    owner: &str,
    request: &str,
    unstored: UnstoredEvents,
) -> StreamAppend {
    let question =
        unstored.question.map(|number| StreamQuestion { number, call: session.parked_call(number) });
    StreamAppend {
        number,
        owner: owner.to_owned(),
        request: request.to_owned(),
        first: unstored.first,
        next: unstored.next,
        events: unstored.events,
        dropped_before: unstored.dropped_before,
        question,
        is_finished: unstored.is_finished,
    }
}

/// Whether this front still owns the stream; `None` if the store is not available.
async fn store(shared: &SharedSession, append: StreamAppend, log: &EventLog) -> Option<bool> {
    let started = Instant::now();
    let mut pause = RETRY_INTERVALS.0;
    while started.elapsed() < GIVE_UP_TIMEOUT {
        let stored = shared.fronts.sessions.append(&shared.key, append.clone());
        match tokio::time::timeout(STORE_TIMEOUT, stored).await {
            Ok(Ok(is_owner)) => return Some(is_owner),
            Ok(Err(error)) => tracing::debug!(target: "fleet", %error, "events were not stored"),
            Err(_) => tracing::debug!(target: "fleet", "events were not stored in time"),
        }
        if started.elapsed() + pause >= STORE_TIMEOUT {
            log.send_unstored();
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_INTERVALS.1);
    }
    log.send_unstored();
    None
}
