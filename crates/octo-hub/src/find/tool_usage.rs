//! Which tools a caller has used: of tools that fit a search about equally well, those come first.

use octo_model::Principal;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Callers that are remembered.
const MAX_PRINCIPALS: usize = 1_000;
/// Tools of a caller that are remembered.
const MAX_TOOLS: usize = 200;
/// Longer names are not remembered.
const MAX_TARGET_BYTES: usize = 300;
/// The most by which a score grows: what fits clearly better stays ahead.
const MAX_BOOST: f32 = 0.05;
/// Calls after which it has grown by half of that.
const HALF_BOOST_CALLS: f32 = 3.0;

/// Successful calls of each tool, by caller: nothing of one is visible to another.
#[derive(Default)]
pub struct ToolUsage(Mutex<HashMap<Principal, UsedTools>>);

#[derive(Default)]
struct UsedTools {
    all: u32,
    /// By source and key.
    calls: HashMap<String, u32>,
}

impl ToolUsage {
    pub fn record(&self, principal: &Principal, source: &str, key: &str) {
        let target = target(source, key);
        if target.len() > MAX_TARGET_BYTES {
            return;
        }
        let mut principals = self.lock();
        make_room(&mut principals, principal, MAX_PRINCIPALS, |tools| tools.all);
        let tools = principals.entry(principal.clone()).or_default();
        tools.all = tools.all.saturating_add(1);
        make_room(&mut tools.calls, &target, MAX_TOOLS, |calls| *calls);
        let calls = tools.calls.entry(target).or_default();
        *calls = calls.saturating_add(1);
    }

    /// What the score of a tool is multiplied by in a search of this caller.
    pub fn factor(&self, principal: &Principal, source: &str, key: &str) -> f32 {
        let principals = self.lock();
        let calls = principals.get(principal).and_then(|tools| tools.calls.get(&target(source, key)));
        let calls = calls.copied().unwrap_or_default() as f32;
        1.0 + MAX_BOOST * calls / (calls + HALF_BOOST_CALLS)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, UsedTools>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn target(source: &str, key: &str) -> String {
    format!("{source}/{key}")
}

/// Forgets what is least used if there is no room for another key.
fn make_room<K: Clone + Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    most: usize,
    uses: impl Fn(&V) -> u32,
) {
    if map.len() < most || map.contains_key(key) {
        return;
    }
    let least = map.iter().min_by_key(|(_, value)| uses(value)).map(|(key, _)| key.clone());
    if let Some(least) = least {
        map.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_grow_with_use_up_to_a_limit() {
        let (ann, bob) = (Principal::new("t", "ann"), Principal::new("t", "bob"));
        let usage = ToolUsage::default();
        assert_eq!(usage.factor(&ann, "mail", "send"), 1.0);
        let mut last = 1.0;
        for calls in 1..=1_000 {
            usage.record(&ann, "mail", "send");
            let factor = usage.factor(&ann, "mail", "send");
            assert!(factor > last || calls > 500, "{calls}: {factor}");
            last = factor;
        }
        assert!((1.04..=1.0 + MAX_BOOST).contains(&last), "{last}");
        assert_eq!(usage.factor(&ann, "mail", "list"), 1.0);
        assert_eq!(usage.factor(&bob, "mail", "send"), 1.0);
    }

    #[test]
    fn what_is_least_used_is_forgotten() {
        let usage = ToolUsage::default();
        let who = |number: usize| Principal::new("t", number.to_string());
        for _ in 0..2 {
            usage.record(&who(0), "s", "often");
        }
        for number in 0..2 * MAX_TOOLS {
            usage.record(&who(0), "s", &number.to_string());
        }
        for number in 1..2 * MAX_PRINCIPALS {
            usage.record(&who(number), "s", "tool");
        }
        usage.record(&who(0), "s", &"x".repeat(MAX_TARGET_BYTES));
        let principals = usage.lock();
        assert_eq!((principals.len(), principals[&who(0)].calls.len()), (MAX_PRINCIPALS, MAX_TOOLS));
        drop(principals);
        assert!(usage.factor(&who(0), "s", "often") > 1.0);
    }
}
