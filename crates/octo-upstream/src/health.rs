//! Whether a quiet server is still there.

use crate::connection::Connection;
use crate::fail::Fail;
use crate::state::Inner;
use octo_model::JsonObject;
use octo_wire::Era;
use std::sync::Arc;
use std::time::Duration;

/// The longest that a sign of life may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks now and then while nobody calls, and at once after a call that was not answered in time. A server that has calls
/// to work on may be too busy to answer, so that it is given up only when it has none.
pub(crate) async fn watch(inner: Arc<Inner>, connection: Arc<Connection>) {
    let (Some(every), Some(method)) = (inner.spec.ping, method(&connection)) else { return };
    loop {
        let quiet = async {
            tokio::time::sleep(every).await;
            inner.load.unused_for(every).await;
        };
        tokio::select! {
            () = quiet => {}
            () = inner.doubt.notified() => {}
        }
        match connection.ask_within(PATIENCE.min(every), method, JsonObject::new()).await {
            Err(Fail::Timeout(_)) if inner.load.calls() == 0 => {
                return connection.lost.set(Fail::Lost("it does not answer any more".to_owned()));
            }
            Err(why @ (Fail::NotSent(_) | Fail::Expired)) => return connection.lost.set(why),
            // An error is a sign of life, too.
            _ => {}
        }
    }
}

/// What every server answers. A modern one over HTTP has no session that could be lost.
fn method(connection: &Connection) -> Option<&'static str> {
    match (connection.era(), connection.http()) {
        (Era::Legacy, _) => Some("ping"),
        (Era::Modern, None) => Some("server/discover"),
        (Era::Modern, Some(_)) => None,
    }
}
