//! Full-text search of entities. An index returns the rows that have a word; the most promising entities of these are
//! read and ranked. The cost of a search is bounded, however large the memory: for very frequent words only the rows
//! of the newest entities are read.

use crate::{Term, entity_of, first_row, idf, tokenize};
use std::collections::{BTreeSet, HashMap};

/// Maximum words of a query.
const MAX_WORDS: usize = 16;
/// Maximum rows per word. An index is asked for one more, to know whether there are more.
pub const MAX_ROWS_PER_WORD: usize = 500;
/// Approximate number of rows scanned for those that have several frequent words at once. An index itself could search
/// for those, but would continue until it finds one, without a bound.
pub const MAX_SCANNED_ROWS: usize = 8_000;
/// Maximum rows with several frequent words that are considered.
pub const MAX_COMMON_ROWS: usize = MAX_ROWS_PER_WORD;
/// Maximum entities that are read and ranked.
const MAX_CANDIDATES: usize = 64;
/// Newest observations read per entity, beside those that the index returned.
pub const MAX_RECENT_FACTS: usize = 32;
/// Shorter prefixes would match everywhere.
pub const MIN_PREFIX_CHARS: usize = 3;

/// The words of a query, each one once.
pub fn query_stems(text: &str) -> Vec<String> {
    let mut stems = tokenize(text);
    let mut seen = BTreeSet::new();
    stems.retain(|stem| seen.insert(stem.clone()));
    stems.truncate(MAX_WORDS);
    stems
}

/// The words of a query for known entities, with equal weights.
pub fn unweighted_terms(text: &str) -> Vec<Term> {
    tokenize(text).into_iter().map(|stem| Term { stem, idf: 1.0, is_prefix: false }).collect()
}

/// The rows of one word, newest entities first.
pub struct WordRows {
    term: Term,
    rows: Vec<i64>,
    /// There are more.
    is_truncated: bool,
}

impl WordRows {
    /// `rows` are the newest ones, up to one more than [`MAX_ROWS_PER_WORD`], in a memory of `entity_count` entities.
    pub fn new(stem: String, is_prefix: bool, mut rows: Vec<i64>, entity_count: f64) -> Self {
        let is_truncated = rows.len() > MAX_ROWS_PER_WORD;
        rows.truncate(MAX_ROWS_PER_WORD);
        let having = if is_truncated { estimate_row_count(&rows, entity_count) } else { rows.len() as f64 };
        let term = Term { stem, idf: idf(entity_count.max(having), having), is_prefix };
        Self { term, rows, is_truncated }
    }

    /// Number of rows per row id, among those that were read.
    fn density(&self) -> f64 {
        let (Some(newest), Some(oldest)) = (self.rows.first(), self.rows.last()) else { return 1.0 };
        self.rows.len() as f64 / (newest - oldest + 1) as f64
    }
}

/// Estimated number of rows with a word of which only the newest were read, assuming the same density.
fn estimate_row_count(rows: &[i64], all: f64) -> f64 {
    let (Some(newest), Some(oldest)) = (rows.first(), rows.last()) else { return 0.0 };
    let (newest, oldest) = (entity_of(*newest) as f64, entity_of(*oldest) as f64);
    (rows.len() as f64 * newest / (newest - oldest + 1.0)).min(all)
}

/// Words of which not all rows were read. The rows from `floor` that have all of these words are asked for: up to
/// [`MAX_SCANNED_ROWS`] of each word, and of those in common the newest [`MAX_COMMON_ROWS`].
pub struct FrequentWords<'a> {
    pub terms: Vec<&'a Term>,
    pub floor: i64,
}

/// A search whose words were looked up.
pub struct EntitySearch {
    words: Vec<WordRows>,
}

impl EntitySearch {
    pub const fn new(words: Vec<WordRows>) -> Self {
        Self { words }
    }

