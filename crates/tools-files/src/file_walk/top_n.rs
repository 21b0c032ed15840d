//! The first few of many entries, in order, whatever order they arrive in.

use std::collections::BTreeMap;

/// Retains the entries with the smallest keys and counts all, so that truncation is exact and deterministic.
pub struct TopN<K, T> {
    limit: usize,
    entries: BTreeMap<K, T>,
    total: usize,
}

impl<K: Ord, T> TopN<K, T> {
    pub fn new(most: usize) -> Self {
        Self { limit: most, entries: BTreeMap::new(), total: 0 }
    }

    /// Counts one entry; its value is computed only if it is retained.
    pub fn add(&mut self, key: K, value: impl FnOnce() -> T) {
        self.total += 1;
        let full = self.entries.len() >= self.limit;
        if full && self.entries.last_key_value().is_none_or(|(last, _)| *last < key) {
            return;
        }
        self.entries.insert(key, value());
        if self.entries.len() > self.limit {
            self.entries.pop_last();
        }
    }

    pub fn total(&self) -> usize {
        self.total
    }

    pub fn truncated(&self) -> bool {
        self.total > self.entries.len()
    }

    pub fn into_sorted(self) -> impl Iterator<Item = (K, T)> {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::TopN;

    #[test]
    fn the_smallest_stay_and_all_are_counted() {
        for (most, wanted, truncated) in [
            (0, vec![], true),
            (2, vec![1, 2], true),
            (4, vec![1, 2, 3, 5], false),
            (9, vec![1, 2, 3, 5], false),
        ] {
            let mut first = TopN::new(most);
            for key in [3, 5, 1, 2] {
                first.add(key, || ());
            }
            assert_eq!((first.total(), first.truncated()), (4, truncated), "{most}");
            assert_eq!(first.into_sorted().map(|(key, ())| key).collect::<Vec<_>>(), wanted, "{most}");
        }
    }
}
