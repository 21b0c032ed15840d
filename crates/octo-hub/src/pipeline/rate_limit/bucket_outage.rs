//! Whether the shared buckets can be reached.

use octo_ports::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// During an outage, one call tries again after this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct BucketOutage {
    /// During an outage, when the next call tries.
    retry_at: Mutex<Option<Instant>>,
}

impl BucketOutage {
    fn retry_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.retry_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls go without the buckets now.
    pub(super) fn is_on(&self, now: Instant) -> bool {
        self.retry_at().is_some_and(|retry_at| now < retry_at)
    }

    /// Whether this call may try; then no other one does for the interval.
    pub(super) fn may_try(&self, now: Instant) -> bool {
        let mut retry_at = self.retry_at();
        match &mut *retry_at {
            None => true,
            Some(retry_at) if now < *retry_at => false,
            Some(retry_at) => {
                *retry_at = now + RETRY_INTERVAL;
                true
            }
        }
    }

    /// Returns whether an outage begins.
    pub(super) fn failed(&self, error: &StoreError, now: Instant) -> bool {
        let begins = self.retry_at().replace(now + RETRY_INTERVAL).is_none();
        if begins {
            tracing::warn!(%error, "rate limits hold for this hub alone: the database cannot be reached");
        }
        begins
    }

    /// Returns whether an outage ends.
    pub(super) fn succeeded(&self) -> bool {
        let ends = self.retry_at().take().is_some();
        if ends {
            tracing::info!("rate limits hold across hubs again");
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::Port;

    #[test]
    fn one_call_per_interval_tries_and_an_outage_is_reported_once() {
        let (outage, now) = (BucketOutage::default(), Instant::now());
        let error = StoreError::unavailable(Port::RateBuckets, "down");
        assert!(outage.may_try(now) && outage.may_try(now) && !outage.is_on(now));
        assert!(outage.failed(&error, now) && !outage.failed(&error, now));
        assert!(outage.is_on(now) && !outage.may_try(now));
        let later = now + RETRY_INTERVAL;
        assert!(!outage.is_on(later) && outage.may_try(later));
        assert!(!outage.may_try(later) && outage.is_on(later), "one at a time");
        assert!(outage.succeeded() && !outage.succeeded());
        assert!(outage.may_try(later) && outage.failed(&error, later));
    }
}
