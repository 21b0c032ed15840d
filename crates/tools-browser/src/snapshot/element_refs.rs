//! Names for elements. A name stays with its element while that lives, and is never given to another.

use super::PageItem;
use crate::engine::Node;
use std::collections::HashMap;
use std::sync::Arc;

/// Names that are remembered; who asks for an older one is told to look again.
const MAX_REFS: usize = 50_000;

/// The names of one session; those of all its tabs differ, so that a name cannot mean another tab's element.
#[derive(Debug, Default)]
pub struct Refs {
    numbers: HashMap<(Arc<str>, Node), usize>,
    targets: Vec<RefTarget>,
    /// The number of the first that is still known.
    first: usize,
}

/// What a name was given to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefTarget {
    /// Tab and document.
    pub document: Arc<str>,
    pub node: Node,
    pub role: String,
    pub name: String,
}

impl Refs {
    /// The name of an element, which is given to it now if it has none.
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

    /// The name that an element has already.
    pub fn get(&self, document: &Arc<str>, node: &Node) -> Option<String> {
        self.numbers.get(&(Arc::clone(document), node.clone())).map(|number| format!("e{number}"))
    }

    /// What a name was given to. `ref=e5` and `[e5]` are read as `e5`.
    pub fn find(&self, name: &str) -> Option<&RefTarget> {
        let number: usize = strip_decoration(name).strip_prefix('e')?.parse().ok()?;
        self.targets.get(number.checked_sub(self.first + 1)?)
    }

    /// How many names there are, to come back to with [`Refs::rollback`].
    pub fn checkpoint(&self) -> usize {
        self.targets.len()
    }

    /// Takes back names that nobody has seen.
    pub fn rollback(&mut self, mark: usize) {
        for known in self.targets.drain(mark.min(self.targets.len())..) {
            self.numbers.remove(&(known.document, known.node));
        }
    }

    /// Lets go of the oldest names; only between answers, since marks do not survive it.
    pub fn evict_oldest(&mut self) {
        let old = self.targets.len().saturating_sub(MAX_REFS);
        for known in self.targets.drain(..old) {
            self.numbers.remove(&(known.document, known.node));
        }
        self.first += old;
    }
}

/// A name without what a model may write around it.
pub fn strip_decoration(name: &str) -> &str {
    let name = name.trim().trim_start_matches('[').trim_end_matches(']');
    name.trim_start_matches("ref=").trim_start_matches('@').trim_matches('"')
}
