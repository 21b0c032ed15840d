//! Which of several connections keeps the lists of a server up to date: the one that was made last.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// The connections that can list, by their numbers.
#[derive(Default)]
pub(crate) struct Listers {
    made: AtomicU64,
    present: watch::Sender<BTreeSet<u64>>,
}

/// One of them; it counts until it is dropped.
pub(crate) struct Present {
    listers: Arc<Listers>,
    number: u64,
}

impl Listers {
    /// The number of a connection that has just been made; from 1.
    pub(crate) fn number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn enter(self: &Arc<Self>, number: u64) -> Present {
        self.present.send_if_modified(|present| present.insert(number));
        Present { listers: self.clone(), number }
    }

    /// Whether none was made later.
    pub(crate) fn is_last(&self, number: u64) -> bool {
        is_last(&self.present.borrow(), number)
    }
}

fn is_last(present: &BTreeSet<u64>, number: u64) -> bool {
    present.last().is_none_or(|last| number >= *last)
}

impl Present {
    /// Waits until it is the last one, or is not.
    pub(crate) async fn until_last(&self, yes: bool) {
        let mut present = self.listers.present.subscribe();
        let _ = present.wait_for(|present| is_last(present, self.number) == yes).await;
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.listers.present.send_if_modified(|present| present.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_one_lists_and_the_one_before_goes_on_after_it() {
        let listers = Arc::new(Listers::default());
        let (old, new) = (listers.number(), listers.number());
        assert!(listers.is_last(old) && listers.is_last(new), "nobody lists yet");
        let first = listers.enter(old);
        let second = listers.enter(new);
        assert!(!listers.is_last(old) && listers.is_last(new));
        first.until_last(false).await;
        second.until_last(true).await;
        drop(second);
        first.until_last(true).await;
    }
}
