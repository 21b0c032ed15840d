//! Supervisor of one link: connects when needed, monitors the connection and reconnects.

use crate::error::{UpstreamError, UpstreamResult};
use crate::lifecycle::link::Link;
use crate::lifecycle::link_state::{LinkEvent, LinkState};
use crate::lifecycle::open_connection::open_connection;
use crate::listing::{change_streams, listing_refresh};
use crate::session::connection::Connection;
use crate::session::ping;
use crate::transport::http::server_stream::run_server_stream;
use futures_util::FutureExt;
use octo_model::ItemKind;
use octo_toolkit::Backoff;
use octo_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::task::JoinSet;

/// A connection that is restored within this time is not reported as lost.
const RECONNECT_GRACE: Duration = Duration::from_secs(1);
/// A connection that lasted this long resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// Minimum delay between two attempts, regardless of waiting calls.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the server stream may take to open; some servers send no response until they have a message.
const STREAM_OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a connection ended.
enum LinkEnd {
    Lost(UpstreamError),
    /// Idle timeout, or ended on request.
    Idle,
    Stopped,
}

/// Runs until the upstream is stopped.
pub(crate) async fn run(link: Arc<Link>) {
    let mut backoff = Backoff::default();
    while wait_until_needed(&link).await {
        let opened = tokio::select! {
            opened = connect(&link) => opened,
            _ = link.wait_for_state(LinkState::is_suspended) => continue,
            () = link.stop.cancelled() => break,
        };
        let why = match opened {
            Err(why) => {
                link.apply(LinkEvent::Failed(why.clone()));
                link.report_failure(&why);
                why
            }
            Ok(connection) => {
                link.breaker.mark_reachable();
                let since = Instant::now();
                let why = match serve(&link, &connection).await {
                    LinkEnd::Stopped => break,
                    LinkEnd::Idle => {
                        connection.close().await;
                        if link.is_primary() {
                            // List changes reported while closing do not wake it.
                            link.server.list_changes.take();
                        }
                        backoff.reset();
                        continue;
                    }
                    LinkEnd::Lost(why) => why,
                };
                tracing::info!(target: "upstream", server = %link.server.name, %why, "connection lost");
                connection.teardown().await;
                if since.elapsed() > STABLE_AFTER {
                    backoff.reset();
                }
                why
            }
        };
        if !wait_before_retry(&link, &mut backoff, why).await {
            break;
        }
    }
    link.apply(LinkEvent::Stopped);
    link.mark_down("stopped");
}

/// Waits until a connection is needed; false if the link was stopped.
async fn wait_until_needed(link: &Link) -> bool {
    let close = || {
        link.apply(LinkEvent::Closed);
    };
    loop {
        let is_suspended = link.state().is_suspended();
        if is_suspended {
            close();
        } else if !link.may_idle() || !link.active_calls.if_idle(close) {
            // No call can start between the check and the sleep.
            break;
        }
        // Drop an earlier request, which has been served.
        let _ = link.connect_request.notified().now_or_never();
        tokio::select! {
            _ = link.wait_for_state(|state| !state.is_resting()) => {}
            // Calls that were active when the link was suspended do not wake it.
            () = link.active_calls.wait_for_call(), if !is_suspended => {
                link.apply(LinkEvent::Needed);
            }
            // Another link to the same server was notified of a change.
            () = link.server.list_changes.wait(), if link.is_primary() && !link.is_anonymous() => {
                link.apply(LinkEvent::Needed);
            }
            () = link.stop.cancelled() => return false,
        }
        // The link may have been suspended again in the meantime.
        if !link.state().is_suspended() {
            break;
        }
    }
    link.apply(LinkEvent::AttemptStarted);
    !link.stop.is_cancelled()
}

/// One after the other: package managers that fill the same cache at the same time are slow, and break it at times.
static INSTALL_TURN: Semaphore = Semaphore::const_new(1);

/// Timeout of a start. A program that may install itself first waits for its turn.
async fn start_turn(link: &Link) -> (Duration, Option<SemaphorePermit<'static>>) {
    let spec = &link.server.spec;
    match spec.install_timeout {
        Some(install) if !link.server.listing.is_ready() => {
            (install.max(spec.start_timeout), INSTALL_TURN.acquire().await.ok())
        }
        _ => (spec.start_timeout, None),
    }
}

/// Makes one attempt. A server that was ready has a grace period before it is marked as down; one that was idle may
/// take longer.
async fn connect(link: &Link) -> UpstreamResult<Arc<Connection>> {
    let is_reconnect = !link.is_starting();
    let plan = link.negotiation.plan(&link.server.spec);
    let (limit, _turn) = start_turn(link).await;
    let opening = tokio::time::timeout(limit, open_connection(link, plan));
    tokio::pin!(opening);
    let opened = tokio::select! {
        opened = &mut opening => opened,
        () = tokio::time::sleep(RECONNECT_GRACE), if is_reconnect && link.is_listed() => {
            link.mark_down("reconnecting");
            opening.await
        }
    };
    let opened = opened.unwrap_or(Err(UpstreamError::Timeout(limit))).map(Arc::new);
    link.record_negotiation(plan, &opened);
    opened
}

