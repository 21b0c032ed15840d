//! Liveness check of an idle server.

use crate::admission::active_calls::ActiveCalls;
use crate::error::UpstreamError;
use crate::session::connection::Connection;
use octo_model::JsonObject;
use octo_wire::Era;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Ping timeout.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Pings periodically while idle, and immediately after a call timed out. A server with active calls may be too busy to
/// answer, so it is given up only without any.
pub(crate) async fn monitor(
    every: Duration,
    calls: Arc<ActiveCalls>,
    check: Arc<Notify>,
    connection: Arc<Connection>,
) {
    let Some(method) = ping_method(&connection) else { return };
    loop {
        let quiet = async {
            tokio::time::sleep(every).await;
            calls.wait_idle(every).await;
        };
        tokio::select! {
            () = quiet => {}
            () = check.notified() => {}
        }
        match connection.request_within(PING_TIMEOUT.min(every), method, JsonObject::new()).await {
            Err(UpstreamError::Timeout(_)) if calls.count() == 0 => {
                return connection.closed.set(UpstreamError::ConnectionLost("ping timed out".to_owned()));
            }
            Err(why @ (UpstreamError::NotSent(_) | UpstreamError::SessionExpired)) => {
                return connection.closed.set(why);
            }
            // An error is a sign of life, too.
            _ => {}
        }
    }
}

/// A method that every server answers. A modern server over HTTP has no session that could be lost.
fn ping_method(connection: &Connection) -> Option<&'static str> {
    match (connection.era(), connection.http()) {
        (Era::Legacy, _) => Some("ping"),
        (Era::Modern, None) => Some("server/discover"),
        (Era::Modern, Some(_)) => None,
    }
}
