//! Checks before each call whether this node may still serve, by the clock of its own machine.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a wait for the end of a lease looks at the clock: timers stand still while the machine sleeps.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct LeaseCheck {
    validity: Arc<Validity>,
    token: u64,
}

#[derive(Default)]
struct Validity {
    /// On the clock that also runs while the machine sleeps.
    until_ms: AtomicU64,
    lost: CancellationToken,
}

impl LeaseCheck {
    /// A lease with a fencing token, which holds once it is extended.
    pub(crate) fn new(token: u64) -> Self {
        Self { validity: Arc::default(), token }
    }

    pub fn holds(&self) -> bool {
        !self.validity.lost.is_cancelled() && now_ms() < self.validity.until_ms.load(Ordering::Acquire)
    }

    pub fn token(&self) -> u64 {
        self.token
    }

    /// Waits until the lease is lost.
    pub async fn lost(&self) {
        self.validity.lost.cancelled().await;
    }

    /// Waits until the lease holds no longer by the clock.
    pub(crate) async fn expired(&self) {
        while self.holds() {
            let left = self.validity.until_ms.load(Ordering::Acquire).saturating_sub(now_ms());
            tokio::time::sleep(Duration::from_millis(left).min(EXPIRY_CHECK_INTERVAL)).await;
        }
    }

    /// A lease lasts from the moment when it was requested.
    pub(crate) fn extend(&self, requested_ms: u64, duration: Duration) {
        let duration = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.validity.until_ms.store(requested_ms.saturating_add(duration), Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.validity.lost.cancel();
    }
}

/// Milliseconds on the clock that also runs while the machine sleeps.
pub(crate) fn now_ms() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds * 1_000 + nanos / 1_000_000
}
