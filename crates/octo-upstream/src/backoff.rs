//! How long to wait before trying again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// At once, then 0.1 s, doubled up to 30 s.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let wait = match self.failures {
            0 => Duration::ZERO,
            n => FIRST.saturating_mul(1 << (n - 1).min(16)).min(LONGEST),
        };
        self.failures += 1;
        wait
    }

    /// Nothing will change soon: waits the longest from here on.
    pub(crate) fn slow(&mut self) {
        self.failures = self.failures.max(16);
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_to_the_cap_and_starts_over() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..12).map(|_| backoff.next().as_millis() as u64).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        backoff.reset();
        assert_eq!(backoff.next(), Duration::ZERO);
        backoff.slow();
        assert_eq!(backoff.next(), LONGEST);
    }
}
