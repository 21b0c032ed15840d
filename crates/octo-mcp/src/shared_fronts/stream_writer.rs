//! Stores the events of a stream before they are sent, so that the client can resume it at another front.

use crate::legacy_session::Session;
use crate::legacy_session::event_log::{EventLog, UnstoredEvents};
use crate::shared_fronts::SharedSession;
use octo_ports::sessions::{StreamAppend, StreamQuestion};
use octo_wire::Id;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the stream waits for the store. After that it goes on, but cannot be resumed elsewhere.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Stores the events of a log until its end.
pub async fn store_events(session: Arc<Session>, shared: SharedSession, log: Arc<EventLog>, request: Id) {
    let owner = shared.fronts.owner().await.to_owned();
    let request = request.json().as_str().to_owned();
    loop {
        let unstored = log.unstored().await;
        let (next, is_finished) = (unstored.next, unstored.is_finished);
        let append = stream_append(&session, log.number(), &owner, &request, unstored);
        match store(&shared, append).await {
            Some(true) if is_finished => return log.set_stored(u64::MAX),
            Some(true) => log.set_stored(next),
            Some(false) => return log.set_lost(),
            None => {
                tracing::warn!(target: "fleet", "a stream cannot be resumed at other fronts: its events were not stored");
                return log.set_stored(u64::MAX);
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
async fn store(shared: &SharedSession, append: StreamAppend) -> Option<bool> {
    let deadline = Instant::now() + STORE_TIMEOUT;
    loop {
        let stored = shared.fronts.sessions.append(&shared.key, append.clone());
        match tokio::time::timeout_at(deadline, stored).await {
            Ok(Ok(is_owner)) => return Some(is_owner),
            Ok(Err(error)) if Instant::now() + RETRY_INTERVAL < deadline => {
                tracing::debug!(target: "fleet", %error, "events were not stored");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            _ => return None,
        }
    }
}
