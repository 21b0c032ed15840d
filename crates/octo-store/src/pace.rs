//! Under load, a moment between two groups: more calls share a commit, and the cores have more time for the calls.

use std::time::{Duration, Instant};

/// How often the load is looked at.
const WINDOW: Duration = Duration::from_millis(5);
/// Calls per second from which on a call's wait is dearer to the others than to itself.
const BUSY: f64 = 3_000.0;
/// Together with the system's own slack this is about a fifth of a millisecond.
const MOMENT: Duration = Duration::from_micros(120);

pub(crate) struct Pace {
    since: Instant,
    calls: usize,
    busy: bool,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), calls: 0, busy: false }
    }

    /// Told after each group how many calls waited for it. A caller that is alone never waits longer.
    pub(crate) fn rest(&mut self, calls: usize) {
        if self.notes(calls, self.since.elapsed()) {
            std::thread::sleep(MOMENT);
        }
    }

    fn notes(&mut self, calls: usize, elapsed: Duration) -> bool {
        self.calls += calls;
        if elapsed >= WINDOW {
            self.busy = self.calls as f64 / elapsed.as_secs_f64() > BUSY;
            self.calls = 0;
            self.since = Instant::now();
        }
        self.busy && calls > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_only_between_the_groups_of_many_busy_callers() {
        let mut pace = Pace::new();
        assert!(!pace.notes(4, Duration::from_millis(1)), "the load is not known yet");
        assert!(pace.notes(40, WINDOW), "8,000 calls a second, several at once");
        assert!(!pace.notes(1, Duration::from_millis(1)), "one caller alone");
        assert!(!pace.notes(4, WINDOW), "1,000 calls a second");
    }
}
