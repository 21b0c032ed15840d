//! The stream on which a legacy server speaks without being asked.

use super::endpoint::Endpoint;
use super::events::{Events, Mark};
use crate::backoff::Backoff;
use crate::fail::Fail;
use crate::inbox::{Inbox, Origin};
use crate::lost::Lost;
use crate::read::read;
use crate::wire::Wire;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A stream that lasted this long is opened again at once.
const STEADY: Duration = Duration::from_secs(5);

/// Keeps the stream open for as long as the server offers one; tells when the first try has been answered.
pub(crate) async fn follow(
    endpoint: Arc<Endpoint>,
    inbox: Arc<Inbox>,
    lost: Lost,
    tried: oneshot::Sender<()>,
) {
    let mut tried = Some(tried);
    let mut backoff = Backoff::default();
    let mut mark = Mark::default();
    loop {
        let opened = endpoint.listen(&mark).await;
        if let Some(tried) = tried.take() {
            let _ = tried.send(());
        }
        match opened {
            Ok(mut events) => {
                let since = Instant::now();
                hear(&endpoint, &inbox, &mut events).await;
                if since.elapsed() > STEADY {
                    backoff.reset();
                }
                mark = events.mark;
            }
            Err(why @ (Fail::Expired | Fail::NotSent(_))) => return lost.set(why),
            Err(Fail::Reset(_) | Fail::Barred(_)) => {}
            Err(Fail::Status { code: 500.., .. }) => {}
            // 405: no such stream. Nothing else that a server may say here will change by asking again.
            Err(why) => {
                tracing::debug!(target: "upstream", server = %inbox.name, %why, "no stream for the server's own messages");
                return;
            }
        }
        // The server's own wait is kept even the first time.
        let wait = backoff.next().max(mark.retry.unwrap_or_default());
        tokio::time::sleep(wait).await;
    }
}

async fn hear(endpoint: &Arc<Endpoint>, inbox: &Arc<Inbox>, events: &mut Events) {
    let wire = Wire::Http(endpoint.clone());
    while let Ok(Some(text)) = events.next().await {
        match read(text) {
            Ok(messages) => messages.into_iter().for_each(|one| inbox.take(one, Origin::Shared, &wire)),
            Err(broken) => {
                tracing::debug!(target: "upstream", server = %inbox.name, fault = %broken.fault, "an event that is not a message");
            }
        }
    }
}
