//! Elects the link that keeps the listing of a server up to date: the most recent one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// Connections that can list, by rank.
#[derive(Default)]
pub(crate) struct ListingElection {
    last_rank: AtomicU64,
    candidates: watch::Sender<BTreeSet<u64>>,
}

/// A candidate; counts until it is dropped.
pub(crate) struct ListingCandidate {
    election: Arc<ListingElection>,
    rank: u64,
}

impl ListingElection {
    /// Rank of a new connection, starting at 1.
    pub(crate) fn next_rank(&self) -> u64 {
        self.last_rank.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn join(self: &Arc<Self>, number: u64) -> ListingCandidate {
        self.candidates.send_if_modified(|present| present.insert(number));
        ListingCandidate { election: self.clone(), rank: number }
    }

    /// Whether no later connection can list.
    pub(crate) fn is_leader(&self, number: u64) -> bool {
        is_highest(&self.candidates.borrow(), number)
    }
}

fn is_highest(present: &BTreeSet<u64>, number: u64) -> bool {
    present.last().is_none_or(|last| number >= *last)
}

impl ListingCandidate {
    /// Waits until it is the leader, or until it is not.
    pub(crate) async fn wait_leadership(&self, yes: bool) {
        let mut present = self.election.candidates.subscribe();
        let _ = present.wait_for(|present| is_highest(present, self.rank) == yes).await;
    }
}

impl Drop for ListingCandidate {
    fn drop(&mut self) {
        self.election.candidates.send_if_modified(|present| present.remove(&self.rank));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_one_lists_and_the_one_before_goes_on_after_it() {
        let listers = Arc::new(ListingElection::default());
        let (old, new) = (listers.next_rank(), listers.next_rank());
        assert!(listers.is_leader(old) && listers.is_leader(new), "nobody lists yet");
        let first = listers.join(old);
        let second = listers.join(new);
        assert!(!listers.is_leader(old) && listers.is_leader(new));
        first.wait_leadership(false).await;
        second.wait_leadership(true).await;
        drop(second);
        first.wait_leadership(true).await;
    }
}
