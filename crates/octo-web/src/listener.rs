//! Listener and its connections: limits, timeouts and shutdown.

mod connection;
mod connection_table;
mod delivery_backlog;
mod peer_owner;

pub use connection_table::Connection;

use axum::Router;
use connection::ConnectionServer;
use connection_table::ConnectionTable;
use delivery_backlog::Deliveries;
pub use peer_owner::PeerOwner;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Limits of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Maximum connections. Beyond that, the oldest one without an authorized request is closed, or the new one is
    /// rejected with 503.
    pub max_connections: usize,
    /// Maximum connections per caller.
    pub max_connections_per_caller: usize,
    /// Timeout for the head of a request, for the next request, and for the first authorized one.
    pub head_timeout: Duration,
    /// Maximum time that a client may read nothing of a pending reply.
    pub stall_timeout: Duration,
    /// Maximum bytes of unread replies on all connections. Beyond that, the connections that have waited longest are
    /// closed.
    pub max_undelivered_bytes: usize,
    /// Maximum time for open requests to complete at shutdown.
    pub drain_timeout: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            max_connections: 16_384,
            max_connections_per_caller: 16_384,
            head_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
            max_undelivered_bytes: 32 << 20,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

const MIN_ACCEPT_DELAY: Duration = Duration::from_millis(5);
const MAX_ACCEPT_DELAY: Duration = Duration::from_secs(1);
const OVERLOAD_RESPONSE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Serves until `shutdown`, then lets open requests complete within a time limit.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    serve_with_limits(listener, router, shutdown, ListenerLimits::default()).await;
}

/// [`serve`] with custom limits. Dropping the future closes all connections immediately.
pub async fn serve_with_limits(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    limits: ListenerLimits,
) {
    let abort = CancellationToken::new();
    let _dropped = abort.clone().drop_guard();
    let deliveries = Deliveries::new(limits.max_undelivered_bytes);
    let sweeping = Arc::clone(&deliveries);
    let server = Arc::new(ConnectionServer::new(router, limits, deliveries, shutdown.clone(), abort.clone()));
    let connections = ConnectionTable::new(limits.max_connections, limits.max_connections_per_caller);
    let open = TaskTracker::new();
    let ended = abort.clone();
    tokio::spawn(async move { ended.run_until_cancelled(sweeping.sweep()).await });
    while let Some(stream) = shutdown.run_until_cancelled(accept(&listener)).await {
        match connections.admit() {
            Some(connection) => {
                let desk = Arc::clone(&server);
                open.spawn(async move { desk.serve_connection(stream, connection).await });
            }
            None => reject_overload(&stream),
        }
    }
    drop(listener);
    open.close();
    if tokio::time::timeout(limits.drain_timeout, open.wait()).await.is_err() {
        tracing::info!(connections = open.len(), "drain timeout: closing connections");
        abort.cancel();
        open.wait().await;
    }
}

/// Accepts the next connection. System errors, such as no descriptors left, are retried with a delay.
async fn accept(listener: &TcpListener) -> TcpStream {
    let mut pause = MIN_ACCEPT_DELAY;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_connection_error(error.kind()) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                metrics::counter!("octoprox_http_accept_errors_total").increment(1);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_ACCEPT_DELAY);
            }
        }
    }
}

fn is_connection_error(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

fn reject_overload(stream: &TcpStream) {
    metrics::counter!("octoprox_http_refused_total", "reason" => "full").increment(1);
    let _ = stream.try_write(OVERLOAD_RESPONSE);
}
