//! Slots for calls, shared by tenants, callers and the sources that run the calls.

use crate::{FairSlot, FairSlots, ShedReason, SlotLimits, slot_shares::SlotShares};
use octo_model::{DEFAULT_RETRY_AFTER, Principal, ToolError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Two thirds of all slots, which is less than the share of a tenant, so that one slow server cannot hold all calls of a
/// tenant. It does not depend on the other sources: otherwise whoever fills them would shrink this one, too.
fn slots_of_source(all: usize) -> usize {
    (all * 2 / 3).max(1)
}

pub struct CallSlots {
    slots: Arc<FairSlots>,
    limits: SlotLimits,
    sources: Arc<Sources>,
}

/// Running calls of each source. Tenants and callers share the slots of a source, too.
type Sources = Mutex<HashMap<String, SlotShares>>;

/// A running call of a source; dropping it frees the slot.
#[must_use]
pub struct SourceSlot {
    sources: Arc<Sources>,
    source: String,
    who: Principal,
}

impl CallSlots {
    pub fn new(pool: &'static str, slots: usize) -> Self {
        let limits = SlotLimits::new(slots);
        Self { slots: FairSlots::new(pool, limits), limits, sources: Arc::default() }
    }

    /// Admits a call.
    pub fn admit(&self, who: &Principal) -> Result<FairSlot, ShedReason> {
        self.slots.try_acquire(who)
    }

    /// Admits a call, which has its slot, to the source that runs it.
    pub fn admit_to_source(&self, source: &str, who: &Principal) -> Result<SourceSlot, ToolError> {
        let all = slots_of_source(self.limits.slots);
        let mut sources = lock(&self.sources);
        if !sources.contains_key(source) {
            let shares = SlotShares::new(self.limits.tenant_factor, self.limits.caller_factor);
            sources.insert(source.to_owned(), shares);
        }
        let shares = sources.get_mut(source).ok_or_else(|| ToolError::internal("no shares of a source"))?;
        if let Err(reason) = shares.check(all.saturating_sub(shares.used()), who) {
            drop(sources);
            self.slots.shed(ShedReason::Source);
            return Err(source_error(source, reason));
        }
        shares.take(who);
        drop(sources);
        Ok(SourceSlot { sources: Arc::clone(&self.sources), source: source.to_owned(), who: who.clone() })
    }

    /// Counts a call that was shed.
    pub fn shed(&self, reason: ShedReason) -> ShedReason {
        self.slots.shed(reason)
    }
}

fn source_error(source: &str, reason: ShedReason) -> ToolError {
    let whose = match reason {
        ShedReason::Caller => " of this caller",
        ShedReason::Tenant => " of this tenant",
        _ => "",
    };
    let message = format!("Too many calls{whose} are in progress at `{source}`.");
    ToolError::rate_limited(message, DEFAULT_RETRY_AFTER)
        .hint("It may be slow; use another server, or try again later.")
}

impl Drop for SourceSlot {
    fn drop(&mut self) {
        let mut sources = lock(&self.sources);
        if let Some(shares) = sources.get_mut(&self.source) {
            shares.give_back(&self.who);
            if shares.used() == 0 {
                sources.remove(&self.source);
            }
        }
    }
}

fn lock(sources: &Sources) -> MutexGuard<'_, HashMap<String, SlotShares>> {
    sources.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Kind;

    type Call = (FairSlot, SourceSlot);

    /// Starts calls until one is refused by the source.
    fn fill(slots: &CallSlots, source: &str, who: impl Fn(usize) -> Principal) -> (Vec<Call>, ToolError) {
        let mut calls = Vec::new();
        loop {
            let who = who(calls.len());
            let slot = slots.admit(&who).ok().unwrap();
            match slots.admit_to_source(source, &who) {
                Ok(at_source) => calls.push((slot, at_source)),
                Err(error) => return (calls, error),
            }
        }
    }

    #[test]
    fn a_slow_source_leaves_slots_for_the_others() {
        let slots = CallSlots::new("test", 90);
        let (mut calls, refused) = fill(&slots, "slow", |number| Principal::new(number.to_string(), "ada"));
        assert_eq!((calls.len(), refused.kind), (60, Kind::RateLimited));
        assert_eq!(refused.message, "Too many calls are in progress at `slow`.");
        assert_eq!(refused.retry_after, Some(DEFAULT_RETRY_AFTER));
        let eve = Principal::new("b", "eve");
        assert!(slots.admit_to_source("slow", &eve).is_err());
        assert!(slots.admit_to_source("fast", &eve).is_ok());
        calls.pop();
        assert!(slots.admit_to_source("slow", &eve).is_ok());
        drop(calls);
        assert!(lock(&slots.sources).is_empty());
    }

    #[test]
    fn one_caller_or_tenant_leaves_slots_of_a_source_for_others() {
        let slots = CallSlots::new("test", 90);
        let [ada, bob, eve] = [("a", "ada"), ("a", "bob"), ("b", "eve")].map(|(t, s)| Principal::new(t, s));
        let (of_ada, refused) = fill(&slots, "shared", |_| ada.clone());
        assert_eq!(of_ada.len(), 45);
        assert_eq!(refused.message, "Too many calls of this caller are in progress at `shared`.");
        let (of_bob, refused) = fill(&slots, "shared", |_| bob.clone());
        assert_eq!(of_bob.len(), 3);
        assert_eq!(refused.message, "Too many calls of this tenant are in progress at `shared`.");
        let slot = slots.admit(&eve).ok().unwrap();
        assert!(slots.admit_to_source("shared", &eve).is_ok());
        drop(slot);
    }

    #[test]
    fn calls_at_other_sources_take_nothing_from_a_source() {
        let slots = CallSlots::new("test", 90);
        let [ada, eve] = [("a", "ada"), ("b", "eve")].map(|(t, s)| Principal::new(t, s));
        let (_shared, _) = fill(&slots, "shared", |_| ada.clone());
        let mut others = Vec::new();
        while let Ok(slot) = slots.admit(&ada) {
            others.push((slot, slots.admit_to_source("other", &ada).ok().unwrap()));
        }
        assert!(others.len() > 10, "{}", others.len());
        let _slot = slots.admit(&eve).ok().unwrap();
        assert!(slots.admit_to_source("shared", &eve).is_ok());
    }
}
