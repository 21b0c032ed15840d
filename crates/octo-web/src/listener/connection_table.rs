//! Connections of a listener per caller: unassigned at first, then limited per caller.

use octo_model::{Caller, Principal};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Of this share of the connections, as many may be about to close.
const CLOSING_SHARE: usize = 8;

/// Connections of one listener.
pub struct ConnectionTable {
    state: Mutex<TableState>,
    max_connections: usize,
    max_per_caller: usize,
}

#[derive(Default)]
struct TableState {
    next: u64,
    open: usize,
    /// Connections without an authorized request so far, oldest first.
    unauthorized: BTreeMap<u64, CancellationToken>,
    callers: HashMap<Principal, usize>,
}

/// One open connection.
pub struct Connection {
    connections: Arc<ConnectionTable>,
    number: u64,
    owner: Mutex<Option<Principal>>,
    /// Ends the connection to make room for another.
    pub evicted: CancellationToken,
}

impl ConnectionTable {
    pub fn new(max_connections: usize, max_per_caller: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), max_connections, max_per_caller })
    }

    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a new connection. If there are too many, the oldest unauthorized one is closed. Until it is, both are open,
    /// which is so for a few of them at the same time.
    pub fn admit(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut all = self.lock();
        if all.open >= self.max_connections + (self.max_connections / CLOSING_SHARE).max(1) {
            return None;
        }
        if all.open >= self.max_connections {
            let (_, oldest) = all.unauthorized.pop_first()?;
            oldest.cancel();
        }
        let (number, evicted) = (all.next, CancellationToken::new());
        all.next += 1;
        all.open += 1;
        all.unauthorized.insert(number, evicted.clone());
        drop(all);
        let connections = Arc::clone(self);
        Some(Arc::new(Connection { connections, number, owner: Mutex::default(), evicted }))
    }
}

impl Connection {
    fn owner(&self) -> MutexGuard<'_, Option<Principal>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns the connection to the caller of its first request; false if that caller has too many.
    pub fn assign_owner(&self, caller: &Caller) -> bool {
        let mut owner = self.owner();
        if owner.is_some() {
            return true;
        }
        let own = caller.principal.clone();
        let mut all = self.connections.lock();
        let count = all.callers.entry(own.clone()).or_default();
        if *count >= self.connections.max_per_caller {
            return false;
        }
        *count += 1;
        all.unauthorized.remove(&self.number);
        *owner = Some(own);
        true
    }

    /// Whether there was an authorized request.
    pub fn is_authorized(&self) -> bool {
        self.owner().is_some()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut all = self.connections.lock();
        all.open = all.open.saturating_sub(1);
        all.unauthorized.remove(&self.number);
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
    fn connections_that_are_about_to_close_are_bounded() {
        let connections = ConnectionTable::new(16, 16);
        let open: Vec<_> = std::iter::from_fn(|| connections.admit()).take(100).collect();
        assert_eq!(open.len(), 18, "two of them close");
        assert_eq!(open.iter().filter(|one| one.evicted.is_cancelled()).count(), 2);
        drop(open);
        assert!(connections.admit().is_some());
    }

    #[test]
    fn the_oldest_that_has_proven_nothing_makes_room() {
        let connections = ConnectionTable::new(3, 2);
        let (anna, bob) = (Caller::named("anna"), Caller::named("bob"));
        let [one, two, three] = [(); 3].map(|()| connections.admit().unwrap());
        assert!(one.assign_owner(&anna) && one.assign_owner(&bob) && one.is_authorized());
        let four = connections.admit().unwrap();
        assert!(two.evicted.is_cancelled() && !one.evicted.is_cancelled() && !three.evicted.is_cancelled());
        drop(two);
        assert!(three.assign_owner(&anna));
        assert!(!four.assign_owner(&anna) && !four.is_authorized(), "two are hers already");
        assert!(four.assign_owner(&bob));
        assert!(connections.admit().is_none(), "nobody can make room");
        drop(three);
        let five = connections.admit().unwrap();
        assert!(five.assign_owner(&anna));
        drop((one, four, five));
        let all = connections.lock();
        assert!(all.open == 0 && all.callers.is_empty() && all.unauthorized.is_empty());
    }
}
