//! Resources with subscribers.

use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;

/// The desired subscriptions, and how far the server has acknowledged them.
#[derive(Default)]
pub(crate) struct ResourceSubscriptions {
    desired: watch::Sender<SubscribedUris>,
    /// Last processed version, and whether the server acknowledged it.
    acknowledged: watch::Sender<(u64, bool)>,
}

#[derive(Clone, Default)]
pub(crate) struct SubscribedUris {
    pub(crate) uris: BTreeSet<String>,
    pub(crate) version: u64,
}

impl ResourceSubscriptions {
    /// Changes the desired subscriptions and returns their version.
    pub(crate) fn set(&self, uri: &str, on: bool) -> u64 {
        self.desired.send_if_modified(|wanted| {
            let changed = if on { wanted.uris.insert(uri.to_owned()) } else { wanted.uris.remove(uri) };
            wanted.version += u64::from(changed);
            changed
        });
        self.desired.borrow().version
    }

    pub(crate) fn desired(&self) -> watch::Receiver<SubscribedUris> {
        self.desired.subscribe()
    }

    pub(crate) fn acknowledge(&self, version: u64, agreed: bool) {
        self.acknowledged.send_replace((version, agreed));
    }

    /// Waits for the server's acknowledgement; false if it refuses or times out.
    pub(crate) async fn wait_acknowledged(&self, version: u64, limit: Duration) -> bool {
        let mut honoured = self.acknowledged.subscribe();
        let seen = tokio::time::timeout(limit, honoured.wait_for(|(seen, _)| *seen >= version)).await;
        seen.is_ok_and(|seen| seen.is_ok_and(|seen| seen.1))
    }
}