/// Serves calls until the connection ends.
async fn serve(link: &Arc<Link>, connection: &Arc<Connection>) -> LinkEnd {
    let mut tasks = JoinSet::new();
    if let (Era::Legacy, Some(endpoint)) = (connection.era(), connection.http()) {
        let (tried, answered) = oneshot::channel();
        let (inbox, lost) = (connection.dispatcher.clone(), connection.closed.clone());
        tasks.spawn(run_server_stream(endpoint.clone(), inbox, lost, tried));
        // A server that sends requests before the stream is open would wait forever, so calls start afterwards.
        let _ = tokio::time::timeout(STREAM_OPEN_TIMEOUT, answered).await;
    }
    if !link.come_up(connection.clone()) {
        tasks.shutdown().await;
        return LinkEnd::Idle;
    }
    if link.lists_items() {
        spawn_listing_tasks(link, connection, &mut tasks);
    } else if connection.era() == Era::Modern && connection.http().is_some() {
        // Needed only for the headers that mirror arguments; the listing comes from the primary link.
        let (link, connection) = (link.clone(), connection.clone());
        tasks.spawn(
            async move { drop(listing_refresh::refresh(&link, &connection, &[ItemKind::Tool]).await) },
        );
    }
    if let Some(every) = link.server.spec.ping_interval {
        let (calls, check) = (link.active_calls.clone(), link.health_check.clone());
        tasks.spawn(ping::monitor(every, calls, check, connection.clone()));
    }
    tokio::select! {
        why = connection.closed.wait() => {
            link.apply(LinkEvent::ConnectionLost);
            LinkEnd::Lost(why)
        }
        () = wait_until_idle(link) => {
            tasks.shutdown().await;
            LinkEnd::Idle
        }
        // Ended on request.
        _ = link.wait_for_state(|state| !state.is_up()) => {
            tasks.shutdown().await;
            LinkEnd::Idle
        }
        () = link.stop.cancelled() => {
            tasks.shutdown().await;
            link.apply(LinkEvent::Stopped);
            connection.close().await;
            LinkEnd::Stopped
        }
    }
}

/// Keeps the listing up to date and follows notifications. The primary link handles resource subscriptions.
fn spawn_listing_tasks(link: &Arc<Link>, connection: &Arc<Connection>, tasks: &mut JoinSet<()>) {
    let (server, is_primary) = (&link.server, link.is_primary());
    match connection.era() {
        Era::Modern => {
            tasks.spawn(change_streams::follow_list_changes(server.clone(), connection.clone()));
            if is_primary {
                tasks.spawn(change_streams::follow_resource_updates(server.clone(), connection.clone()));
            }
        }
        Era::Legacy if is_primary => {
            tasks.spawn(change_streams::resubscribe(server.clone(), connection.clone()));
        }
        Era::Legacy => {}
    }
    tasks.spawn(listing_refresh::keep_current(link.clone(), connection.clone()));
}

/// Waits until the link was unused for its idle timeout, then closes it for calls.
async fn wait_until_idle(link: &Link) {
    let limit = link.server.spec.idle_timeout;
    loop {
        link.active_calls.wait_idle(limit).await;
        let is_watching = link.is_primary() && !link.server.subscriptions.desired().borrow().uris.is_empty();
        if !is_watching
            && link.may_idle()
            && link.active_calls.if_idle(|| {
                link.apply(LinkEvent::IdleTimeout);
            })
        {
            return;
        }
        tokio::time::sleep(limit.max(MIN_RETRY_DELAY)).await;
    }
}

/// Waits before the next attempt; false if the link was stopped.
async fn wait_before_retry(link: &Link, backoff: &mut Backoff, why: UpstreamError) -> bool {
    if let UpstreamError::Unauthorized(_) = why {
        backoff.jump_to_max();
    }
    if let UpstreamError::Unauthorized(_)
    | UpstreamError::CredentialUnusable(_)
    | UpstreamError::StartRefused(_) = why
    {
        link.apply(LinkEvent::Refused(why.clone()));
    }
    // The server's Retry-After applies regardless of calls; the rest of the backoff does not.
    let asked = match &why {
        UpstreamError::Status { retry_after: Some(pause), .. } => *pause,
        _ => Duration::ZERO,
    };
    if !asked.is_zero() {
        link.server.queue.pause_for(asked);
    }
    let wait = backoff.next_delay_with_jitter().max(asked);
    if wait > RECONNECT_GRACE && (link.is_listed() || matches!(why, UpstreamError::Unauthorized(_))) {
        link.report_failure(&why);
    }
    // Without a login it would only be refused again.
    let is_worth_it = !(link.is_anonymous() && matches!(why, UpstreamError::Unauthorized(_)));
    let breath = wait.min(MIN_RETRY_DELAY).max(asked);
    let waiting = async {
        tokio::time::sleep(breath).await;
        tokio::select! {
            () = tokio::time::sleep(wait.saturating_sub(breath)), if is_worth_it => {}
            () = link.connect_request.notified(), if wait > breath => {}
        }
    };
    tokio::select! {
        () = waiting => true,
        () = link.login_changed.notified(), if asked.is_zero() => {
            link.apply(LinkEvent::FailureCleared);
            true
        }
        _ = link.wait_for_state(LinkState::is_suspended) => true,
        () = link.stop.cancelled() => false,
    }
}
