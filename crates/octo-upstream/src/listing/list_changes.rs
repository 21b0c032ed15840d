//! Pending changes of a server's lists.

use octo_model::ItemKind;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// Lists that must be fetched again.
#[derive(Default)]
pub(crate) struct ListChanges {
    bits: AtomicU8,
    notify: Notify,
}

impl ListChanges {
    pub(crate) fn mark(&self, kinds: &[ItemKind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | bit(*kind));
        self.bits.fetch_or(bits, Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// Waits for a change.
    pub(crate) async fn wait(&self) {
        while self.bits.load(Ordering::Acquire) == 0 {
            self.notify.notified().await;
        }
    }

    /// Takes the changes since the last call.
    pub(crate) fn take(&self) -> Vec<ItemKind> {
        let bits = self.bits.swap(0, Ordering::AcqRel);
        ItemKind::ALL.into_iter().filter(|kind| bits & bit(*kind) != 0).collect()
    }
}

const fn bit(kind: ItemKind) -> u8 {
    1 << kind as u8
}
