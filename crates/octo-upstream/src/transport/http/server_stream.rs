//! GET stream on which a legacy server sends requests and notifications.

use super::endpoint::Endpoint;
use super::event_stream::{EventStream, ResumePoint};
use crate::error::UpstreamError;
use crate::session::dispatcher::{Dispatcher, MessageOrigin};
use crate::transport::Transport;
use crate::transport::close_signal::CloseSignal;
use crate::transport::decode::decode_message;
use octo_toolkit::Backoff;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A stream that lasted this long is reopened immediately.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Keeps the stream open while the server offers one; signals when the first attempt was answered.
pub(crate) async fn run_server_stream(
    endpoint: Arc<Endpoint>,
    inbox: Arc<Dispatcher>,
    lost: CloseSignal,
    tried: oneshot::Sender<()>,
) {
    let mut tried = Some(tried);
    let mut backoff = Backoff::default();
    let mut mark = ResumePoint::default();
    loop {
        let opened = endpoint.listen(&mark).await;
        if let Some(tried) = tried.take() {
            let _ = tried.send(());
        }
        match opened {
            Ok(mut events) => {
                let since = Instant::now();
                dispatch_events(&endpoint, &inbox, &mut events).await;
                if since.elapsed() > STABLE_AFTER {
                    backoff.reset();
                }
                mark = events.resume_point;
            }
            Err(why @ (UpstreamError::SessionExpired | UpstreamError::NotSent(_))) => return lost.set(why),
            Err(UpstreamError::ConnectionReset(_) | UpstreamError::CredentialUnusable(_)) => {}
            Err(UpstreamError::Status { code: 500.., .. }) => {}
            // 405: the server has no such stream. Other errors are permanent, too.
            Err(why) => {
                tracing::debug!(target: "upstream", server = %inbox.name, %why, "no server stream");
                return;
            }
        }
        // The server's `retry` applies even the first time.
        let wait = backoff.next_delay().max(mark.retry.unwrap_or_default());
        tokio::time::sleep(wait).await;
    }
}

async fn dispatch_events(endpoint: &Arc<Endpoint>, inbox: &Arc<Dispatcher>, events: &mut EventStream) {
    let wire = Transport::Http(endpoint.clone());
    while let Ok(Some(text)) = events.next().await {
        match decode_message(text).await {
            Ok(messages) => {
                messages.into_iter().for_each(|one| inbox.dispatch(one, MessageOrigin::Shared, &wire))
            }
            Err(broken) => {
                tracing::debug!(target: "upstream", server = %inbox.name, fault = %broken.fault, "invalid message in an event");
            }
        }
    }
}
