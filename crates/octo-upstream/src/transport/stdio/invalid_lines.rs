//! Lines that are not messages. Some programs write all that they do to the wrong stream, and some write nothing else.

use crate::error::UpstreamError;
use crate::session::dispatcher::Dispatcher;
use crate::transport::decode::DecodeError;
use std::time::Duration;
use tokio::time::Instant;

/// So many lines are read in one go.
const BURST_LINES: u64 = 2000;
/// A portion in less than this is more than a program has to say.
const BURST_INTERVAL: Duration = Duration::from_secs(1);
/// The rest after it, several times as long as the reading: whoever floods the hub takes no time from the other servers, but
/// waits itself.
const THROTTLE_DELAY: Duration = Duration::from_millis(4);

/// Counts them, and slows down who sends too many.
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
    /// Refuses a line. It is told ever more rarely.
    pub(super) async fn record(&mut self, inbox: &Dispatcher, broken: DecodeError) {
        self.count += 1;
        if self.count.is_power_of_two() {
            tracing::warn!(target: "upstream", server = %inbox.name, fault = %broken.fault, count = self.count, "a line that is not a message");
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
