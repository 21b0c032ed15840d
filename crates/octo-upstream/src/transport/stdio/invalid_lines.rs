//! Lines that are not messages: some programs write their logs to stdout.

use crate::error::UpstreamError;
use crate::session::dispatcher::Dispatcher;
use crate::transport::decode::DecodeError;
use std::time::Duration;
use tokio::time::Instant;

/// Lines per burst.
const BURST_LINES: u64 = 2000;
/// A burst in less than this is throttled.
const BURST_INTERVAL: Duration = Duration::from_secs(1);
/// Delay after a burst, several times as long as reading it: a flood delays its own server, not the others.
const THROTTLE_DELAY: Duration = Duration::from_millis(4);

/// Counts invalid lines and throttles a server that sends too many.
pub(super) struct InvalidLines {
    count: u64,
    since: Instant,
}

impl Default for InvalidLines {
    fn default() -> Self {
        Self { count: 0, since: Instant::now() }
    }
}

impl InvalidLines {
    /// Rejects a line. Logged at counts that are powers of two.
    pub(super) async fn record(&mut self, inbox: &Dispatcher, broken: DecodeError) {
        self.count += 1;
        if self.count.is_power_of_two() {
            tracing::warn!(target: "upstream", server = %inbox.name, fault = %broken.fault, count = self.count, "invalid message on stdout");
        }
        if let Some(id) = broken.id {
            inbox.pending.complete(id, Err(UpstreamError::Protocol(broken.fault.to_string())));
        }
        if self.count.is_multiple_of(BURST_LINES) {
            if self.since.elapsed() < BURST_INTERVAL {
                tokio::time::sleep(THROTTLE_DELAY).await;
            }
            self.since = Instant::now();
        }
    }
}
