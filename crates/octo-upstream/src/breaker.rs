//! Calls to a server that only fails are refused at once, until one call shows that it is well again.

use crate::fail::Fail;
use crate::spec::Trip;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// While one call tries, the others come back after this.
const TRYING: Duration = Duration::from_secs(1);
const LONGEST: u32 = 10;

/// What a call has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered, even if only with an error.
    Well,
    Ill,
    /// It cannot be reached; this is over as soon as it can be.
    Away,
    /// Nothing, such as a login that is missing.
    Unknown,
}

impl Verdict {
    pub(crate) fn of(fail: &Fail) -> Self {
        match fail {
            Fail::Rpc(_) | Fail::TooLarge(_) | Fail::Garbled(_) => Self::Well,
            Fail::NotSent(_) => Self::Away,
            Fail::Reset(_) | Fail::Lost(_) | Fail::Timeout(_) | Fail::Status { code: 500.., .. } => Self::Ill,
            Fail::Expired | Fail::Login(_) | Fail::Barred(_) | Fail::Status { code: 429, .. } => {
                Self::Unknown
            }
            Fail::Status { .. } => Self::Well,
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
    /// One call tries.
    HalfOpen {
        rounds: u32,
        away: bool,
    },
}

pub(crate) struct Breaker {
    trip: Trip,
    state: Mutex<State>,
}

/// Leave for one call; whoever has it says what came of it.
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    tries: bool,
    judged: bool,
}

impl Breaker {
    pub(crate) fn new(trip: Trip) -> Self {
        Self { trip, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave for a call, or how long to wait for it.
    pub(crate) fn admit(&self, now: Instant) -> Result<Pass<'_>, Duration> {
        let mut state = self.state();
        let tries = match *state {
            State::Closed { .. } => false,
            State::HalfOpen { .. } => return Err(TRYING),
            State::Open { until, rounds, away } => {
                let left = until.saturating_duration_since(now);
                if !left.is_zero() {
                    return Err(left);
                }
                *state = State::HalfOpen { rounds, away };
                true
            }
        };
        Ok(Pass { breaker: self, tries, judged: false })
    }

    /// Whether calls are refused.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(*self.state(), State::Closed { .. })
    }

    /// The server has been reached again: if that was the matter, the next call tries.
    pub(crate) fn reached(&self) {
        let mut state = self.state();
        if let State::Open { until, away: true, .. } = &mut *state {
            *until = Instant::now();
        }
    }

    fn judge(&self, verdict: Verdict, tries: bool) -> bool {
        let mut state = self.state();
        let away = match verdict {
            Verdict::Well => {
                *state = State::Closed { failures: 0 };
                return false;
            }
            Verdict::Unknown => {
                self.untried(&mut state, tries);
                return false;
            }
            Verdict::Ill => false,
            Verdict::Away => true,
        };
        match *state {
            State::Closed { failures } if self.trip.after == 0 || failures + 1 < self.trip.after => {
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
            // A call from before says nothing new.
            State::HalfOpen { .. } | State::Open { .. } => false,
        }
    }

    fn open(&self, rounds: u32, away: bool) -> State {
        let pause = self.trip.pause * (1_u32 << rounds.min(4)).min(LONGEST);
        State::Open { until: Instant::now() + pause, rounds, away }
    }

    /// The next call tries instead.
    fn untried(&self, state: &mut State, tries: bool) {
        if let (State::HalfOpen { rounds, away }, true) = (*state, tries) {
            *state = State::Open { until: Instant::now(), rounds, away };
        }
    }
}

impl Pass<'_> {
    /// True when calls are refused from now on.
    pub(crate) fn judge(mut self, verdict: Verdict) -> bool {
        self.judged = true;
        self.breaker.judge(verdict, self.tries)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.judged {
            self.breaker.untried(&mut self.breaker.state(), self.tries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(10);

    fn judged(breaker: &Breaker, after: Duration, verdict: Verdict) -> bool {
        breaker.admit(Instant::now() + after).ok().unwrap().judge(verdict)
    }

    fn is_shut(breaker: &Breaker, after: Duration) -> bool {
        breaker.admit(Instant::now() + after).is_err()
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_call_at_a_time_tries() {
        let (breaker, now) = (Breaker::new(Trip { after: 3, pause: PAUSE }), Duration::ZERO);
        for verdict in
            [Verdict::Ill, Verdict::Ill, Verdict::Well, Verdict::Ill, Verdict::Unknown, Verdict::Ill]
        {
            assert!(!judged(&breaker, now, verdict));
        }
        assert!(judged(&breaker, now, Verdict::Ill));
        assert!(is_shut(&breaker, PAUSE / 2));
        let first = breaker.admit(Instant::now() + PAUSE).ok().unwrap();
        assert_eq!(breaker.admit(Instant::now() + PAUSE).err(), Some(TRYING));
        // Whoever gives up leaves the trial to the next.
        drop(first);
        assert!(judged(&breaker, PAUSE, Verdict::Ill));
        assert!(is_shut(&breaker, PAUSE + PAUSE / 2), "the second pause is longer");
        breaker.reached();
        assert!(is_shut(&breaker, now), "being reached was not the matter");
        assert!(!judged(&breaker, 2 * PAUSE, Verdict::Well));
        assert!(!is_shut(&breaker, now) && !is_shut(&breaker, now));
    }

    #[test]
    fn a_server_that_was_away_is_tried_as_soon_as_it_is_back() {
        let (breaker, now) = (Breaker::new(Trip { after: 1, pause: PAUSE }), Duration::ZERO);
        assert!(judged(&breaker, now, Verdict::Away));
        assert!(is_shut(&breaker, now));
        breaker.reached();
        assert!(!judged(&breaker, now, Verdict::Well));
        let never = Breaker::new(Trip { after: 0, pause: PAUSE });
        assert!((0..100).all(|_| !judged(&never, now, Verdict::Ill)));
    }
}
