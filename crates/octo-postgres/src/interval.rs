//! Work that a process does from time to time, beside its other work.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Interval {
    duration: Duration,
    last: Mutex<Option<Instant>>,
}

impl Interval {
    pub(crate) const fn new(duration: Duration) -> Self {
        Self { duration, last: Mutex::new(None) }
    }

    /// Whether the work is due now; then it is not due again for the duration.
    pub(crate) fn is_due(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= self.duration);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}
