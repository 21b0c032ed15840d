//! Keeps one connection: makes it when it is needed, watches it, makes it again.

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::error::{UpstreamError, UpstreamResult};
use crate::link::{Link, LinkState};
use crate::list_kind::ListKind;
use crate::{change_streams, http, listing_refresh, ping};
use octo_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A loss that is mended within this time is not shown to anybody.
const RECONNECT_GRACE: Duration = Duration::from_secs(1);
/// A connection that lasted this long starts with a clean slate.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// However many callers wait, there is this much time between two tries.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the stream for a server's own messages may take to open; some servers say nothing until they have one.
const STREAM_OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a connection is no more.
enum LinkEnd {
    Lost(UpstreamError),
    /// Nobody has used it for a while, or somebody wants it to end.
    Idle,
    Stopped,
}

/// Runs until the upstream is stopped.
pub(crate) async fn run(inner: Arc<Link>) {
    let mut backoff = Backoff::default();
    while let Some(woken) = wait_until_needed(&inner).await {
        let opened = tokio::select! {
            opened = connect(&inner, woken) => opened,
            () = inner.suspension.wait_for(true) => continue,
            () = inner.stop.cancelled() => break,
        };
        let why = match opened {
            Err(why) => {
                inner.state.send_replace(LinkState::BackingOff(why.clone()));
                inner.report_failure(&why);
                why
            }
            Ok(connection) => {
                inner.breaker.mark_reachable();
                let since = Instant::now();
                let why = match serve(&inner, &connection).await {
                    LinkEnd::Stopped => break,
                    LinkEnd::Idle => {
                        connection.close().await;
                        if !inner.is_extra {
                            // What it says while it goes wakes nobody.
                            inner.list_changes.take();
                        }
                        backoff.reset();
                        continue;
                    }
                    LinkEnd::Lost(why) => why,
                };
                tracing::info!(target: "upstream", server = %inner.name, %why, "connection lost");
                connection.teardown().await;
                if since.elapsed() > STABLE_AFTER {
                    backoff.reset();
                }
                why
            }
        };
        if !wait_before_retry(&inner, &mut backoff, why).await {
            break;
        }
    }
    inner.state.send_replace(LinkState::Stopped);
    inner.mark_down("stopped");
}

/// Waits until the connection is needed: whether it had been asleep, or nothing when it was stopped.
async fn wait_until_needed(inner: &Link) -> Option<bool> {
    let asleep = || {
        inner.state.send_replace(LinkState::Idle);
    };
    let rests = inner.suspension.is_suspended();
    if rests {
        asleep();
    }
    // Nobody can come between the look at the calls and the sleep.
    let asleep = rests || (inner.may_idle() && inner.active_calls.if_idle(asleep));
    if !asleep {
        let was_asleep = matches!(&*inner.state.borrow(), LinkState::Idle);
        return (!inner.stop.is_cancelled()).then_some(was_asleep);
    }
    // A wish from before has been granted.
    tokio::select! {
        biased;
        () = inner.connect_request.notified() => {}
        () = std::future::ready(()) => {}
    }
    let woken = tokio::select! {
        () = inner.active_calls.wait_for_call(), if !rests => Some(true),
        // Whoever needs it ends the rest.
        () = inner.suspension.wait_for(false), if rests => Some(true),
        () = inner.connect_request.notified() => Some(true),
        // Another connection to the same server has heard of it.
        () = inner.list_changes.wait(), if !inner.is_extra && !inner.is_anonymous() => Some(true),
        () = inner.stop.cancelled() => None,
    };
    inner.suspension.set(false);
    woken
}

/// One try. A server that was ready may be gone for a moment before it is called down, and one that was asleep may take
/// its time.
async fn connect(inner: &Link, woken: bool) -> UpstreamResult<Arc<Connection>> {
    let plan = inner.negotiation_plan();
    let limit = inner.spec.start_timeout;
    let opening = tokio::time::timeout(limit, Connection::open(inner, plan));
    tokio::pin!(opening);
    let opened = tokio::select! {
        opened = &mut opening => opened,
        () = tokio::time::sleep(RECONNECT_GRACE), if !woken && inner.is_ready() => {
            inner.mark_down("it is being started again");
            opening.await
        }
    };
    let opened = opened.unwrap_or(Err(UpstreamError::Timeout(limit))).map(Arc::new);
    inner.record_negotiation(plan, &opened);
    opened
}

