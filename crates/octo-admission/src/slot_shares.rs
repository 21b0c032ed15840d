//! Shares of tenants and callers in a number of slots. The more slots are free, the more of them one tenant or caller
//! may use; the rest is left for others, however many slots one of them asks for.

use crate::ShedReason;
use octo_model::Principal;
use std::collections::HashMap;

/// Slots in use.
pub struct SlotShares {
    used: usize,
    tenant_factor: usize,
    caller_factor: usize,
    tenants: HashMap<String, TenantUse>,
}

#[derive(Default)]
struct TenantUse {
    slots: usize,
    callers: HashMap<String, usize>,
}

impl SlotShares {
    /// A tenant may use `tenant_factor` times the number of free slots: alone, it gets `n / (n + 1)` of all. The same for
    /// a caller.
    pub fn new(tenant_factor: usize, caller_factor: usize) -> Self {
        Self { used: 0, tenant_factor, caller_factor, tenants: HashMap::new() }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn tenant_may_start(&self, free: usize, tenant: &str) -> bool {
        let used = self.tenants.get(tenant).map_or(0, |tenant| tenant.slots);
        used < free.saturating_mul(self.tenant_factor)
    }

    pub fn caller_may_start(&self, free: usize, tenant: &str, subject: &str) -> bool {
        let used = self.tenants.get(tenant).and_then(|tenant| tenant.callers.get(subject)).copied();
        used.unwrap_or(0) < free.saturating_mul(self.caller_factor)
    }

    /// Whether one of `free` slots may be used.
    pub fn check(&self, free: usize, who: &Principal) -> Result<(), ShedReason> {
        if free == 0 {
            Err(ShedReason::All)
        } else if !self.tenant_may_start(free, &who.tenant) {
            Err(ShedReason::Tenant)
        } else if !self.caller_may_start(free, &who.tenant, &who.subject) {
            Err(ShedReason::Caller)
        } else {
            Ok(())
        }
    }

    pub fn take(&mut self, who: &Principal) {
        self.used += 1;
        if !self.tenants.contains_key(&who.tenant) {
            self.tenants.insert(who.tenant.clone(), TenantUse::default());
        }
        let Some(tenant) = self.tenants.get_mut(&who.tenant) else { return };
        tenant.slots += 1;
        match tenant.callers.get_mut(&who.subject) {
            Some(used) => *used += 1,
            None => _ = tenant.callers.insert(who.subject.clone(), 1),
        }
    }

    pub fn give_back(&mut self, who: &Principal) {
        self.used -= 1;
        let Some(tenant) = self.tenants.get_mut(&who.tenant) else { return };
        tenant.slots -= 1;
        if tenant.slots == 0 {
            self.tenants.remove(&who.tenant);
            return;
        }
        if let Some(used) = tenant.callers.get_mut(&who.subject) {
            *used -= 1;
            if *used == 0 {
                tenant.callers.remove(&who.subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> [Principal; 3] {
        [("a", "ada"), ("a", "bob"), ("b", "eve")].map(|(tenant, subject)| Principal::new(tenant, subject))
    }

    /// Takes as many of 100 slots as permitted.
    fn fill(shares: &mut SlotShares, who: &Principal) -> usize {
        let mut taken = 0;
        while shares.check(100 - shares.used(), who).is_ok() {
            shares.take(who);
            taken += 1;
        }
        taken
    }

    #[test]
    fn one_tenant_leaves_room_for_others_and_one_caller_for_the_rest_of_its_tenant() {
        let mut shares = SlotShares::new(4, 3);
        let [ada, bob, eve] = people();
        assert_eq!(fill(&mut shares, &ada), 75);
        assert_eq!(shares.check(25, &ada), Err(ShedReason::Caller));
        assert_eq!(fill(&mut shares, &bob), 5);
        assert_eq!(shares.check(20, &bob), Err(ShedReason::Tenant));
        assert_eq!(fill(&mut shares, &eve), 15);
        // What is given back is open to all.
        for _ in 0..75 {
            shares.give_back(&ada);
        }
        assert_eq!(fill(&mut shares, &eve), 57);
    }

    #[test]
    fn the_last_slot_goes_to_whoever_has_none() {
        let mut shares = SlotShares::new(1, 1);
        let [ada, _, eve] = people();
        shares.take(&ada);
        assert_eq!(shares.check(1, &ada), Err(ShedReason::Tenant));
        assert_eq!(shares.check(1, &eve), Ok(()));
        shares.take(&eve);
        assert_eq!(shares.check(0, &eve), Err(ShedReason::All));
        shares.give_back(&eve);
        shares.give_back(&ada);
        assert!(shares.used() == 0 && shares.tenants.is_empty());
    }
}
