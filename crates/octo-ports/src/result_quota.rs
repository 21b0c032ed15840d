//! Quota of stored results.

use octo_model::Principal;
use std::collections::{HashMap, VecDeque};

/// The results of each caller, oldest first, with their sizes.
pub type ResultsByOwner = HashMap<Principal, VecDeque<(String, u64)>>;

/// Chooses what to evict so that the rest fits. The caller with the most bytes loses their oldest results
/// first, so a caller within an equal share never loses any to another.
pub fn choose_evicted(mut owners: ResultsByOwner, quota: u64) -> Vec<String> {
    let sum = |results: &VecDeque<(String, u64)>| results.iter().map(|(_, size)| size).sum::<u64>();
    let mut sums: HashMap<Principal, u64> =
        owners.iter().map(|(owner, results)| (owner.clone(), sum(results))).collect();
    let mut total: u64 = sums.values().sum();
    let mut evicted = Vec::new();
    while total > quota {
        let Some((owner, most)) = sums.iter_mut().max_by_key(|(_, size)| **size) else { break };
        let Some((handle, size)) = owners.get_mut(owner).and_then(VecDeque::pop_front) else { break };
        *most -= size.min(*most);
        total -= size.min(total);
        evicted.push(handle);
    }
    evicted
}