    /// The frequent words, if there are several.
    pub fn frequent_words(&self) -> Option<FrequentWords<'_>> {
        let frequent: Vec<&WordRows> = self.words.iter().filter(|word| word.is_truncated).collect();
        if frequent.len() < 2 {
            return None;
        }
        let newest = frequent.iter().filter_map(|word| word.rows.first()).max().copied().unwrap_or_default();
        let density: f64 = frequent.iter().map(|word| word.density()).sum();
        let floor = newest.saturating_sub((MAX_SCANNED_ROWS as f64 / density) as i64);
        Some(FrequentWords { terms: frequent.into_iter().map(|word| &word.term).collect(), floor })
    }

    /// `common` are the rows with all frequent words, and `named` the entities whose name is the query.
    pub fn candidates(self, common: &[i64], named: &[i64]) -> Candidates {
        let mut candidates: HashMap<i64, (f64, Vec<i64>)> = HashMap::new();
        for word in &self.words {
            let mut last = None;
            for row in &word.rows {
                let entity = entity_of(*row);
                let (score, rows) = candidates.entry(entity).or_default();
                rows.push(*row);
                // Rows of one entity are adjacent, and the word counts once.
                if last.replace(entity) != Some(entity) {
                    *score += word.term.idf;
                }
            }
        }
        let common_score: f64 =
            self.words.iter().filter(|word| word.is_truncated).map(|word| word.term.idf).sum();
        for row in common {
            let (score, rows) = candidates.entry(entity_of(*row)).or_default();
            *score = score.max(common_score);
            rows.push(*row);
        }
        for entity in named {
            candidates.entry(*entity).or_default().0 = f64::MAX;
        }
        let found = candidates.len();
        let mut scored: Vec<(i64, (f64, Vec<i64>))> = candidates.into_iter().collect();
        scored.sort_by(|(a, (one, _)), (b, (other, _))| other.total_cmp(one).then(b.cmp(a)));
        scored.truncate(MAX_CANDIDATES);
        let promising = scored.into_iter().map(|(entity, (_, rows))| Candidate { entity, rows }).collect();
        let is_truncated = self.words.iter().any(|word| word.is_truncated);
        let terms = self.words.into_iter().map(|word| word.term).collect();
        Candidates { terms, promising, found, is_truncated }
    }
}

/// An entity that has some of the words.
pub struct Candidate {
    pub entity: i64,
    /// May contain duplicates.
    pub rows: Vec<i64>,
}

pub struct Candidates {
    pub terms: Vec<Term>,
    /// Most promising first.
    pub promising: Vec<Candidate>,
    /// Number of all.
    pub found: usize,
    is_truncated: bool,
}

impl Candidates {
    /// Whether all entities with some of the words are known. `is_filtered`: the rows of an index are not all valid.
    pub const fn is_exact(&self, is_filtered: bool) -> bool {
        !self.is_truncated && (self.found <= MAX_CANDIDATES || !is_filtered)
    }
}

/// Rows of observations that the index returned, and that are older than the newest ones of the entity.
pub fn older_rows(rows: &[i64], entity: i64, oldest_recent: i64) -> Vec<i64> {
    let older: BTreeSet<i64> =
        rows.iter().copied().filter(|row| *row < oldest_recent && *row != first_row(entity)).collect();
    older.into_iter().take(MAX_RECENT_FACTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(stem: &str, entities: impl Iterator<Item = i64>) -> WordRows {
        WordRows::new(stem.to_owned(), false, entities.map(first_row).collect(), 10_000.0)
    }

    #[test]
    fn rare_words_promise_more_and_names_most() {
        let words = vec![word("rare", [7].into_iter()), word("usual", (1..=90).rev())];
        let search = EntitySearch::new(words);
        assert!(search.frequent_words().is_none());
        let candidates = search.candidates(&[], &[3]);
        let ids: Vec<i64> = candidates.promising.iter().map(|candidate| candidate.entity).collect();
        assert_eq!(ids[..4], [3, 7, 90, 89]);
        assert_eq!((ids.len(), candidates.found), (MAX_CANDIDATES, 90));
        assert!(candidates.is_exact(false) && !candidates.is_exact(true));
    }

    #[test]
    fn frequent_words_are_searched_for_together() {
        let often = |first: i64| (0..=MAX_ROWS_PER_WORD as i64).map(move |at| first - 2 * at);
        let search = EntitySearch::new(vec![word("even", often(4_000)), word("odd", often(4_001))]);
        let frequent = search.frequent_words().unwrap();
        assert_eq!(frequent.terms.len(), 2);
        // One row per entity: as many entities as rows may be scanned.
        assert!(entity_of(frequent.floor) < 4_001 - MAX_SCANNED_ROWS as i64 / 2);
        let candidates = search.candidates(&[first_row(5)], &[]);
        assert_eq!(candidates.promising[0].entity, 5);
        assert!(!candidates.is_exact(false));
    }

    #[test]
    fn older_rows_are_those_before_the_recent_ones() {
        let row = first_row(9);
        assert_eq!(older_rows(&[row, row + 5, row + 2, row + 5, row + 8], 9, row + 8), [row + 2, row + 5]);
        let many: Vec<i64> = (1..100).map(|at| row + at).collect();
        assert_eq!(older_rows(&many, 9, i64::MAX).len(), MAX_RECENT_FACTS);
    }
}
