//! Lines that are not messages. Some programs write all that they do to the wrong stream, and some write nothing else.

use crate::fail::Fail;
use crate::inbox::Inbox;
use crate::read::Broken;
use std::time::Duration;
use tokio::time::Instant;

/// So many lines are read in one go.
const PORTION: u64 = 2000;
/// A portion in less than this is more than a program has to say.
const FLOOD: Duration = Duration::from_secs(1);
/// The rest after it, several times as long as the reading: whoever floods the hub takes no time from the other servers, but
/// waits itself.
const REST: Duration = Duration::from_millis(4);

/// Counts them, and slows down who sends too many.
pub(super) struct Rubbish {
    count: u64,
    since: Instant,
}

impl Default for Rubbish {
    fn default() -> Self {
        Self { count: 0, since: Instant::now() }
    }
}

impl Rubbish {
    /// Refuses a line. It is told ever more rarely.
    pub(super) async fn take(&mut self, inbox: &Inbox, broken: Broken) {
        self.count += 1;
        if self.count.is_power_of_two() {
            tracing::warn!(target: "upstream", server = %inbox.name, fault = %broken.fault, count = self.count, "a line that is not a message");
        }
        if let Some(id) = broken.id {
            inbox.calls.settle(id, Err(Fail::Garbled(broken.fault.to_string())));
        }
        if self.count.is_multiple_of(PORTION) {
            if self.since.elapsed() < FLOOD {
                tokio::time::sleep(REST).await;
            }
            self.since = Instant::now();
        }
    }
}
