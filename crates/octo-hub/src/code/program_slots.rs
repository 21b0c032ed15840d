//! How many programs run at the same time.

use octo_admission::{FairSlot, FairSlots, ShedReason, SlotLimits};
use octo_model::{Principal, ToolError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Programs of all callers, shared by tenants and callers.
const MAX_PROGRAMS: usize = 16;
/// Programs of one caller.
const MAX_PROGRAMS_PER_CALLER: usize = 4;

/// Slots of programs.
pub struct ProgramSlots {
    all: Arc<FairSlots>,
    callers: Callers,
}

/// Running programs of each caller.
type Callers = Arc<Mutex<HashMap<Principal, usize>>>;

/// A running program; dropping it frees the slot.
#[must_use]
pub struct ProgramSlot {
    callers: Callers,
    who: Principal,
    _slot: FairSlot,
}

impl Default for ProgramSlots {
    fn default() -> Self {
        Self { all: FairSlots::new("programs", SlotLimits::new(MAX_PROGRAMS)), callers: Arc::default() }
    }
}

impl ProgramSlots {
    /// Takes a slot, or refuses at once.
    pub fn acquire(&self, who: &Principal) -> Result<ProgramSlot, ToolError> {
        let mut callers = lock(&self.callers);
        if callers.get(who).is_some_and(|running| *running >= MAX_PROGRAMS_PER_CALLER) {
            return Err(refusal(self.all.shed(ShedReason::Caller)));
        }
        let slot = self.all.try_acquire(who).map_err(refusal)?;
        *callers.entry(who.clone()).or_default() += 1;
        drop(callers);
        Ok(ProgramSlot { callers: Arc::clone(&self.callers), who: who.clone(), _slot: slot })
    }
}

fn refusal(reason: ShedReason) -> ToolError {
    let error = reason.error("Code mode");
    match reason {
        ShedReason::Caller => {
            ToolError { message: "Too many programs of this caller run at once.".into(), ..error }
        }
        ShedReason::Tenant => {
            ToolError { message: "Too many programs of this tenant run at once.".into(), ..error }
        }
        _ => error,
    }
}

impl Drop for ProgramSlot {
    fn drop(&mut self) {
        let mut callers = lock(&self.callers);
        if let Some(running) = callers.get_mut(&self.who) {
            *running -= 1;
            if *running == 0 {
                callers.remove(&self.who);
            }
        }
    }
}

fn lock(callers: &Callers) -> MutexGuard<'_, HashMap<Principal, usize>> {
    callers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Kind;

    #[test]
    fn a_caller_gets_a_few_and_leaves_the_rest_to_others() {
        let slots = ProgramSlots::default();
        let fill = |who: &Principal| -> Vec<ProgramSlot> {
            std::iter::from_fn(|| slots.acquire(who).ok()).collect()
        };
        let [ada, bob, eve] = [("a", "ada"), ("a", "bob"), ("b", "eve")].map(|(t, s)| Principal::new(t, s));
        let mut of_ada = fill(&ada);
        let of_bob = fill(&bob);
        assert_eq!((of_ada.len(), of_bob.len()), (MAX_PROGRAMS_PER_CALLER, MAX_PROGRAMS_PER_CALLER));
        let refused = slots.acquire(&ada).err().unwrap();
        assert_eq!(refused.kind, Kind::RateLimited);
        assert_eq!(refused.message, "Too many programs of this caller run at once.");
        assert_eq!(fill(&eve).len(), MAX_PROGRAMS_PER_CALLER);
        of_ada.pop();
        of_ada.extend(fill(&ada));
        assert_eq!(of_ada.len(), MAX_PROGRAMS_PER_CALLER);
        drop((of_ada, of_bob));
        assert!(lock(&slots.callers).is_empty());
    }
}
