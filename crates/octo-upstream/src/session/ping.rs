//! Whether a quiet server is still there.

use crate::admission::active_calls::ActiveCalls;
use crate::error::UpstreamError;
use crate::session::connection::Connection;
use octo_model::JsonObject;
use octo_wire::Era;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The longest that a sign of life may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks now and then while nobody calls, and at once after a call that was not answered in time. A server that has calls
/// to work on may be too busy to answer, so that it is given up only when it has none.
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
                return connection
                    .closed
                    .set(UpstreamError::ConnectionLost("it does not answer any more".to_owned()));
            }
            Err(why @ (UpstreamError::NotSent(_) | UpstreamError::SessionExpired)) => {
                return connection.closed.set(why);
            }
            // An error is a sign of life, too.
            _ => {}
        }
    }
}

/// What every server answers. A modern one over HTTP has no session that could be lost.
fn ping_method(connection: &Connection) -> Option<&'static str> {
    match (connection.era(), connection.http()) {
        (Era::Legacy, _) => Some("ping"),
        (Era::Modern, None) => Some("server/discover"),
        (Era::Modern, Some(_)) => None,
    }
}
