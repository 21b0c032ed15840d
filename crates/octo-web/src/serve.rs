//! A listener and its connections: how many, how slow, and how they end.

mod admission;
mod connection;
mod delivery;
mod peer;

pub use admission::Connection;

use admission::Connections;
use axum::Router;
use connection::Desk;
use delivery::Deliveries;
pub use peer::PeerOwner;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What one listener takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. When there are more, the oldest without an authorised request makes room, or the new one is told
    /// to come back.
    pub connections: usize,
    /// Connections of one caller at once.
    pub connections_per_caller: usize,
    /// How long a client may take to send the head of a request, to send the next one, and to send the first that is authorised.
    pub head: Duration,
    /// How long a client may read nothing of a reply that waits for it.
    pub stall: Duration,
    /// Bytes of replies that wait to be read, on all connections. When there are more, the connections whose clients have read
    /// nothing for longest end.
    pub undelivered: usize,
    /// How long open requests may take to end once the hub is asked to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            connections_per_caller: 16_384,
            head: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            undelivered: 32 << 20,
            drain: Duration::from_secs(10),
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Serves until `shutdown`, then lets open requests end for a while.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    serve_within(listener, router, shutdown, Limits::default()).await;
}

/// [`serve`] with limits of one's own. Dropping the future ends every connection at once.
pub async fn serve_within(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    limits: Limits,
) {
    let over = CancellationToken::new();
    let _dropped = over.clone().drop_guard();
    let deliveries = Deliveries::new(limits.undelivered);
    let sweeping = Arc::clone(&deliveries);
    let desk = Arc::new(Desk::new(router, limits, deliveries, shutdown.clone(), over.clone()));
    let connections = Connections::new(limits.connections, limits.connections_per_caller);
    let open = TaskTracker::new();
    let ended = over.clone();
    tokio::spawn(async move { ended.run_until_cancelled(sweeping.sweep()).await });
    while let Some(stream) = shutdown.run_until_cancelled(next(&listener)).await {
        match connections.begin() {
            Some(connection) => {
                let desk = Arc::clone(&desk);
                open.spawn(async move { desk.attend(stream, connection).await });
            }
            None => turn_away(&stream),
        }
    }
    drop(listener);
    open.close();
    if tokio::time::timeout(limits.drain, open.wait()).await.is_err() {
        tracing::info!(connections = open.len(), "closing connections that did not end by themselves");
        over.cancel();
        open.wait().await;
    }
}

/// The next connection. Errors of the machine, such as no descriptors left, are waited out.
async fn next(listener: &TcpListener) -> TcpStream {
    let mut pause = FIRST_PAUSE;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_one_connection(error.kind()) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                metrics::counter!("octoprox_http_accept_errors_total").increment(1);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn is_of_one_connection(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

fn turn_away(stream: &TcpStream) {
    metrics::counter!("octoprox_http_refused_total", "why" => "full").increment(1);
    let _ = stream.try_write(FULL);
}
