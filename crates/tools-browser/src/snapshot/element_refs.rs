//! Element refs. A ref is stable for the lifetime of its element and never reused.

use super::PageItem;
use crate::engine::Node;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of refs; older ones are reported as unknown.
const MAX_REFS: usize = 50_000;

/// Refs of one session. They are unique across its tabs, so that a ref cannot mean an element of another tab.
#[derive(Debug, Default)]
pub struct Refs {
    numbers: HashMap<(Arc<str>, Node), usize>,
    targets: Vec<RefTarget>,
    /// Number of refs that were evicted.
    first: usize,
}

/// The element that a ref was assigned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefTarget {
    /// Tab and document.
    pub document: Arc<str>,
    pub node: Node,
    pub role: String,
    pub name: String,
}

impl Refs {
    /// Ref of an element, assigned now if it has none.
    pub fn get_or_assign(&mut self, document: &Arc<str>, item: &PageItem) -> Option<String> {
        let node = item.node.clone()?;
        let key = (Arc::clone(document), node.clone());
        let next = self.first + self.targets.len() + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let (role, name) = (item.role.clone(), item.name.clone());
            self.targets.push(RefTarget { document: Arc::clone(document), node, role, name });
        }
        Some(format!("e{number}"))
    }

    /// Ref of an element, if it has one.
    pub fn get(&self, document: &Arc<str>, node: &Node) -> Option<String> {
        self.numbers.get(&(Arc::clone(document), node.clone())).map(|number| format!("e{number}"))
    }

    /// The element of a ref. `ref=e5` and `[e5]` are read as `e5`.
    pub fn find(&self, name: &str) -> Option<&RefTarget> {
        let number: usize = strip_decoration(name).strip_prefix('e')?.parse().ok()?;
        self.targets.get(number.checked_sub(self.first + 1)?)
    }

    /// Number of refs, for [`Refs::rollback`].
    pub fn checkpoint(&self) -> usize {
        self.targets.len()
    }

    /// Revokes refs that were not shown to the caller.
    pub fn rollback(&mut self, mark: usize) {
        for known in self.targets.drain(mark.min(self.targets.len())..) {
            self.numbers.remove(&(known.document, known.node));
        }
    }

    /// Evicts the oldest refs. Only between replies, since it invalidates checkpoints.
    pub fn evict_oldest(&mut self) {
        let old = self.targets.len().saturating_sub(MAX_REFS);
        for known in self.targets.drain(..old) {
            self.numbers.remove(&(known.document, known.node));
        }
        self.first += old;
    }
}

/// A ref without decoration that models add.
pub fn strip_decoration(name: &str) -> &str {
    let name = name.trim().trim_start_matches('[').trim_end_matches(']');
    name.trim_start_matches("ref=").trim_start_matches('@').trim_matches('"')
}
