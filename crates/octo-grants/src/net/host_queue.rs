//! Request queue per server: limited concurrency, first come first served, and respect for `Retry-After`.

use super::retry_after::retry_after;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use octo_model::ToolError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use url::Url;

/// Maximum number of servers that are tracked.
const MAX_HOSTS: usize = 1024;
/// Maximum wait for a rate-limited server before the request fails.
const MAX_PAUSE_WAIT: Duration = Duration::from_secs(5);
/// Upper bound of `Retry-After`, because it affects every caller of the hub.
const MAX_PAUSE: Duration = Duration::from_secs(600);

pub(super) struct HostQueues {
    max_concurrent: usize,
    /// Minimum interval between the starts of two requests to one server.
    min_interval: Duration,
    /// By host and port.
    hosts: Mutex<HashMap<(String, u16), Arc<HostQueue>>>,
}

struct HostQueue {
    slots: Arc<Semaphore>,
    paused_until: Mutex<Option<Instant>>,
    /// Earliest start of the next request.
    next_start: Mutex<Option<Instant>>,
}

/// Permission to send one request to one server; returned when dropped.
pub(super) struct HostSlot {
    host: Arc<HostQueue>,
    _permit: OwnedSemaphorePermit,
}

impl HostQueues {
    pub(super) fn new(at_once: usize) -> Self {
        Self { max_concurrent: at_once.clamp(1, 1024), min_interval: Duration::ZERO, hosts: Mutex::default() }
    }

    /// Sets the minimum interval between the starts of two requests to one server.
    pub(super) fn with_min_interval(self, pause: Duration) -> Self {
        Self { min_interval: pause, ..self }
    }

    pub(super) fn max_concurrent(&self) -> usize {
        self.max_concurrent
    }

    /// Waits for a turn until the deadline, and for the end of a `Retry-After` pause if it is short.
    pub(super) async fn acquire(&self, url: &Url, deadline: Instant) -> Result<HostSlot, ToolError> {
        let server = self.host_queue(url)?;
        server.short_pause(url, deadline)?;
        let permit = server.slots.clone().acquire_owned().await.map_err(ToolError::internal)?;
        // In a loop, because another pause may have been requested in the meantime.
        while let Some(until) = server.short_pause(url, deadline)? {
            tokio::time::sleep_until(until).await;
        }
        if let Some(start) = server.reserve_start(self.min_interval, url, deadline)? {
            tokio::time::sleep_until(start).await;
        }
        Ok(HostSlot { host: server, _permit: permit })
    }

    fn host_queue(&self, url: &Url) -> Result<Arc<HostQueue>, ToolError> {
        let host = url.host_str().unwrap_or_default();
        let key = (host.trim_end_matches('.').to_owned(), url.port_or_known_default().unwrap_or_default());
        let mut servers = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= MAX_HOSTS && !servers.contains_key(&key) {
            let now = Instant::now();
            servers.retain(|_, server| server.is_needed(now));
            if servers.len() >= MAX_HOSTS {
                return Err(ToolError::unavailable(
                    "Too many requests to different servers at the same time.",
                )
                .hint("Wait for other requests to complete, then try again.")
                .retry_after(MAX_PAUSE_WAIT));
            }
        }
        Ok(servers.entry(key).or_insert_with(|| Arc::new(HostQueue::new(self.max_concurrent))).clone())
    }
}

impl HostSlot {
    /// Stores the `Retry-After` of a response.
    pub(super) fn record_response(&self, status: StatusCode, headers: &HeaderMap) {
        if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return;
        }
        if let Some(silence) = retry_after(headers, Timestamp::now()) {
            let until = Instant::now() + silence.min(MAX_PAUSE);
            let mut longest = self.host.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
            // Concurrent responses may differ; the longest pause counts.
            *longest = longest.max(Some(until));
        }
    }
}

