//! Fair queue before a server: concurrency limit, rate limit, and round-robin among callers.

use crate::upstream_spec::CallLimits;
use octo_admission::{QueueLimits, TurnQueue};
use octo_model::{Caller, DEFAULT_RETRY_AFTER};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

const RATE_WINDOW: Duration = Duration::from_secs(60);
/// Longest pause requested by the server that calls wait for; a longer one is returned to the caller.
const MAX_PAUSE_WAIT: Duration = Duration::from_secs(10);
/// Upper bound of a requested pause.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(3600);

pub(crate) struct FairQueue {
    limits: CallLimits,
    /// One minute, except in tests.
    window: Duration,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    running: usize,
    /// Start times of the calls within the window.
    recent_starts: VecDeque<Instant>,
    /// The server requested a pause until then.
    paused_until: Option<Instant>,
    waiting: TurnQueue<Slot>,
    /// Whether a timer is set for the next admission.
    has_timer: bool,
}

/// Slot of an active call; dropping it frees the slot.
pub(crate) struct Slot(Arc<FairQueue>);

/// Whether another call may start.
enum Availability {
    Now,
    At(Instant),
    /// After a running call ends.
    AfterRelease,
}

impl FairQueue {
    pub(crate) fn new(limits: CallLimits) -> Self {
        let state = QueueState { waiting: TurnQueue::new(QueueLimits::PER_CALLER), ..QueueState::default() };
        Self { limits, window: RATE_WINDOW, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot; returns a retry delay if waiting is pointless.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        caller: &Caller,
        deadline: Instant,
    ) -> Result<Slot, Duration> {
        let waits = {
            let mut line = self.state();
            let now = Instant::now();
            let free = line.availability(&self.limits, self.window, now);
            if let Availability::At(time) = free
                && (time > deadline || line.pause_remaining_at(now) > MAX_PAUSE_WAIT)
            {
                return Err(time.saturating_duration_since(now));
            }
            if matches!(free, Availability::Now) && line.waiting.is_empty() {
                line.start_call(&self.limits, now);
                return Ok(Slot(self.clone()));
            }
            line.waiting.enqueue(&caller.principal).ok_or(DEFAULT_RETRY_AFTER)?
        };
        self.admit_waiting();
        tokio::time::timeout_at(deadline, waits).await.ok().and_then(Result::ok).ok_or(DEFAULT_RETRY_AFTER)
    }

    /// Holds back all calls for this time.
    pub(crate) fn pause_for(&self, pause: Duration) {
        let until = Instant::now() + pause.min(MAX_PAUSE);
        let mut line = self.state();
        line.paused_until = line.paused_until.max(Some(until));
    }

    /// Remaining pause requested by the server.
    pub(crate) fn pause_remaining(&self) -> Duration {
        self.state().pause_remaining_at(Instant::now())
    }

    /// Admits waiting calls as far as the limits permit.
    fn admit_waiting(self: &Arc<Self>) {
        loop {
            let next = {
                let mut line = self.state();
                let now = Instant::now();
                match line.availability(&self.limits, self.window, now) {
                    Availability::Now => line
                        .waiting
                        .next(|_| true, |_, _| true)
                        .inspect(|_| line.start_call(&self.limits, now)),
                    Availability::At(time) => {
                        if !line.waiting.is_empty() && !line.has_timer {
                            line.has_timer = self.set_timer(time);
                        }
                        None
                    }
                    Availability::AfterRelease => None,
                }
            };
            let Some((_, next)) = next else { return };
            // A waiter that has just given up drops the slot, which frees it again.
            let _ = next.send(Slot(self.clone()));
        }
    }

    fn set_timer(self: &Arc<Self>, time: Instant) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        let turns = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep_until(time).await;
            if let Some(turns) = turns.upgrade() {
                turns.state().has_timer = false;
                turns.admit_waiting();
            }
        });
        true
    }
}

