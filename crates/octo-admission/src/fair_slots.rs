//! Slots for concurrent work, shared fairly.

use crate::slot_shares::SlotShares;
use crate::turn_queue::{QueueLimits, TurnQueue};
use metrics::Gauge;
use octo_model::{DEFAULT_RETRY_AFTER, Principal, ToolError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// A number of slots and their division.
#[derive(Debug, Clone, Copy)]
pub struct SlotLimits {
    pub slots: usize,
    /// See [`SlotShares::new`].
    pub tenant_factor: usize,
    pub caller_factor: usize,
    pub queue: QueueLimits,
}

impl SlotLimits {
    /// One tenant gets four fifths of the slots, and one caller three quarters, rounded up.
    pub fn new(slots: usize) -> Self {
        Self { slots, tenant_factor: 4, caller_factor: 3, queue: QueueLimits::default() }
    }
}

/// Why work was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShedReason {
    /// The caller uses its share.
    Caller,
    /// The tenant uses its share.
    Tenant,
    /// The source that runs it uses its share, or the caller or tenant its share of the source.
    Source,
    /// All slots are in use.
    All,
    /// Too many operations wait.
    QueueFull,
    /// No slot became free in time.
    Timeout,
}

impl ShedReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Tenant => "tenant",
            Self::Source => "server",
            Self::All => "all",
            Self::QueueFull => "queue_full",
            Self::Timeout => "timeout",
        }
    }

    /// `what` is overloaded: "The hub".
    pub fn error(self, what: &str) -> ToolError {
        match self {
            Self::Caller => ToolError::rate_limited(
                format!("{what} runs too many calls of this caller at once."),
                DEFAULT_RETRY_AFTER,
            )
            .hint("Wait for some of them, then try again."),
            Self::Tenant => ToolError::rate_limited(
                format!("{what} runs too many calls of this tenant at once."),
                DEFAULT_RETRY_AFTER,
            )
            .hint("Try again in a moment, with fewer calls at once."),
            Self::Source | Self::All | Self::QueueFull | Self::Timeout => {
                ToolError::rate_limited(format!("{what} is overloaded."), DEFAULT_RETRY_AFTER)
                    .hint("Try again in a moment, with fewer calls at once.")
            }
        }
    }
}

/// Slots that tenants and callers share.
pub struct FairSlots {
    /// Their name in metrics.
    pool: &'static str,
    in_use: Gauge,
    state: Mutex<State>,
}

struct State {
    slots: usize,
    shares: SlotShares,
    waiting: TurnQueue<FairSlot>,
}

impl State {
    fn free(&self) -> usize {
        self.slots.saturating_sub(self.shares.used())
    }
}

/// Dropping it frees the slot.
#[must_use]
pub struct FairSlot {
    slots: Arc<FairSlots>,
    who: Principal,
}