/// Serves calls until the connection ends.
async fn serve(inner: &Arc<Link>, connection: &Arc<Connection>) -> LinkEnd {
    let mut tasks = JoinSet::new();
    if let (Era::Legacy, Some(endpoint)) = (connection.era(), connection.http()) {
        let (tried, answered) = oneshot::channel();
        let (inbox, lost) = (connection.dispatcher.clone(), connection.closed.clone());
        tasks.spawn(http::follow_back_channel(endpoint.clone(), inbox, lost, tried));
        // A server that asks before it can be heard waits for ever, so calls begin afterwards.
        let _ = tokio::time::timeout(STREAM_OPEN_TIMEOUT, answered).await;
    }
    inner.state.send_replace(LinkState::Up(connection.clone()));
    if inner.lists_items() {
        spawn_listing_tasks(inner, connection, &mut tasks);
    } else {
        // Only for the headers that mirror arguments; what is listed comes from the first connection.
        if connection.era() == Era::Modern && connection.http().is_some() {
            let (inner, connection) = (inner.clone(), connection.clone());
            tasks.spawn(async move {
                drop(listing_refresh::refresh(&inner, &connection, &[ListKind::Tools]).await)
            });
        }
    }
    tasks.spawn(ping::monitor(inner.clone(), connection.clone()));
    tokio::select! {
        why = connection.closed.wait() => {
            inner.state.send_replace(LinkState::Connecting);
            LinkEnd::Lost(why)
        }
        () = wait_until_idle(inner) => {
            tasks.shutdown().await;
            LinkEnd::Idle
        }
        () = inner.suspension.wait_for(true) => {
            inner.state.send_replace(LinkState::Connecting);
            tasks.shutdown().await;
            LinkEnd::Idle
        }
        () = inner.stop.cancelled() => {
            tasks.shutdown().await;
            inner.state.send_replace(LinkState::Stopped);
            connection.close().await;
            LinkEnd::Stopped
        }
    }
}

/// Keeps the lists up to date, and hears what the server tells by itself.
fn spawn_listing_tasks(inner: &Arc<Link>, connection: &Arc<Connection>, tasks: &mut JoinSet<()>) {
    match connection.era() {
        Era::Modern => {
            tasks.spawn(change_streams::follow_list_changes(inner.clone(), connection.clone()));
            tasks.spawn(change_streams::follow_resource_updates(inner.clone(), connection.clone()));
        }
        Era::Legacy => drop(tasks.spawn(change_streams::resubscribe(inner.clone(), connection.clone()))),
    }
    tasks.spawn(listing_refresh::keep_current(inner.clone(), connection.clone()));
}

/// Waits until nobody has used the connection for its idle time, and then lets nobody use it any more.
async fn wait_until_idle(inner: &Link) {
    let limit = inner.spec.idle_timeout;
    loop {
        inner.active_calls.wait_idle(limit).await;
        let watches = !inner.subscriptions.desired().borrow().uris.is_empty();
        let slept = !watches
            && inner.may_idle()
            && inner.active_calls.if_idle(|| {
                inner.state.send_replace(LinkState::Idle);
            });
        if slept {
            return;
        }
        tokio::time::sleep(limit.max(MIN_RETRY_DELAY)).await;
    }
}

/// Waits before the next try; false when there shall be none.
async fn wait_before_retry(inner: &Link, backoff: &mut Backoff, why: UpstreamError) -> bool {
    if let UpstreamError::Unauthorized(_) = why {
        backoff.jump_to_max();
    }
    if let UpstreamError::Unauthorized(_) | UpstreamError::CredentialUnusable(_) = why {
        inner.state.send_replace(LinkState::Refused(why.clone()));
    }
    // What the server asks for holds whoever calls; the rest of the wait does not.
    let asked = match &why {
        UpstreamError::Status { retry_after: Some(pause), .. } => *pause,
        _ => Duration::ZERO,
    };
    if !asked.is_zero() {
        inner.queue.pause_for(asked);
    }
    let wait = backoff.next_with_jitter().max(asked);
    if wait > RECONNECT_GRACE && (inner.is_ready() || matches!(why, UpstreamError::Unauthorized(_))) {
        inner.report_failure(&why);
    }
    // Without a login it would only be refused again.
    let is_worth_it = !(inner.is_anonymous() && matches!(why, UpstreamError::Unauthorized(_)));
    let breath = wait.min(MIN_RETRY_DELAY).max(asked);
    let waiting = async {
        tokio::time::sleep(breath).await;
        tokio::select! {
            () = tokio::time::sleep(wait.saturating_sub(breath)), if is_worth_it => {}
            () = inner.connect_request.notified(), if wait > breath => {}
        }
    };
    tokio::select! {
        () = waiting => true,
        () = inner.login_changed.notified(), if asked.is_zero() => {
            inner.clear_failure();
            true
        }
        () = inner.suspension.wait_for(true) => true,
        () = inner.stop.cancelled() => false,
    }
}
