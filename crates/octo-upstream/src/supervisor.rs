//! Keeps one upstream connected: starts it, watches it, starts it again.

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::fail::{Fail, Outcome};
use crate::state::{Inner, Status};
use crate::{http, listen, listing};
use octo_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A loss that is mended within this time is not shown to anybody.
const GRACE: Duration = Duration::from_secs(1);
/// A connection that lasted this long starts with a clean slate.
const STEADY: Duration = Duration::from_secs(10);
/// However many callers wait, there is this much time between two tries.
const BREATH: Duration = Duration::from_secs(1);

/// How long the stream for a server's own messages may take to open; some servers say nothing until they have one.
const HEARING: Duration = Duration::from_millis(500);

/// Runs until the upstream is stopped.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut backoff = Backoff::default();
    loop {
        let opened = tokio::select! {
            opened = connect(&inner) => opened,
            () = inner.stop.cancelled() => break,
        };
        let why = match opened {
            Err(why) => {
                inner.down(&why.to_string());
                why
            }
            Ok(connection) => {
                let since = Instant::now();
                let Some(why) = serve(&inner, &connection).await else {
                    break;
                };
                tracing::info!(target: "upstream", server = %inner.name, %why, "connection lost");
                connection.bury().await;
                if since.elapsed() > STEADY {
                    backoff.reset();
                }
                why
            }
        };
        if !pause(&inner, &mut backoff, why).await {
            break;
        }
    }
    inner.status.send_replace(Status::Stopped);
    inner.down("stopped");
}

/// One try. A server that was ready may be gone for a moment before it is called down.
async fn connect(inner: &Inner) -> Outcome<Arc<Connection>> {
    let plan = inner.plan();
    let limit = inner.spec.start_timeout;
    let opening = tokio::time::timeout(limit, Connection::open(inner, plan));
    tokio::pin!(opening);
    let opened = tokio::select! {
        opened = &mut opening => opened,
        () = tokio::time::sleep(GRACE), if inner.is_ready() => {
            inner.down("it is being started again");
            opening.await
        }
    };
    let opened = opened.unwrap_or(Err(Fail::Timeout(limit))).map(Arc::new);
    inner.learn(plan, &opened);
    opened
}

/// Serves calls until the connection is lost; nothing when it was stopped.
async fn serve(inner: &Arc<Inner>, connection: &Arc<Connection>) -> Option<Fail> {
    let mut tasks = JoinSet::new();
    if let (Era::Legacy, Some(endpoint)) = (connection.era(), connection.http()) {
        let (tried, answered) = oneshot::channel();
        let (inbox, lost) = (connection.inbox.clone(), connection.lost.clone());
        tasks.spawn(http::follow_back_channel(endpoint.clone(), inbox, lost, tried));
        // A server that asks before it can be heard waits for ever, so calls begin afterwards.
        let _ = tokio::time::timeout(HEARING, answered).await;
    }
    inner.status.send_replace(Status::Up(connection.clone()));
    match connection.era() {
        Era::Modern => {
            tasks.spawn(listen::lists(inner.clone(), connection.clone()));
            tasks.spawn(listen::resources(inner.clone(), connection.clone()));
        }
        Era::Legacy => drop(tasks.spawn(listen::resubscribe(inner.clone(), connection.clone()))),
    }
    tasks.spawn(listing::keep(inner.clone(), connection.clone()));
    tokio::select! {
        why = connection.lost.wait() => {
            inner.status.send_replace(Status::Waiting);
            Some(why)
        }
        () = inner.stop.cancelled() => {
            tasks.shutdown().await;
            inner.status.send_replace(Status::Stopped);
            connection.close().await;
            None
        }
    }
}

/// Waits before the next try; false when there shall be none.
async fn pause(inner: &Inner, backoff: &mut Backoff, why: Fail) -> bool {
    if let Fail::Login(_) = why {
        backoff.slow();
        inner.status.send_replace(Status::Refused(why.clone()));
    }
    let wait = backoff.next();
    if wait > GRACE && inner.is_ready() {
        inner.down(&why.to_string());
    }
    let waiting = async {
        tokio::time::sleep(wait.min(BREATH)).await;
        tokio::select! {
            () = tokio::time::sleep(wait.saturating_sub(BREATH)) => {}
            () = inner.wake.notified(), if wait > BREATH => {}
        }
    };
    tokio::select! {
        () = waiting => true,
        () = inner.stop.cancelled() => false,
    }
}
