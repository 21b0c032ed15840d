//! One connection: HTTP/1.1, or HTTP/2 with prior knowledge.

use super::ListenerLimits;
use super::connection_table::Connection;
use super::delivery_backlog::{Deliveries, Delivery, DeliveryStream};
use super::peer_owner::PeerOwner;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Connection preface of HTTP/2; no HTTP/1 request starts with it.
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Enough for any reasonable head; also the read buffer for bodies.
const MAX_HEAD_BYTES: usize = 32 * 1_024;
const MAX_HTTP2_HEADER_BYTES: u32 = 32 * 1_024;
const MAX_HTTP2_STREAMS: u32 = 256;
const HTTP2_WINDOW_BYTES: u32 = 256 * 1_024;
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
/// Time for requests of an unauthorized connection to complete.
const GRACEFUL_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between peeks at a preface that arrives in pieces.
const PEEK_INTERVAL: Duration = Duration::from_millis(10);

/// State shared by all connections of a listener.
pub struct ConnectionServer {
    router: Router,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    head_timeout: Duration,
    stall_timeout: Duration,
    deliveries: Arc<Deliveries>,
    open_connections: metrics::Gauge,
    shutdown: CancellationToken,
    abort: CancellationToken,
}

impl ConnectionServer {
    pub fn new(
        router: Router,
        limits: ListenerLimits,
        deliveries: Arc<Deliveries>,
        shutdown: CancellationToken,
        abort: CancellationToken,
    ) -> Self {
        let ListenerLimits { head_timeout, stall_timeout, .. } = limits;
        let mut one = http1::Builder::new();
        one.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(MAX_HEAD_BYTES);
        let mut two = http2::Builder::new(TokioExecutor::new());
        two.timer(TokioTimer::new())
            .max_concurrent_streams(MAX_HTTP2_STREAMS)
            .max_header_list_size(MAX_HTTP2_HEADER_BYTES)
            .initial_stream_window_size(HTTP2_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_WINDOW_BYTES * 4)
            .keep_alive_interval(HTTP2_PING_INTERVAL)
            .keep_alive_timeout(head_timeout);
        let open_connections = metrics::gauge!("octoprox_http_connections");
        Self {
            router,
            http1: one,
            http2: two,
            head_timeout,
            stall_timeout,
            deliveries,
            open_connections,
            shutdown,
            abort,
        }
    }

    /// Serves a connection to its end.
    pub async fn serve_connection(&self, stream: TcpStream, connection: Arc<Connection>) {
        self.open_connections.increment(1);
        let _left = GaugeGuard(&self.open_connections);
        let _ = stream.set_nodelay(true);
        // The kernel ends a connection whose window stays closed: nothing here notices a client that does not read.
        let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(self.stall_timeout));
        let begun = tokio::time::timeout(self.head_timeout, peek_is_http2(&stream));
        let begun = connection.evicted.run_until_cancelled(begun);
        let Some(Some(Ok(Some(second)))) = self.abort.run_until_cancelled(begun).await else {
            return;
        };
        let peer = PeerOwner::of_stream(&stream);
        let delivery = self.deliveries.open(connection.evicted.clone());
        let router = self.router.clone();
        let visit = ConnectionService {
            router,
            connection: Arc::clone(&connection),
            delivery: Arc::clone(&delivery),
            peer,
        };
        let stream = DeliveryStream { stream, delivery };
        let result = if second {
            // Boxed, so that the many HTTP/1 connections do not pay for its size.
            let serving = self.http2.serve_connection(TokioIo::new(stream), visit);
            Box::pin(self.run(serving, &connection)).await
        } else {
            self.run(self.http1.serve_connection(TokioIo::new(stream), visit), &connection).await
        };
        if let Err(error) = result {
            tracing::debug!(%error, "connection ended with an error");
        }
    }

    async fn run<C>(&self, serving: C, connection: &Connection) -> hyper::Result<()>
    where
        C: GracefulShutdown + Future<Output = hyper::Result<()>>,
    {
        let mut serving = pin!(serving);
        tokio::select! {
            biased;
            ended = serving.as_mut() => return ended,
            () = self.shutdown.cancelled() => serving.as_mut().drain(),
            () = self.abort.cancelled() => return Ok(()),
            () = connection.evicted.cancelled() => return Ok(()),
            () = self.authorization_timeout(connection) => {
                serving.as_mut().drain();
                // A deliberately silent client does not take part in a graceful shutdown.
                return tokio::time::timeout(GRACEFUL_CLOSE_TIMEOUT, serving).await.unwrap_or(Ok(()));
            }
        }
        let rest = connection.evicted.run_until_cancelled(serving);
        self.abort.run_until_cancelled(rest).await.flatten().unwrap_or(Ok(()))
    }

    /// Returns if a connection has had no authorized request within the timeout.
    async fn authorization_timeout(&self, connection: &Connection) {
        tokio::time::sleep(self.head_timeout).await;
        if connection.is_authorized() {
            std::future::pending::<()>().await;
        }
    }
}

/// Decrements the gauge, however the connection ends.
struct GaugeGuard<'a>(&'a metrics::Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Whether a connection starts with the HTTP/2 preface; `None` if it ends first. Only peeks, so that no bytes are
/// consumed.
async fn peek_is_http2(stream: &TcpStream) -> Option<bool> {
    let mut seen = [0; HTTP2_PREFACE.len()];
    loop {
        let seen = match stream.peek(&mut seen).await {
            Ok(0) | Err(_) => return None,
            Ok(many) => seen.get(..many)?,
        };
        if !HTTP2_PREFACE.starts_with(seen) {
            return Some(false);
        }
        if seen.len() == HTTP2_PREFACE.len() {
            return Some(true);
        }
        tokio::time::sleep(PEEK_INTERVAL).await;
    }
}

/// The router as a hyper service. Adds the connection and its owner to each request.
struct ConnectionService {
    router: Router,
    connection: Arc<Connection>,
    delivery: Arc<Delivery>,
    peer: PeerOwner,
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = Response;
    type Error = Infallible;
    type Future = ReplyFuture;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(Arc::clone(&self.connection));
        request.extensions_mut().insert(self.peer);
        let reply = tower::Service::call(&mut self.router.clone(), request.map(Body::new));
        ReplyFuture { reply, delivery: Some(Arc::clone(&self.delivery)) }
    }
}

pin_project_lite::pin_project! {
    /// A pending reply, whose bytes count once it is ready.
    struct ReplyFuture {
        #[pin]
        reply: RouteFuture<Infallible>,
        delivery: Option<Arc<Delivery>>,
    }
}

impl Future for ReplyFuture {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reply = ready!(this.reply.poll(cx))?;
        Poll::Ready(Ok(match this.delivery.take() {
            Some(delivery) => delivery.track(reply),
            None => reply,
        }))
    }
}

/// Ends after the active requests.
trait GracefulShutdown {
    fn drain(self: Pin<&mut Self>);
}

impl GracefulShutdown for http1::Connection<TokioIo<DeliveryStream>, ConnectionService> {
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl GracefulShutdown for http2::Connection<TokioIo<DeliveryStream>, ConnectionService, TokioExecutor> {
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
