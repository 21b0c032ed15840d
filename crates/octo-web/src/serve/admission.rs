//! Who the connections of a listener belong to: nobody yet, or a caller, of whom no one may have them all.

use octo_model::{Caller, Principal};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The connections of one listener.
pub struct Connections {
    all: Mutex<All>,
    most: usize,
    most_per_caller: usize,
}

#[derive(Default)]
struct All {
    next: u64,
    open: usize,
    /// Those without an authorised request so far, the oldest first.
    unproven: BTreeMap<u64, CancellationToken>,
    callers: HashMap<Principal, usize>,
}

/// One connection, from its beginning to its end.
pub struct Connection {
    connections: Arc<Connections>,
    number: u64,
    owner: Mutex<Option<Principal>>,
    /// Ends the connection to make room for another.
    pub evicted: CancellationToken,
}

impl Connections {
    pub fn new(most: usize, most_per_caller: usize) -> Arc<Self> {
        Arc::new(Self { all: Mutex::default(), most, most_per_caller })
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new connection on. When there are too many, the oldest that has proven nothing makes room.
    pub fn begin(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut all = self.all();
        if all.open >= self.most {
            let (_, oldest) = all.unproven.pop_first()?;
            oldest.cancel();
        }
        let (number, evicted) = (all.next, CancellationToken::new());
        all.next += 1;
        all.open += 1;
        all.unproven.insert(number, evicted.clone());
        drop(all);
        let connections = Arc::clone(self);
        Some(Arc::new(Connection { connections, number, owner: Mutex::default(), evicted }))
    }
}

impl Connection {
    fn owner(&self) -> MutexGuard<'_, Option<Principal>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the connection to the first caller whose request it carries; false when that caller has too many.
    pub fn prove(&self, caller: &Caller) -> bool {
        let mut owner = self.owner();
        if owner.is_some() {
            return true;
        }
        let own = caller.principal.clone();
        let mut all = self.connections.all();
        let count = all.callers.entry(own.clone()).or_default();
        if *count >= self.connections.most_per_caller {
            return false;
        }
        *count += 1;
        all.unproven.remove(&self.number);
        *owner = Some(own);
        true
    }

    /// Whether an authorised request has come.
    pub fn is_proven(&self) -> bool {
        self.owner().is_some()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut all = self.connections.all();
        all.open = all.open.saturating_sub(1);
        all.unproven.remove(&self.number);
        if let Some(owner) = self.owner().take()
            && let Some(count) = all.callers.get_mut(&owner)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.callers.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_has_proven_nothing_makes_room() {
        let connections = Connections::new(3, 2);
        let (anna, bob) = (Caller::named("anna"), Caller::named("bob"));
        let [one, two, three] = [(); 3].map(|()| connections.begin().unwrap());
        assert!(one.prove(&anna) && one.prove(&bob) && one.is_proven());
        let four = connections.begin().unwrap();
        assert!(two.evicted.is_cancelled() && !one.evicted.is_cancelled() && !three.evicted.is_cancelled());
        drop(two);
        assert!(three.prove(&anna));
        assert!(!four.prove(&anna) && !four.is_proven(), "two are hers already");
        assert!(four.prove(&bob));
        assert!(connections.begin().is_none(), "nobody can make room");
        drop(three);
        let five = connections.begin().unwrap();
        assert!(five.prove(&anna));
        drop((one, four, five));
        let all = connections.all();
        assert!(all.open == 0 && all.callers.is_empty() && all.unproven.is_empty());
    }
}
