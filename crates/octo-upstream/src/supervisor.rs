//! Keeps one connection: makes it when it is needed, watches it, makes it again.

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::fail::{Fail, Outcome};
use crate::kind::Kind;
use crate::state::{Inner, Status};
use crate::{health, http, listen, listing};
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

/// Why a connection is no more.
enum End {
    Lost(Fail),
    /// Nobody has used it for a while, or somebody wants it to end.
    Idle,
    Stopped,
}

/// Runs until the upstream is stopped.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut backoff = Backoff::default();
    while let Some(woken) = sleep(&inner).await {
        let opened = tokio::select! {
            opened = connect(&inner, woken) => opened,
            () = inner.rest.until(true) => continue,
            () = inner.stop.cancelled() => break,
        };
        let why = match opened {
            Err(why) => {
                inner.status.send_replace(Status::Failed(why.clone()));
                inner.tell(&why);
                why
            }
            Ok(connection) => {
                inner.breaker.reached();
                let since = Instant::now();
                let why = match serve(&inner, &connection).await {
                    End::Stopped => break,
                    End::Idle => {
                        connection.close().await;
                        if !inner.is_lane {
                            // What it says while it goes wakes nobody.
                            inner.changes.take();
                        }
                        backoff.reset();
                        continue;
                    }
                    End::Lost(why) => why,
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

/// Waits until the connection is needed: whether it had been asleep, or nothing when it was stopped.
async fn sleep(inner: &Inner) -> Option<bool> {
    let asleep = || {
        inner.status.send_replace(Status::Asleep);
    };
    let rests = inner.rest.is_on();
    if rests {
        asleep();
    }
    // Nobody can come between the look at the calls and the sleep.
    let asleep = rests || (inner.may_sleep() && inner.load.unless_used(asleep));
    if !asleep {
        let was_asleep = matches!(&*inner.status.borrow(), Status::Asleep);
        return (!inner.stop.is_cancelled()).then_some(was_asleep);
    }
    // A wish from before has been granted.
    tokio::select! {
        biased;
        () = inner.wake.notified() => {}
        () = std::future::ready(()) => {}
    }
    let woken = tokio::select! {
        () = inner.load.wanted(), if !rests => Some(true),
        // Whoever needs it ends the rest.
        () = inner.rest.until(false), if rests => Some(true),
        () = inner.wake.notified() => Some(true),
        // Another connection to the same server has heard of it.
        () = inner.changes.heard(), if !inner.is_lane && !inner.is_bare() => Some(true),
        () = inner.stop.cancelled() => None,
    };
    inner.rest.set(false);
    woken
}

/// One try. A server that was ready may be gone for a moment before it is called down, and one that was asleep may take
/// its time.
async fn connect(inner: &Inner, woken: bool) -> Outcome<Arc<Connection>> {
    let plan = inner.plan();
    let limit = inner.spec.start_timeout;
    let opening = tokio::time::timeout(limit, Connection::open(inner, plan));
    tokio::pin!(opening);
    let opened = tokio::select! {
        opened = &mut opening => opened,
        () = tokio::time::sleep(GRACE), if !woken && inner.is_ready() => {
            inner.down("it is being started again");
            opening.await
        }
    };
    let opened = opened.unwrap_or(Err(Fail::Timeout(limit))).map(Arc::new);
    inner.learn(plan, &opened);
    opened
}

/// Serves calls until the connection ends.
async fn serve(inner: &Arc<Inner>, connection: &Arc<Connection>) -> End {
    let mut tasks = JoinSet::new();
    if let (Era::Legacy, Some(endpoint)) = (connection.era(), connection.http()) {
        let (tried, answered) = oneshot::channel();
        let (inbox, lost) = (connection.inbox.clone(), connection.lost.clone());
        tasks.spawn(http::follow_back_channel(endpoint.clone(), inbox, lost, tried));
        // A server that asks before it can be heard waits for ever, so calls begin afterwards.
        let _ = tokio::time::timeout(HEARING, answered).await;
    }
    inner.status.send_replace(Status::Up(connection.clone()));
    if inner.is_lister() {
        follow(inner, connection, &mut tasks);
    } else {
        // Only for the headers that mirror arguments; what is listed comes from the first connection.
        if connection.era() == Era::Modern && connection.http().is_some() {
            let (inner, connection) = (inner.clone(), connection.clone());
            tasks.spawn(async move { drop(listing::refresh(&inner, &connection, &[Kind::Tools]).await) });
        }
    }
    tasks.spawn(health::watch(inner.clone(), connection.clone()));
    tokio::select! {
        why = connection.lost.wait() => {
            inner.status.send_replace(Status::Waiting);
            End::Lost(why)
        }
        () = unused(inner) => {
            tasks.shutdown().await;
            End::Idle
        }
        () = inner.rest.until(true) => {
            inner.status.send_replace(Status::Waiting);
            tasks.shutdown().await;
            End::Idle
        }
        () = inner.stop.cancelled() => {
            tasks.shutdown().await;
            inner.status.send_replace(Status::Stopped);
            connection.close().await;
            End::Stopped
        }
    }
}

/// Keeps the lists up to date, and hears what the server tells by itself.
fn follow(inner: &Arc<Inner>, connection: &Arc<Connection>, tasks: &mut JoinSet<()>) {
    match connection.era() {
        Era::Modern => {
            tasks.spawn(listen::lists(inner.clone(), connection.clone()));
            tasks.spawn(listen::resources(inner.clone(), connection.clone()));
        }
        Era::Legacy => drop(tasks.spawn(listen::resubscribe(inner.clone(), connection.clone()))),
    }
    tasks.spawn(listing::keep(inner.clone(), connection.clone()));
}

/// Waits until nobody has used the connection for its idle time, and then lets nobody use it any more.
async fn unused(inner: &Inner) {
    let limit = inner.spec.idle;
    loop {
        inner.load.unused_for(limit).await;
        let watches = !inner.watched.wanted().borrow().uris.is_empty();
        let slept = !watches
            && inner.may_sleep()
            && inner.load.unless_used(|| {
                inner.status.send_replace(Status::Asleep);
            });
        if slept {
            return;
        }
        tokio::time::sleep(limit.max(BREATH)).await;
    }
}

/// Waits before the next try; false when there shall be none.
async fn pause(inner: &Inner, backoff: &mut Backoff, why: Fail) -> bool {
    if let Fail::Login(_) = why {
        backoff.slow();
    }
    if let Fail::Login(_) | Fail::Barred(_) = why {
        inner.status.send_replace(Status::Refused(why.clone()));
    }
    // What the server asks for holds whoever calls; the rest of the wait does not.
    let asked = match &why {
        Fail::Status { retry_after: Some(pause), .. } => *pause,
        _ => Duration::ZERO,
    };
    if !asked.is_zero() {
        inner.turns.hold(asked);
    }
    let wait = backoff.next_spread().max(asked);
    if wait > GRACE && (inner.is_ready() || matches!(why, Fail::Login(_))) {
        inner.tell(&why);
    }
    // Without a login it would only be refused again.
    let is_worth_it = !(inner.is_bare() && matches!(why, Fail::Login(_)));
    let breath = wait.min(BREATH).max(asked);
    let waiting = async {
        tokio::time::sleep(breath).await;
        tokio::select! {
            () = tokio::time::sleep(wait.saturating_sub(breath)), if is_worth_it => {}
            () = inner.wake.notified(), if wait > breath => {}
        }
    };
    tokio::select! {
        () = waiting => true,
        () = inner.relogin.notified(), if asked.is_zero() => {
            inner.forgive();
            true
        }
        () = inner.rest.until(true) => true,
        () = inner.stop.cancelled() => false,
    }
}
