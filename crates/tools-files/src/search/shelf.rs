//! Matches of many files, of which the first by path are kept.

use super::hit::Hit;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the kept matches may take up together.
pub const BYTES: usize = 16 << 20;

/// Files come in any order; what is kept depends only on their paths.
pub struct Shelf {
    most: usize,
    files: BTreeMap<PathBuf, Vec<Hit>>,
    hits: usize,
    bytes: usize,
    /// Matching lines or files, kept or not.
    pub total: u64,
}

impl Shelf {
    pub fn new(most: usize) -> Self {
        Self { most, files: BTreeMap::new(), hits: 0, bytes: 0, total: 0 }
    }

    /// Whether matches of this file could be kept.
    pub fn wants(&self, path: &Path) -> bool {
        let full = self.hits >= self.most || self.bytes >= BYTES;
        !full || self.files.last_key_value().is_some_and(|(last, _)| path < last.as_path())
    }

    pub fn put(&mut self, path: &Path, hits: Vec<Hit>, total: u64) {
        self.total += total;
        if hits.is_empty() || !self.wants(path) {
            return;
        }
        self.hits += hits.len();
        self.bytes += hits.iter().map(Hit::size).sum::<usize>();
        self.files.insert(path.to_owned(), hits);
        while let Some(last) = self.files.last_entry() {
            let (hits, bytes) = (last.get().len(), last.get().iter().map(Hit::size).sum::<usize>());
            let enough = self.hits - hits >= self.most || self.bytes - bytes >= BYTES;
            if !enough {
                break;
            }
            last.remove();
            self.hits -= hits;
            self.bytes -= bytes;
        }
    }

    /// The first matches, each with its file's name.
    pub fn into_hits(self, name: impl Fn(&Path) -> String) -> Vec<Hit> {
        let named = self.files.into_iter().flat_map(|(path, hits)| {
            let path = name(&path);
            hits.into_iter().map(move |hit| Hit { path: path.clone(), ..hit })
        });
        named.take(self.most).collect()
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
                let mut shelf = Shelf::new(most);
                for (path, count) in files.iter().cycle().skip(turn).take(files.len()) {
                    let hits = (0..*count).map(|line| Hit::new(line, b"x", 0)).collect();
                    shelf.put(Path::new(path), hits, *count);
                }
                assert_eq!(shelf.total, 10);
                let kept: String = shelf
                    .into_hits(|path| path.display().to_string())
                    .into_iter()
                    .map(|hit| hit.path)
                    .collect();
                assert_eq!(kept, wanted, "{most} from {turn}");
            }
        }
    }

    #[test]
    fn the_kept_matches_stay_within_their_bytes() {
        let mut shelf = Shelf::new(10_000);
        for file in 0..5_000 {
            let hits = (0..10).map(|line| Hit::new(line, &[b'x'; 400], 0)).collect();
            shelf.put(Path::new(&format!("{file:05}")), hits, 10);
        }
        assert!(shelf.bytes < BYTES + 10_000 && shelf.total == 50_000);
    }
}