impl HostQueue {
    fn new(at_once: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(at_once)),
            paused_until: Mutex::default(),
            next_start: Mutex::default(),
        }
    }

    /// Reserves the next start time, or fails if it is too late.
    fn reserve_start(
        &self,
        pause: Duration,
        url: &Url,
        deadline: Instant,
    ) -> Result<Option<Instant>, ToolError> {
        if pause.is_zero() {
            return Ok(None);
        }
        let now = Instant::now();
        let mut next = self.next_start.lock().unwrap_or_else(PoisonError::into_inner);
        let start = next.map_or(now, |next| next.max(now));
        if start > deadline {
            let (host, wait) = (url.host_str().unwrap_or_default(), start - now);
            let message = format!("Too many requests to `{host}` are queued.");
            return Err(ToolError::unavailable(message)
                .hint("Request fewer pages at once, or raise `net.requests_per_second`.")
                .retry_after(wait));
        }
        *next = Some(start + pause);
        Ok(Some(start))
    }

    fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.lock().unwrap_or_else(PoisonError::into_inner).filter(|until| *until > now)
    }

    /// End of the pause to wait for, or an error if it is too long.
    fn short_pause(&self, url: &Url, deadline: Instant) -> Result<Option<Instant>, ToolError> {
        let now = Instant::now();
        let Some(until) = self.paused_until(now) else { return Ok(None) };
        if until <= (now + MAX_PAUSE_WAIT).min(deadline) {
            return Ok(Some(until));
        }
        let wait = until - now;
        let host = url.host_str().unwrap_or_default();
        Err(ToolError::unavailable(format!("`{host}` is rate limiting requests (Retry-After)."))
            .hint(format!("Try again in {} seconds, or use another server.", wait.as_secs() + 1))
            .retry_after(wait))
    }

    /// Whether it is in use, or has state to remember.
    fn is_needed(self: &Arc<Self>, now: Instant) -> bool {
        let waits =
            self.next_start.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|next| next > now);
        Arc::strong_count(self) > 1 || waits || self.paused_until(now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn retry_after_header(seconds: &'static str) -> HeaderMap {
        [(header::RETRY_AFTER, http::HeaderValue::from_static(seconds))].into_iter().collect()
    }

    #[tokio::test]
    async fn a_short_silence_is_waited_for_and_a_long_one_is_an_error() {
        let queue = HostQueues::new(2);
        let (busy, other) = (url("http://a.example/x"), url("http://b.example/"));
        let turn = queue.acquire(&busy, soon()).await.unwrap();
        turn.record_response(StatusCode::OK, &retry_after_header("100"));
        queue.acquire(&busy, soon()).await.unwrap();

        turn.record_response(StatusCode::TOO_MANY_REQUESTS, &retry_after_header("1"));
        let start = Instant::now();
        queue.acquire(&busy, soon()).await.unwrap();
        assert!(start.elapsed() > Duration::from_millis(900));

        turn.record_response(StatusCode::SERVICE_UNAVAILABLE, &retry_after_header("3"));
        assert!(
            queue.acquire(&busy, Instant::now() + Duration::from_secs(2)).await.is_err(),
            "it would come too late"
        );

        turn.record_response(StatusCode::SERVICE_UNAVAILABLE, &retry_after_header("100000000"));
        let error = queue.acquire(&busy, soon()).await.err().unwrap();
        assert_eq!(error.kind, octo_model::Kind::Unavailable);
        assert!(error.retry_after.is_some_and(|wait| wait <= MAX_PAUSE));
        queue.acquire(&other, soon()).await.unwrap();
    }

    #[tokio::test]
    async fn a_shorter_wish_does_not_take_a_longer_one_back() {
        let queue = HostQueues::new(2);
        let busy = url("http://a.example/");
        let (first, second) =
            (queue.acquire(&busy, soon()).await.unwrap(), queue.acquire(&busy, soon()).await.unwrap());
        first.record_response(StatusCode::TOO_MANY_REQUESTS, &retry_after_header("60"));
        second.record_response(StatusCode::TOO_MANY_REQUESTS, &retry_after_header("0"));
        let error = queue.acquire(&busy, soon()).await.err().unwrap();
        assert!(error.retry_after.is_some_and(|wait| wait > Duration::from_secs(50)));
    }

    #[tokio::test]
    async fn who_waits_for_a_turn_hears_of_a_silence_that_began_meanwhile() {
        let queue = Arc::new(HostQueues::new(1));
        let busy = url("http://a.example/");
        let first = queue.acquire(&busy, soon()).await.unwrap();
        let waiting = tokio::spawn({
            let (queue, busy) = (queue.clone(), busy.clone());
            async move { queue.acquire(&busy, soon()).await.map(drop) }
        });
        tokio::task::yield_now().await;
        first.record_response(StatusCode::SERVICE_UNAVAILABLE, &retry_after_header("60"));
        drop(first);
        assert_eq!(waiting.await.unwrap().err().unwrap().kind, octo_model::Kind::Unavailable);
    }

    #[tokio::test]
    async fn requests_to_one_server_start_apart() {
        let queue = HostQueues::new(6).with_min_interval(Duration::from_millis(50));
        let begun = Instant::now();
        for _ in 0..4 {
            queue.acquire(&url("http://a.example/"), soon()).await.unwrap();
        }
        assert!(begun.elapsed() >= Duration::from_millis(150), "{:?}", begun.elapsed());
        queue.acquire(&url("http://b.example/"), begun + Duration::from_secs(30)).await.unwrap();
        let late = HostQueues::new(6).with_min_interval(Duration::from_secs(60));
        late.acquire(&url("http://a.example/"), soon()).await.unwrap();
        let error = late.acquire(&url("http://a.example/"), soon()).await.err().unwrap();
        assert!(error.retry_after.is_some(), "{error}");
    }

    #[tokio::test]
    async fn turns_are_given_in_order() {
        let queue = Arc::new(HostQueues::new(1));
        let first = queue.acquire(&url("http://a.example/"), soon()).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..5 {
            let (queue, order) = (queue.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let turn = queue.acquire(&url("http://A.example:80/other"), soon()).await.unwrap();
                order.lock().unwrap().push(number);
                drop(turn);
            }));
            tokio::task::yield_now().await;
        }
        assert!(order.lock().unwrap().is_empty());
        drop(first);
        for waiter in waiting {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn servers_are_forgotten_when_there_are_too_many() {
        let queue = HostQueues::new(1);
        for number in 0..5 * MAX_HOSTS {
            queue.acquire(&url(&format!("http://{number}.example/")), soon()).await.unwrap();
            assert!(queue.hosts.lock().unwrap().len() <= MAX_HOSTS);
        }
        let mut held = Vec::new();
        for number in 0..MAX_HOSTS {
            held.push(queue.acquire(&url(&format!("http://held{number}.example/")), soon()).await.unwrap());
        }
        let error = queue.acquire(&url("http://another.example/"), soon()).await.err().unwrap();
        assert!(error.retry_after.is_some());
        drop(held);
        queue.acquire(&url("http://another.example/"), soon()).await.unwrap();
    }
}
