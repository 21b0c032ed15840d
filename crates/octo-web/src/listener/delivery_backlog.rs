//! Replies that wait to be written: their bytes per connection, and eviction if there are too many.

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Interval of eviction while the limit is exceeded.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// A connection without progress for this long may be evicted.
const MIN_STALL: Duration = Duration::from_millis(250);
/// A connection with pending bytes for this long may be evicted, even if its client reads slowly.
const MAX_DELIVERY_TIME: Duration = Duration::from_secs(10);

/// Pending bytes on all connections of a listener.
pub struct Deliveries {
    max_bytes: usize,
    waiting_bytes: AtomicUsize,
    outboxes: Mutex<HashMap<u64, Arc<Outbox>>>,
    next: AtomicU64,
    full: Notify,
    started: Instant,
}

/// Pending bytes on one connection.
struct Outbox {
    waiting_bytes: AtomicUsize,
    /// When bytes started to wait, and when some were last written, in milliseconds since the listener started.
    waiting_since: AtomicU64,
    last_progress: AtomicU64,
    evicted: CancellationToken,
}

/// Registration of one connection.
pub struct Delivery {
    deliveries: Arc<Deliveries>,
    outbox: Arc<Outbox>,
    number: u64,
}

impl Deliveries {
    pub fn new(max_bytes: usize) -> Arc<Self> {
        let (waiting_bytes, next) = (AtomicUsize::new(0), AtomicU64::new(0));
        let (outboxes, full, started) = (Mutex::default(), Notify::new(), Instant::now());
        Arc::new(Self { max_bytes, waiting_bytes, outboxes, next, full, started })
    }

    /// Registers a connection that ends with `evicted`.
    pub fn open(self: &Arc<Self>, evicted: CancellationToken) -> Arc<Delivery> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [waiting_since, last_progress] = [0, 0].map(AtomicU64::new);
        let outbox =
            Arc::new(Outbox { waiting_bytes: AtomicUsize::new(0), waiting_since, last_progress, evicted });
        self.outboxes().insert(number, Arc::clone(&outbox));
        Arc::new(Delivery { deliveries: Arc::clone(self), outbox, number })
    }

    fn outboxes(&self) -> MutexGuard<'_, HashMap<u64, Arc<Outbox>>> {
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Evicts the connections with the longest wait whenever the limit is exceeded.
    pub async fn sweep(&self) {
        loop {
            self.full.notified().await;
            while self.excess() > 0 {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                self.evict_stalled();
            }
        }
    }

    fn excess(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed).saturating_sub(self.max_bytes)
    }

    fn evict_stalled(&self) {
        let mut excess = self.excess();
        if excess == 0 {
            return;
        }
        let now = Duration::from_millis(self.now());
        let age =
            |moment: &AtomicU64| now.saturating_sub(Duration::from_millis(moment.load(Ordering::Relaxed)));
        let is_stalled = |outbox: &&Arc<Outbox>| {
            outbox.waiting_bytes.load(Ordering::Relaxed) > 0
                && (age(&outbox.last_progress) >= MIN_STALL
                    || age(&outbox.waiting_since) >= MAX_DELIVERY_TIME)
        };
        let mut stalled: Vec<Arc<Outbox>> = self.outboxes().values().filter(is_stalled).cloned().collect();
        stalled.sort_by_key(|outbox| outbox.waiting_since.load(Ordering::Relaxed));
        let mut ended = 0_u64;
        for outbox in stalled {
            excess = excess.saturating_sub(outbox.waiting_bytes.load(Ordering::Relaxed));
            outbox.evicted.cancel();
            ended += 1;
            if excess == 0 {
                break;
            }
        }
        metrics::counter!("octoprox_http_refused_total", "reason" => "not_reading").increment(ended);
    }
}

impl Delivery {
    fn add(&self, bytes: usize) {
        if self.outbox.waiting_bytes.load(Ordering::Relaxed) == 0 {
            let now = self.deliveries.now();
            self.outbox.waiting_since.store(now, Ordering::Relaxed);
            self.outbox.last_progress.store(now, Ordering::Relaxed);
        }
        self.outbox.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.deliveries.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
            > self.deliveries.max_bytes
        {
            self.deliveries.full.notify_one();
        }
    }

    fn remove(&self, bytes: usize) {
        self.outbox.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.deliveries.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn record_progress(&self) {
        self.outbox.last_progress.store(self.deliveries.now(), Ordering::Relaxed);
    }

    /// Counts the bytes of a reply from when they are taken out of it until they are dropped, written or not.
    pub fn track(self: Arc<Self>, reply: Response) -> Response {
        reply.map(|inner| match inner.is_end_stream() {
            true => inner,
            false => Body::new(DeliveryBody { inner, delivery: self }),
        })
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.deliveries.outboxes().remove(&self.number);
    }
}

/// Bytes of a reply that are still referenced.
struct CountedBytes {
    bytes: Bytes,
    delivery: Arc<Delivery>,
}

impl CountedBytes {
    fn new(bytes: Bytes, delivery: &Arc<Delivery>) -> Self {
        delivery.add(bytes.len());
        Self { bytes, delivery: Arc::clone(delivery) }
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.delivery.remove(self.bytes.len());
    }
}

/// Body of a reply.
struct DeliveryBody {
    inner: Body,
    delivery: Arc<Delivery>,
}

impl http_body::Body for DeliveryBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        let count = |bytes| Bytes::from_owner(CountedBytes::new(bytes, &self.delivery));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(count))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A connection that records its writes.
pub struct DeliveryStream {
    pub stream: TcpStream,
    pub delivery: Arc<Delivery>,
}

impl DeliveryStream {
    fn record_write(&self, wrote: io::Result<usize>) -> io::Result<usize> {
        wrote.inspect(|_| self.delivery.record_progress())
    }
}

impl AsyncRead for DeliveryStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for DeliveryStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        Poll::Ready(self.record_write(wrote))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices));
        Poll::Ready(self.record_write(wrote))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_stood_still_for_longest_makes_room() {
        let deliveries = Deliveries::new(100);
        let open = || {
            let evicted = CancellationToken::new();
            (deliveries.open(evicted.clone()), evicted)
        };
        let ((slow, slow_ended), (slower, slower_ended), (fast, fast_ended), (idle, idle_ended)) =
            (open(), open(), open(), open());
        slower.add(60);
        tokio::time::sleep(Duration::from_millis(20)).await;
        slow.add(60);
        deliveries.evict_stalled();
        assert!(!slower_ended.is_cancelled(), "it may be about to read");
        tokio::time::sleep(MIN_STALL).await;
        fast.add(30);
        fast.remove(20);
        fast.record_progress();
        deliveries.evict_stalled();
        assert!(slower_ended.is_cancelled());
        assert!(!slow_ended.is_cancelled() && !fast_ended.is_cancelled() && !idle_ended.is_cancelled());
        slower.remove(60);
        drop(slower);
        assert_eq!(deliveries.excess(), 0);
        slow.remove(60);
        // Bytes that were taken but never written count until they are dropped.
        let taken = CountedBytes::new(Bytes::from_static(b"0123456789"), &fast);
        assert_eq!(deliveries.waiting_bytes.load(Ordering::Relaxed), 20);
        drop(taken);
        fast.remove(10);
        drop((slow, fast, idle));
        assert!(deliveries.waiting_bytes.load(Ordering::Relaxed) == 0 && deliveries.outboxes().is_empty());
    }
}
