//! How many searches by meaning run at once: each holds the texts of a whole memory.

use octo_toolkit::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Searches at once, of which each owner has one.
const MAX_RUNNING: usize = 3;
/// How long a search waits for its turn.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Turns of searches: one for each owner, a few for all.
pub struct QueryTurns {
    all: Arc<Semaphore>,
    /// Of the owners that search.
    owners: Mutex<HashMap<Principal, Arc<Semaphore>>>,
}

/// Dropping it ends the turn.
#[must_use]
pub struct QueryTurn {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Default for QueryTurns {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_RUNNING)), owners: Mutex::default() }
    }
}

impl QueryTurns {
    /// Waits briefly for a turn. None if there is none in time.
    pub async fn take(&self, owner: &Principal) -> Option<QueryTurn> {
        let own = self.of_owner(owner);
        let turn = async {
            let own = own.acquire_owned().await.ok()?;
            Some(QueryTurn { _all: Arc::clone(&self.all).acquire_owned().await.ok()?, _own: own })
        };
        tokio::time::timeout(MAX_WAIT, turn).await.ok()?
    }

    fn of_owner(&self, owner: &Principal) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, own| Arc::strong_count(own) > 1);
        Arc::clone(owners.entry(owner.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Principal {
        Principal::new("t", name)
    }

    #[tokio::test]
    async fn owners_have_one_turn_and_all_a_few() {
        let turns = QueryTurns::default();
        let first = turns.take(&owner("0")).await.unwrap();
        assert!(turns.take(&owner("0")).await.is_none(), "a second one of the same owner");
        let mut others = Vec::new();
        for number in 1..MAX_RUNNING {
            others.push(turns.take(&owner(&number.to_string())).await.unwrap());
        }
        assert!(turns.take(&owner("last")).await.is_none());
        drop(first);
        assert!(turns.take(&owner("last")).await.is_some());
        drop(others);
        assert!(turns.take(&owner("0")).await.is_some());
        assert_eq!(turns.owners.lock().unwrap().len(), 1, "owners that do not search are forgotten");
    }
}
