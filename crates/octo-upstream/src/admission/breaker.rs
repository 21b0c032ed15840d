//! Circuit breaker: refuses calls to a server that keeps failing, until a trial call succeeds.

use crate::error::UpstreamError;
use crate::upstream_spec::BreakerSpec;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Retry delay for other calls while the trial call runs.
const HALF_OPEN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_PAUSE_FACTOR: u32 = 10;

/// What the outcome of a call implies about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallHealth {
    /// The server responded, even if only with an error.
    Healthy,
    Failing,
    /// Unreachable; ends as soon as a connection succeeds.
    Unreachable,
    /// Nothing, such as a missing login.
    Inconclusive,
}

impl CallHealth {
    pub(crate) fn of(fail: &UpstreamError) -> Self {
        match fail {
            UpstreamError::Rpc(_) | UpstreamError::TooLarge(_) | UpstreamError::Protocol(_) => Self::Healthy,
            UpstreamError::NotSent(_) => Self::Unreachable,
            UpstreamError::ConnectionReset(_)
            | UpstreamError::ConnectionLost(_)
            | UpstreamError::Timeout(_)
            | UpstreamError::Status { code: 500.., .. } => Self::Failing,
            UpstreamError::SessionExpired
            | UpstreamError::Unauthorized(_)
            | UpstreamError::CredentialUnusable(_)
            | UpstreamError::StartRefused(_)
            | UpstreamError::Status { code: 429, .. } => Self::Inconclusive,
            UpstreamError::Status { .. } => Self::Healthy,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
        rounds: u32,
        away: bool,
    },
    /// A trial call is running.
    HalfOpen {
        rounds: u32,
        away: bool,
    },
}

pub(crate) struct Breaker {
    spec: BreakerSpec,
    state: Mutex<State>,
}

/// Permission for one call, whose holder records the outcome.
pub(crate) struct TrialPass<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
    is_recorded: bool,
}

impl Breaker {
    pub(crate) fn new(trip: BreakerSpec) -> Self {
        Self { spec: trip, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a pass for a call, or how long to wait.
    pub(crate) fn admit(&self, now: Instant) -> Result<TrialPass<'_>, Duration> {
        let mut state = self.state();
        let tries = match *state {
            State::Closed { .. } => false,
            State::HalfOpen { .. } => return Err(HALF_OPEN_RETRY_DELAY),
            State::Open { until, rounds, away } => {
                let left = until.saturating_duration_since(now);
                if !left.is_zero() {
                    return Err(left);
                }
                *state = State::HalfOpen { rounds, away };
                true
            }
        };
        Ok(TrialPass { breaker: self, is_trial: tries, is_recorded: false })
    }

    /// Whether calls are refused.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(*self.state(), State::Closed { .. })
    }

    /// The server was reached again: if it was unreachable before, the next call is the trial.
    pub(crate) fn mark_reachable(&self) {
        let mut state = self.state();
        if let State::Open { until, away: true, .. } = &mut *state {
            *until = Instant::now();
        }
    }

    fn record(&self, verdict: CallHealth, tries: bool) -> bool {
        let mut state = self.state();
        let away = match verdict {
            CallHealth::Healthy => {
                *state = State::Closed { failures: 0 };
                return false;
            }
            CallHealth::Inconclusive => {
                self.return_trial(&mut state, tries);
                return false;
            }
            CallHealth::Failing => false,
            CallHealth::Unreachable => true,
        };
        match *state {
            State::Closed { failures }
                if self.spec.max_failures == 0 || failures + 1 < self.spec.max_failures =>
            {
                *state = State::Closed { failures: failures.saturating_add(1) };
                false
            }
            State::Closed { .. } => {
                *state = self.open(0, away);
                true
            }
            State::HalfOpen { rounds, .. } if tries => {
                *state = self.open(rounds + 1, away);
                true
            }
            // A call from before the breaker opened adds nothing.
            State::HalfOpen { .. } | State::Open { .. } => false,
        }
    }

    fn open(&self, rounds: u32, away: bool) -> State {
        let pause = self.spec.pause * (1_u32 << rounds.min(4)).min(MAX_PAUSE_FACTOR);
        State::Open { until: Instant::now() + pause, rounds, away }
    }

    /// Leaves the trial to the next call.
    fn return_trial(&self, state: &mut State, tries: bool) {
        if let (State::HalfOpen { rounds, away }, true) = (*state, tries) {
            *state = State::Open { until: Instant::now(), rounds, away };
        }
    }
}

impl TrialPass<'_> {
    /// Records the outcome; true if the breaker opens.
    pub(crate) fn record(mut self, verdict: CallHealth) -> bool {
        self.is_recorded = true;
        self.breaker.record(verdict, self.is_trial)
    }
}

impl Drop for TrialPass<'_> {
    fn drop(&mut self) {
        if !self.is_recorded {
            self.breaker.return_trial(&mut self.breaker.state(), self.is_trial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(10);

    fn admit_and_record(breaker: &Breaker, after: Duration, verdict: CallHealth) -> bool {
        breaker.admit(Instant::now() + after).ok().unwrap().record(verdict)
    }

    fn is_refused(breaker: &Breaker, after: Duration) -> bool {
        breaker.admit(Instant::now() + after).is_err()
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_call_at_a_time_tries() {
        let (breaker, now) = (Breaker::new(BreakerSpec { max_failures: 3, pause: PAUSE }), Duration::ZERO);
        for verdict in [
            CallHealth::Failing,
            CallHealth::Failing,
            CallHealth::Healthy,
            CallHealth::Failing,
            CallHealth::Inconclusive,
            CallHealth::Failing,
        ] {
            assert!(!admit_and_record(&breaker, now, verdict));
        }
        assert!(admit_and_record(&breaker, now, CallHealth::Failing));
        assert!(is_refused(&breaker, PAUSE / 2));
        let first = breaker.admit(Instant::now() + PAUSE).ok().unwrap();
        assert_eq!(breaker.admit(Instant::now() + PAUSE).err(), Some(HALF_OPEN_RETRY_DELAY));
        // An abandoned trial is left to the next call.
        drop(first);
        assert!(admit_and_record(&breaker, PAUSE, CallHealth::Failing));
        assert!(is_refused(&breaker, PAUSE + PAUSE / 2), "the second pause is longer");
        breaker.mark_reachable();
        assert!(is_refused(&breaker, now), "being reached was not the matter");
        assert!(!admit_and_record(&breaker, 2 * PAUSE, CallHealth::Healthy));
        assert!(!is_refused(&breaker, now) && !is_refused(&breaker, now));
    }

    #[test]
    fn a_server_that_was_away_is_tried_as_soon_as_it_is_back() {
        let (breaker, now) = (Breaker::new(BreakerSpec { max_failures: 1, pause: PAUSE }), Duration::ZERO);
        assert!(admit_and_record(&breaker, now, CallHealth::Unreachable));
        assert!(is_refused(&breaker, now));
        breaker.mark_reachable();
        assert!(!admit_and_record(&breaker, now, CallHealth::Healthy));
        let never = Breaker::new(BreakerSpec { max_failures: 0, pause: PAUSE });
        assert!((0..100).all(|_| !admit_and_record(&never, now, CallHealth::Failing)));
    }
}