impl QueueState {
    fn availability(&mut self, limits: &CallLimits, window: Duration, now: Instant) -> Availability {
        while self.recent_starts.front().is_some_and(|begun| *begun + window <= now) {
            self.recent_starts.pop_front();
        }
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return Availability::At(until);
        }
        if limits.in_flight.is_some_and(|most| self.running >= most.max(1)) {
            return Availability::AfterRelease;
        }
        match (limits.per_minute, self.recent_starts.front()) {
            (Some(most), Some(first)) if self.recent_starts.len() >= most.max(1) => {
                Availability::At(*first + window)
            }
            _ => Availability::Now,
        }
    }

    fn pause_remaining_at(&self, now: Instant) -> Duration {
        self.paused_until.map(|until| until.saturating_duration_since(now)).unwrap_or_default()
    }

    fn start_call(&mut self, limits: &CallLimits, now: Instant) {
        self.running += 1;
        if limits.per_minute.is_some() {
            self.recent_starts.push_back(now);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut line = self.0.state();
            line.running = line.running.saturating_sub(1);
        }
        self.0.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    fn fair_queue(per_minute: Option<usize>, in_flight: Option<usize>) -> Arc<FairQueue> {
        Arc::new(FairQueue::new(CallLimits { per_minute, in_flight }))
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn callers_take_turns_however_many_calls_each_has() {
        let turns = fair_queue(None, Some(1));
        let first = turns.acquire(&Caller::named("ada"), in_seconds(9)).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut all = JoinSet::new();
        for name in ["ada", "ada", "ada", "ada", "bob", "eve", "bob"] {
            let (turns, order) = (turns.clone(), order.clone());
            all.spawn(async move {
                let turn = turns.acquire(&Caller::named(name), in_seconds(9)).await.ok().unwrap();
                order.lock().unwrap().push(name);
                tokio::task::yield_now().await;
                drop(turn);
            });
            tokio::task::yield_now().await;
        }
        drop(first);
        all.join_all().await;
        assert_eq!(*order.lock().unwrap(), ["ada", "bob", "eve", "ada", "bob", "ada", "ada"]);
        assert_eq!(turns.state().running, 0);
        assert!(turns.state().waiting.is_empty());
    }

    #[tokio::test]
    async fn no_minute_has_more_than_it_may() {
        const WINDOW: Duration = Duration::from_millis(100);
        let limits = CallLimits { per_minute: Some(2), in_flight: None };
        let turns = Arc::new(FairQueue { window: WINDOW, ..FairQueue::new(limits) });
        let ada = Caller::named("ada");
        let begun = Instant::now();
        for _ in 0..7 {
            drop(turns.acquire(&ada, in_seconds(60)).await.ok().unwrap());
        }
        assert!(begun.elapsed() >= 3 * WINDOW);
        let slow = Arc::new(FairQueue::new(limits));
        drop((slow.acquire(&ada, in_seconds(1)).await, slow.acquire(&ada, in_seconds(1)).await));
        let wait = slow.acquire(&ada, in_seconds(20)).await.err().unwrap();
        assert!(wait > Duration::from_secs(50), "{wait:?}");
    }

    #[tokio::test]
    async fn a_short_pause_is_waited_for_and_a_long_one_is_told() {
        let turns = fair_queue(None, None);
        let ada = Caller::named("ada");
        let pause = Duration::from_millis(100);
        let begun = Instant::now();
        turns.pause_for(pause);
        assert!(turns.acquire(&ada, in_seconds(60)).await.is_ok());
        assert!(begun.elapsed() >= pause);
        turns.pause_for(Duration::from_secs(30));
        let wait = turns.acquire(&ada, in_seconds(60)).await.err().unwrap();
        assert!(
            wait > Duration::from_secs(29) && turns.pause_remaining() > Duration::from_secs(29),
            "{wait:?}"
        );
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_no_gap() {
        let turns = fair_queue(None, Some(1));
        let ada = Caller::named("ada");
        let first = turns.acquire(&ada, in_seconds(9)).await.unwrap();
        assert!(turns.acquire(&ada, in_seconds(1)).await.is_err());
        let waits = tokio::spawn({
            let turns = turns.clone();
            async move { turns.acquire(&Caller::named("bob"), in_seconds(9)).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waits.await.unwrap());
        assert_eq!(turns.state().running, 0);
    }
}
