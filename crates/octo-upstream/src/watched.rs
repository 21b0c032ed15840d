//! The resources that somebody wants to hear about.

use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;

/// The wish, and how far the server has agreed to it.
#[derive(Default)]
pub(crate) struct Watched {
    wanted: watch::Sender<Wanted>,
    /// The version that was last dealt with, and whether the server agreed.
    honoured: watch::Sender<(u64, bool)>,
}

#[derive(Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) uris: BTreeSet<String>,
    pub(crate) version: u64,
}

impl Watched {
    /// Changes the wish and gives its version.
    pub(crate) fn set(&self, uri: &str, on: bool) -> u64 {
        self.wanted.send_if_modified(|wanted| {
            let changed = if on { wanted.uris.insert(uri.to_owned()) } else { wanted.uris.remove(uri) };
            wanted.version += u64::from(changed);
            changed
        });
        self.wanted.borrow().version
    }

    pub(crate) fn wanted(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(crate) fn honour(&self, version: u64, agreed: bool) {
        self.honoured.send_replace((version, agreed));
    }

    /// Waits until the server has agreed to the wish; false when it refuses or takes too long.
    pub(crate) async fn is_honoured(&self, version: u64, limit: Duration) -> bool {
        let mut honoured = self.honoured.subscribe();
        let seen = tokio::time::timeout(limit, honoured.wait_for(|(seen, _)| *seen >= version)).await;
        seen.is_ok_and(|seen| seen.is_ok_and(|seen| seen.1))
    }
}
