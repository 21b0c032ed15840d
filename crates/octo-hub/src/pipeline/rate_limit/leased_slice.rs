//! The slice of one bucket that this hub has leased.

use octo_ports::{ReturnedSlice, Slice};
use std::time::{Duration, Instant};

/// A slice is returned this long before it becomes invalid: a late return is lost.
const RETURN_MARGIN: Duration = Duration::from_secs(1);
/// The next slice is larger if one was used up within this time.
const FAST_USE: Duration = Duration::from_secs(1);
/// Parts of the capacity: of a slice at low use, and at most.
const SMALL_PART: u32 = 10;
const LARGE_PART: u32 = 4;

pub(super) struct LeasedSlice {
    capacity: u32,
    /// Size of the last request, without calls that waited.
    size: u32,
    slice: Option<Slice>,
    unused: u32,
    leased_at: Instant,
    usable_until: Instant,
    /// No call is regained before.
    refused_until: Instant,
    /// Whether a task waits to return what is unused.
    pub(super) is_watched: bool,
}

impl LeasedSlice {
    pub(super) fn new(capacity: u32, now: Instant) -> Self {
        Self {
            capacity,
            size: 0,
            slice: None,
            unused: 0,
            leased_at: now,
            usable_until: now,
            refused_until: now,
            is_watched: false,
        }
    }

    /// Takes one call, or returns how long to wait. `None` if a new slice is needed.
    pub(super) fn take(&mut self, now: Instant) -> Option<Result<(), Duration>> {
        if self.unused > 0 && now < self.usable_until {
            self.unused -= 1;
            return Some(Ok(()));
        }
        let wait = self.refused_until.saturating_duration_since(now);
        (!wait.is_zero()).then_some(Err(wait))
    }

    /// The number of calls to lease next, for `waiting` ones at least.
    pub(super) fn next_size(&mut self, now: Instant, waiting: u32) -> u32 {
        let (small, large) = ((self.capacity / SMALL_PART).max(1), (self.capacity / LARGE_PART).max(1));
        let is_fast = self.slice.is_some() && self.unused == 0 && now < self.leased_at + FAST_USE;
        self.size = if is_fast { self.size.saturating_mul(2).clamp(small, large) } else { small };
        self.size.max(waiting)
    }

    /// Ends the use of the slice.
    pub(super) fn end(&mut self) -> Option<ReturnedSlice> {
        let slice = self.slice.take()?;
        let unused = std::mem::take(&mut self.unused);
        Some(ReturnedSlice { calls: slice.calls, unused, term: slice.term })
    }

    /// Ends it if it can no longer be used.
    pub(super) fn end_if_old(&mut self, now: Instant) -> Option<ReturnedSlice> {
        if now < self.usable_until { None } else { self.end() }
    }

    /// When to return what is left, if there is anything.
    pub(super) fn return_time(&self) -> Option<Instant> {
        (self.unused > 0).then_some(self.usable_until)
    }

    /// Starts the use of a new slice with its first call.
    pub(super) fn start(&mut self, slice: Slice, requested_at: Instant) -> Result<(), Duration> {
        self.leased_at = requested_at;
        self.usable_until = requested_at + slice.valid_for.saturating_sub(RETURN_MARGIN);
        let Some(unused) = slice.calls.checked_sub(1) else {
            self.refused_until = requested_at + slice.retry_after;
            return Err(slice.retry_after);
        };
        (self.slice, self.unused) = (Some(slice), unused);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(calls: u32) -> Slice {
        let (valid_for, retry_after) = (Duration::from_secs(6), Duration::from_millis(300));
        Slice { calls, valid_for, term: 7, retry_after }
    }

    #[test]
    fn calls_are_taken_until_it_is_used_up_or_old() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut leased = LeasedSlice::new(100, now);
        assert_eq!(leased.take(now), None);
        assert_eq!(leased.start(slice(3), now), Ok(()));
        assert_eq!(leased.take(now + 4 * second), Some(Ok(())));
        assert_eq!(leased.end_if_old(now + 4 * second), None);
        assert_eq!(leased.take(now + 5 * second), None, "a second before it becomes invalid");
        let returned = ReturnedSlice { calls: 3, unused: 1, term: 7 };
        assert_eq!(leased.end_if_old(now + 5 * second), Some(returned));
        assert_eq!((leased.end(), leased.return_time()), (None, None), "once");
    }

    #[test]
    fn a_refusal_holds_until_a_call_is_regained() {
        let now = Instant::now();
        let mut leased = LeasedSlice::new(1, now);
        assert_eq!(leased.start(slice(0), now), Err(Duration::from_millis(300)));
        assert_eq!(leased.take(now + Duration::from_millis(100)), Some(Err(Duration::from_millis(200))));
        assert_eq!(leased.take(now + Duration::from_millis(300)), None);
    }

    #[test]
    fn sizes_follow_the_use() {
        let start = Instant::now();
        let [soon, late] = [100, 1_000].map(Duration::from_millis);
        // Capacity, and pairs of: time since the last slice, calls that wait, expected size.
        for (capacity, steps) in [
            (600, [(late, 1, 60), (soon, 1, 120), (soon, 1, 150), (soon, 1, 150), (late, 1, 60)]),
            (10, [(late, 1, 1), (soon, 1, 2), (soon, 1, 2), (soon, 9, 9), (soon, 1, 2)]),
            (3, [(late, 1, 1), (soon, 1, 1), (soon, 1, 1), (late, 1, 1), (late, 4, 4)]),
        ] {
            let mut leased = LeasedSlice::new(capacity, start);
            let mut now = start;
            for (step, (time, waiting, expected)) in steps.into_iter().enumerate() {
                now += time;
                let size = leased.next_size(now, waiting);
                assert_eq!(size, expected, "step {step} of {capacity}");
                assert_eq!(leased.start(slice(size), now), Ok(()));
                leased.unused = 0;
            }
        }
    }
}
