//! Collects the matches of many files and retains the first ones by path.

use super::search_match::SearchMatch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum total size of the retained matches.
pub const MAX_COLLECTED_BYTES: usize = 16 << 20;

/// Files arrive in any order; what is retained depends only on their paths.
pub struct MatchCollector {
    max_matches: usize,
    files: BTreeMap<PathBuf, Vec<SearchMatch>>,
    match_count: usize,
    bytes: usize,
    /// Matching lines or files, retained or not.
    pub total: u64,
}

impl MatchCollector {
    pub fn new(most: usize) -> Self {
        Self { max_matches: most, files: BTreeMap::new(), match_count: 0, bytes: 0, total: 0 }
    }

    /// Whether matches of this file could be retained.
    pub fn accepts(&self, path: &Path) -> bool {
        let full = self.match_count >= self.max_matches || self.bytes >= MAX_COLLECTED_BYTES;
        !full || self.files.last_key_value().is_some_and(|(last, _)| path < last.as_path())
    }

    pub fn add(&mut self, path: &Path, hits: Vec<SearchMatch>, total: u64) {
        self.total += total;
        if hits.is_empty() || !self.accepts(path) {
            return;
        }
        self.match_count += hits.len();
        self.bytes += hits.iter().map(SearchMatch::size).sum::<usize>();
        self.files.insert(path.to_owned(), hits);
        while let Some(last) = self.files.last_entry() {
            let (hits, bytes) = (last.get().len(), last.get().iter().map(SearchMatch::size).sum::<usize>());
            let enough =
                self.match_count - hits >= self.max_matches || self.bytes - bytes >= MAX_COLLECTED_BYTES;
            if !enough {
                break;
            }
            last.remove();
            self.match_count -= hits;
            self.bytes -= bytes;
        }
    }

    /// The first matches, each with its file's name.
    pub fn into_matches(self, name: impl Fn(&Path) -> String) -> Vec<SearchMatch> {
        let named = self.files.into_iter().flat_map(|(path, hits)| {
            let path = name(&path);
            hits.into_iter().map(move |hit| SearchMatch { path: path.clone(), ..hit })
        });
        named.take(self.max_matches).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_does_not_depend_on_the_order_of_arrival() {
        let files = [("c", 3), ("a", 2), ("d", 1), ("b", 4)];
        for turn in 0..files.len() {
            for (most, wanted) in
                [(0, ""), (1, "a"), (2, "aa"), (5, "aabbb"), (9, "aabbbbccc"), (99, "aabbbbcccd")]
            {
                let mut shelf = MatchCollector::new(most);
                for (path, count) in files.iter().cycle().skip(turn).take(files.len()) {
                    let hits = (0..*count).map(|line| SearchMatch::new(line, b"x", 0)).collect();
                    shelf.add(Path::new(path), hits, *count);
                }
                assert_eq!(shelf.total, 10);
                let kept: String = shelf
                    .into_matches(|path| path.display().to_string())
                    .into_iter()
                    .map(|hit| hit.path)
                    .collect();
                assert_eq!(kept, wanted, "{most} from {turn}");
            }
        }
    }

    #[test]
    fn the_kept_matches_stay_within_their_bytes() {
        let mut shelf = MatchCollector::new(10_000);
        for file in 0..5_000 {
            let hits = (0..10).map(|line| SearchMatch::new(line, &[b'x'; 400], 0)).collect();
            shelf.add(Path::new(&format!("{file:05}")), hits, 10);
        }
        assert!(shelf.bytes < MAX_COLLECTED_BYTES + 10_000 && shelf.total == 50_000);
    }
}