impl FairSlots {
    pub fn new(pool: &'static str, limits: SlotLimits) -> Arc<Self> {
        let shares = SlotShares::new(limits.tenant_factor, limits.caller_factor);
        Arc::new(Self {
            pool,
            in_use: metrics::gauge!("octoprox_slots_in_use", "pool" => pool),
            state: Mutex::new(State {
                slots: limits.slots.max(1),
                shares,
                waiting: TurnQueue::new(limits.queue),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of free slots.
    pub fn free(&self) -> usize {
        self.state().free()
    }

    /// Number of operations that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.state().waiting.count()
    }

    /// Takes a slot, or refuses at once.
    pub fn try_acquire(self: &Arc<Self>, who: &Principal) -> Result<FairSlot, ShedReason> {
        let mut state = self.state();
        match state.shares.check(state.free(), who) {
            Ok(()) => Ok(self.take(&mut state, who.clone())),
            Err(reason) => {
                drop(state);
                Err(self.shed(reason))
            }
        }
    }

    /// Waits for a slot, in turn with other tenants and callers.
    pub async fn acquire(
        self: &Arc<Self>,
        who: &Principal,
        deadline: Instant,
    ) -> Result<FairSlot, ShedReason> {
        let receiver = {
            let mut state = self.state();
            if state.waiting.is_empty() && state.shares.check(state.free(), who).is_ok() {
                return Ok(self.take(&mut state, who.clone()));
            }
            state.waiting.enqueue(who)
        };
        let receiver = receiver.ok_or_else(|| self.shed(ShedReason::QueueFull))?;
        self.admit_waiting();
        let slot = tokio::time::timeout_at(deadline, receiver).await;
        slot.ok().and_then(Result::ok).ok_or_else(|| self.shed(ShedReason::Timeout))
    }

    fn take(self: &Arc<Self>, state: &mut State, who: Principal) -> FairSlot {
        state.shares.take(&who);
        self.in_use.increment(1.0);
        FairSlot { slots: Arc::clone(self), who }
    }

    fn admit_waiting(self: &Arc<Self>) {
        loop {
            let (sender, slot) = {
                let mut state = self.state();
                let free = state.free();
                let State { shares, waiting, .. } = &mut *state;
                if free == 0 || waiting.is_empty() {
                    return;
                }
                let next = waiting.next(
                    |tenant| shares.tenant_may_start(free, tenant),
                    |tenant, subject| shares.caller_may_start(free, tenant, subject),
                );
                let Some((who, sender)) = next else { return };
                (sender, self.take(&mut state, who))
            };
            // One that has just given up drops the slot, which frees it again.
            let _ = sender.send(slot);
        }
    }

    /// Counts work that was shed.
    pub fn shed(&self, reason: ShedReason) -> ShedReason {
        metrics::counter!("octoprox_shed_total", "pool" => self.pool, "reason" => reason.as_str())
            .increment(1);
        reason
    }
}

impl Drop for FairSlot {
    fn drop(&mut self) {
        self.slots.state().shares.give_back(&self.who);
        self.slots.in_use.decrement(1.0);
        self.slots.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::JoinSet;

    fn who(name: &str) -> Principal {
        let (tenant, subject) = name.split_once('/').unwrap();
        Principal::new(tenant, subject)
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_served_in_turn_and_the_others_are_shed() {
        let slots = FairSlots::new("test", SlotLimits::new(1));
        let first = slots.try_acquire(&who("a/ada")).ok().unwrap();
        assert_eq!(slots.try_acquire(&who("b/eve")).err(), Some(ShedReason::All));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut all = JoinSet::new();
        for name in ["a/ada", "a/ada", "a/bob", "b/eve"] {
            let (slots, order) = (Arc::clone(&slots), Arc::clone(&order));
            all.spawn(async move {
                let slot = slots.acquire(&who(name), in_seconds(9)).await.ok().unwrap();
                order.lock().unwrap().push(name);
                tokio::task::yield_now().await;
                drop(slot);
            });
            tokio::task::yield_now().await;
        }
        assert_eq!(slots.acquire(&who("c/cy"), in_seconds(1)).await.err(), Some(ShedReason::Timeout));
        drop(first);
        all.join_all().await;
        assert_eq!(*order.lock().unwrap(), ["a/ada", "b/eve", "a/bob", "a/ada"]);
        assert_eq!(slots.free(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_that_uses_its_share_waits_while_another_starts() {
        let slots = FairSlots::new("test", SlotLimits::new(10));
        let held: Vec<_> = std::iter::from_fn(|| slots.try_acquire(&who("a/ada")).ok()).collect();
        assert_eq!(held.len(), 8);
        assert_eq!(slots.try_acquire(&who("a/ada")).err(), Some(ShedReason::Tenant));
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.acquire(&who("a/ada"), in_seconds(9)).await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert!(slots.acquire(&who("b/eve"), in_seconds(1)).await.is_ok());
        drop(held);
        assert!(waiting.await.unwrap());
        assert_eq!(slots.free(), 10);
    }

    #[test]
    fn a_refusal_says_who_has_too_many_calls_and_when_to_try_again() {
        for (reason, text) in [
            (ShedReason::Caller, "The hub runs too many calls of this caller at once."),
            (ShedReason::Tenant, "The hub runs too many calls of this tenant at once."),
            (ShedReason::All, "The hub is overloaded."),
        ] {
            let error = reason.error("The hub");
            assert_eq!(error.message, text);
            assert_eq!(error.retry_after, Some(DEFAULT_RETRY_AFTER));
            assert!(error.hint.is_some());
        }
    }
}
