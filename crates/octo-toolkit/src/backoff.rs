//! Exponential backoff.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// No delay first, then 0.1 s, doubled up to 30 s.
#[derive(Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    pub fn next_delay(&mut self) -> Duration {
        let wait = match self.failures {
            0 => Duration::ZERO,
            n => FIRST_DELAY.saturating_mul(1 << (n - 1).min(16)).min(MAX_DELAY),
        };
        self.failures += 1;
        wait
    }

    /// The next delay, randomly shortened by up to a half, so that what failed together does not retry
    /// together.
    pub fn next_delay_with_jitter(&mut self) -> Duration {
        let wait = self.next_delay();
        // A fresh `RandomState` per call is random enough here.
        let chance = RandomState::new().hash_one(self.failures) as u32;
        wait.mul_f64(1.0 - 0.5 * f64::from(chance) / f64::from(u32::MAX))
    }

    /// Uses the maximum delay from here on, since nothing will change soon.
    pub fn jump_to_max(&mut self) {
        self.failures = self.failures.max(16);
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_to_the_cap_and_starts_over() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..12).map(|_| backoff.next_delay().as_millis() as u64).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        backoff.reset();
        assert_eq!(backoff.next_delay(), Duration::ZERO);
        backoff.jump_to_max();
        assert_eq!(backoff.next_delay(), MAX_DELAY);
    }

    #[test]
    fn chance_spreads_waits_over_their_second_half() {
        let waits: Vec<Duration> = (0..100)
            .map(|_| {
                let mut backoff = Backoff::default();
                backoff.jump_to_max();
                backoff.next_delay_with_jitter()
            })
            .collect();
        assert!(waits.iter().all(|wait| *wait >= MAX_DELAY / 2 && *wait <= MAX_DELAY));
        assert!(
            waits.iter().any(|wait| *wait < MAX_DELAY * 2 / 3)
                && waits.iter().any(|wait| *wait > MAX_DELAY * 5 / 6)
        );
    }
}
