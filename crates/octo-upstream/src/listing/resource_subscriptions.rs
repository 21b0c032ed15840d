//! Resources with subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The desired subscriptions, and how far the server has acknowledged them.
#[derive(Default)]
pub(crate) struct ResourceSubscriptions {
    desired: watch::Sender<SubscribedUris>,
    /// Subscribers of each resource: several hubs may use the server.
    counts: Mutex<BTreeMap<String, usize>>,
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
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(uri.to_owned()).or_default();
        *count = if on { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            counts.remove(uri);
        } else if !on {
            return self.desired.borrow().version;
        }
        self.desired.send_if_modified(|wanted| {
            let changed = if on { wanted.uris.insert(uri.to_owned()) } else { wanted.uris.remove(uri) };
            wanted.version += u64::from(changed);
            changed
        });
        self.desired.borrow().version
    }

    /// Whether anybody is subscribed.
    pub(crate) fn is_desired(&self, uri: &str) -> bool {
        self.desired.borrow().uris.contains(uri)
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
