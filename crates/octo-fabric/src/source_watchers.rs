//! Resources of a source that other nodes watch.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long a node watches without renewal.
const WATCH_TTL: Duration = Duration::from_secs(30);
/// Maximum resources that one node watches at one source.
pub(crate) const MAX_WATCHED: usize = 10_000;

/// The watched resources by node.
#[derive(Default)]
pub(crate) struct SourceWatchers {
    nodes: HashMap<String, WatchingNode>,
}

struct WatchingNode {
    uris: BTreeSet<String>,
    renewed: Instant,
}

/// What to do at the source after a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchChanges {
    pub(crate) started: Vec<String>,
    pub(crate) stopped: Vec<String>,
}

impl SourceWatchers {
    fn watched(&self) -> BTreeSet<String> {
        self.nodes.values().flat_map(|node| node.uris.iter().cloned()).collect()
    }

    /// Replaces what a node watches and removes nodes that have not renewed.
    pub(crate) fn renew(&mut self, node: &str, uris: BTreeSet<String>, now: Instant) -> WatchChanges {
        let before = self.watched();
        if uris.is_empty() {
            self.nodes.remove(node);
        } else {
            self.nodes.insert(node.to_owned(), WatchingNode { uris, renewed: now });
        }
        self.nodes.retain(|_, node| now.saturating_duration_since(node.renewed) < WATCH_TTL);
        let after = self.watched();
        WatchChanges {
            started: after.difference(&before).cloned().collect(),
            stopped: before.difference(&after).cloned().collect(),
        }
    }

    /// Starts or stops watching one resource.
    pub(crate) fn set(&mut self, node: &str, uri: &str, on: bool, now: Instant) -> WatchChanges {
        let mut uris = self.nodes.get(node).map(|node| node.uris.clone()).unwrap_or_default();
        match on {
            true if uris.len() < MAX_WATCHED => uris.insert(uri.to_owned()),
            true => false,
            false => uris.remove(uri),
        };
        self.renew(node, uris, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(started: &[&str], stopped: &[&str]) -> WatchChanges {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        WatchChanges { started: texts(started), stopped: texts(stopped) }
    }

    #[test]
    fn a_resource_is_watched_as_long_as_any_node_does() {
        let (mut watchers, now) = (SourceWatchers::default(), Instant::now());
        assert_eq!(watchers.set("a", "x", true, now), changes(&["x"], &[]));
        assert_eq!(watchers.set("b", "x", true, now), changes(&[], &[]));
        assert_eq!(watchers.set("a", "x", false, now), changes(&[], &[]));
        assert_eq!(watchers.set("b", "x", false, now), changes(&[], &["x"]));
    }

    #[test]
    fn nodes_that_do_not_renew_are_removed() {
        let (mut watchers, now) = (SourceWatchers::default(), Instant::now());
        watchers.set("a", "x", true, now);
        watchers.set("b", "y", true, now + WATCH_TTL / 2);
        let later = now + WATCH_TTL;
        assert_eq!(watchers.renew("b", BTreeSet::from(["y".to_owned()]), later), changes(&[], &["x"]));
        assert_eq!(watchers.renew("b", BTreeSet::new(), later), changes(&[], &["y"]));
    }
}
