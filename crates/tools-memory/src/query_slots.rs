//! How many semantic searches run at once: each holds the texts of a whole memory.

use octo_toolkit::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Searches at once, of which each owner has one.
const MAX_RUNNING: usize = 3;
/// How long a search waits for a slot.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Slots of searches: one for each owner, a few for all.
pub struct QuerySlots {
    all: Arc<Semaphore>,
    /// Of the owners that search.
    owners: Mutex<HashMap<Principal, Arc<Semaphore>>>,
}

/// Dropping it frees the slot.
#[must_use]
pub struct QuerySlot {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Default for QuerySlots {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_RUNNING)), owners: Mutex::default() }
    }
}

impl QuerySlots {
    /// Waits briefly for a slot. None if there is none in time.
    pub async fn take(&self, owner: &Principal) -> Option<QuerySlot> {
        let own = self.of_owner(owner);
        let slot = async {
            let own = own.acquire_owned().await.ok()?;
            Some(QuerySlot { _all: Arc::clone(&self.all).acquire_owned().await.ok()?, _own: own })
        };
        tokio::time::timeout(MAX_WAIT, slot).await.ok()?
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
    async fn owners_have_one_slot_and_all_a_few() {
        let slots = QuerySlots::default();
        let first = slots.take(&owner("0")).await.unwrap();
        assert!(slots.take(&owner("0")).await.is_none(), "a second one of the same owner");
        let mut others = Vec::new();
        for number in 1..MAX_RUNNING {
            others.push(slots.take(&owner(&number.to_string())).await.unwrap());
        }
        assert!(slots.take(&owner("last")).await.is_none());
        drop(first);
        assert!(slots.take(&owner("last")).await.is_some());
        drop(others);
        assert!(slots.take(&owner("0")).await.is_some());
        assert_eq!(slots.owners.lock().unwrap().len(), 1, "owners that do not search are forgotten");
    }
}
