//! Full-text search of entities. The index returns rows that have a word; ranking reads these rows. The cost
//! of a search is bounded, however large the memory: for very frequent words only the rows of the newest
//! entities are read.

use super::memory_schema::{entity_of, first_row};
use super::memory_view::{EntityHead, FactRow, MemoryView};
use super::rank::{Term, score};
use super::tokenize::{normalize_name, tokenize};
use super::word_index::{kind_term, term};
use octo_search::idf;
use std::collections::{BTreeSet, HashMap};

/// Maximum words of a query.
const MAX_WORDS: usize = 16;
/// Maximum rows per word.
const MAX_ROWS_PER_WORD: usize = 500;
/// Approximate number of rows scanned for those that have several frequent words at once. The index itself
/// can search for those, but continues until it finds one, without a bound.
const MAX_SCANNED_ROWS: f64 = 8_000.0;
/// Maximum entities that are read and ranked.
const MAX_CANDIDATES: usize = 64;
/// Newest observations read per entity, beside those that the index returned.
const MAX_RECENT_FACTS: usize = 32;
/// Shorter prefixes would match everywhere.
const MIN_PREFIX_CHARS: usize = 3;

/// A matching entity with its matching observations, best first.
pub(super) struct SearchHit {
    pub(super) head: EntityHead,
    pub(super) score: f64,
    pub(super) facts: Vec<FactRow>,
}

pub(super) struct SearchHits {
    /// Best first.
    pub(super) hits: Vec<SearchHit>,
    pub(super) total: u64,
    pub(super) exact: bool,
}

/// An entity that has some of the words.
#[derive(Default)]
struct Candidate {
    estimated_score: f64,
    /// May contain duplicates.
    rows: Vec<i64>,
}

/// The rows of one word, newest entities first.
struct WordRows {
    term: Term,
    rows: Vec<i64>,
    /// There are more.
    is_truncated: bool,
}

/// Query for the index.
fn fts_query(owner: i64, word: &Term) -> String {
    let quoted = format!("\"{}\"", term(owner, &word.stem));
    if word.is_prefix { format!("{quoted} *") } else { quoted }
}

impl WordRows {
    /// Number of rows per row id, among those that were read.
    fn density(&self) -> f64 {
        let (Some(newest), Some(oldest)) = (self.rows.first(), self.rows.last()) else { return 1.0 };
        self.rows.len() as f64 / (newest - oldest + 1) as f64
    }
}

pub(super) fn search(view: &MemoryView<'_>, text: &str, kind: Option<&str>) -> rusqlite::Result<SearchHits> {
    let mut stems = tokenize(text);
    let mut seen = BTreeSet::new();
    stems.retain(|stem| seen.insert(stem.clone()));
    stems.truncate(MAX_WORDS);
    let all = entity_count(view)?;
    let lists =
        stems.into_iter().map(|stem| rows_of_word(view, stem, kind, all)).collect::<Result<Vec<_>, _>>()?;
    let mut candidates: HashMap<i64, Candidate> = HashMap::new();
    for list in &lists {
        let mut last = None;
        for row in &list.rows {
            let entity = entity_of(*row);
            let candidate = candidates.entry(entity).or_default();
            candidate.rows.push(*row);
            // Rows of one entity are adjacent, and the word counts once.
            if last.replace(entity) != Some(entity) {
                candidate.estimated_score += list.term.idf;
            }
        }
    }
    for row in rows_with_all(view, &lists, kind)? {
        let promise: f64 = lists.iter().filter(|list| list.is_truncated).map(|list| list.term.idf).sum();
        let candidate = candidates.entry(entity_of(row)).or_default();
        candidate.estimated_score = candidate.estimated_score.max(promise);
        candidate.rows.push(row);
    }
    for head in view.by_name(text)? {
        candidates.entry(head.id).or_default().estimated_score = f64::MAX;
    }
    let cut = lists.iter().any(|list| list.is_truncated);
    let terms: Vec<Term> = lists.into_iter().map(|list| list.term).collect();
    rank_candidates(view, text, kind, &terms, candidates, cut)
}

/// Reads the most promising candidates and ranks those that match.
fn rank_candidates(
    view: &MemoryView<'_>,
    text: &str,
    kind: Option<&str>,
    terms: &[Term],
    candidates: HashMap<i64, Candidate>,
    cut: bool,
) -> rusqlite::Result<SearchHits> {
    let found = candidates.len();
    let mut promising: Vec<(i64, Candidate)> = candidates.into_iter().collect();
    promising
        .sort_by(|(a, one), (b, other)| other.estimated_score.total_cmp(&one.estimated_score).then(b.cmp(a)));
    promising.truncate(MAX_CANDIDATES);
    let mut hits = Vec::new();
    let mut unfit = 0;
    for (entity, candidate) in promising {
        let head = view
            .head(entity)?
            .filter(|head| kind.is_none_or(|kind| normalize_name(kind) == normalize_name(&head.kind)));
        let hit = match head {
            Some(head) => score_entity(view, text, terms, head, &candidate.rows)?,
            None => None,
        };
        match hit {
            Some(hit) => hits.push(hit),
            None => unfit += 1,
        }
    }
    hits.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| one.head.name.cmp(&other.head.name))
    });
    let exact = !cut && (found <= MAX_CANDIDATES || (view.is_now() && !view.stated_only));
    Ok(SearchHits { hits, total: (found - unfit) as u64, exact })
}

/// Scores an entity; `None` if nothing matches.
pub(super) fn score_entity(
    view: &MemoryView<'_>,
    text: &str,
    terms: &[Term],
    head: EntityHead,
    rows: &[i64],
) -> rusqlite::Result<Option<SearchHit>> {
    let mut facts = view.facts(head.id, MAX_RECENT_FACTS)?;
    let oldest = facts.last().map_or(i64::MAX, |seen| seen.row);
    // The index may return observations that are older than the newest ones.
    let rows: BTreeSet<&i64> =
        rows.iter().filter(|row| **row < oldest && **row != first_row(head.id)).collect();
    for row in rows.into_iter().take(MAX_RECENT_FACTS) {
        facts.extend(view.fact(*row)?);
    }
    let scored = score(text, terms, &head, &facts);
    if scored.score <= 0.0 {
        return Ok(None);
    }
    let mut fitting: Vec<(f64, FactRow)> =
        scored.facts.into_iter().zip(facts).filter(|(score, _)| *score > 0.0).collect();
    fitting.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let facts = fitting.into_iter().map(|(_, seen)| seen).collect();
    Ok(Some(SearchHit { head, score: scored.score, facts }))
}

/// The words of a query for known entities, with equal weights.
pub(super) fn unweighted_terms(text: &str) -> Vec<Term> {
    tokenize(text).into_iter().map(|stem| Term { stem, idf: 1.0, is_prefix: false }).collect()
}

/// Current number of entities in the memory.
fn entity_count(view: &MemoryView<'_>) -> rusqlite::Result<f64> {
    let all: Option<i64> = view
        .conn
        .prepare_cached("SELECT sum(live) FROM kinds WHERE owner = ?1")?
        .query_row([view.owner], |row| row.get(0))?;
    Ok(all.unwrap_or_default() as f64)
}

fn rows_of_word(
    view: &MemoryView<'_>,
    stem: String,
    kind: Option<&str>,
    all: f64,
) -> rusqlite::Result<WordRows> {
    let mut term = Term { stem, idf: 0.0, is_prefix: false };
    let mut rows = matching_rows(view, &fts_query(view.owner, &term), kind, 0, MAX_ROWS_PER_WORD + 1)?;
    if rows.is_empty() && term.stem.chars().count() >= MIN_PREFIX_CHARS {
        term.is_prefix = true;
        rows = self::matching_rows(view, &fts_query(view.owner, &term), kind, 0, MAX_ROWS_PER_WORD + 1)?;
    }
    let cut = rows.len() > MAX_ROWS_PER_WORD;
    rows.truncate(MAX_ROWS_PER_WORD);
    let having = if cut { estimate_row_count(&rows, all) } else { rows.len() as f64 };
    term.idf = idf(all.max(having), having);
    Ok(WordRows { term, rows, is_truncated: cut })
}

/// Estimated number of rows with a word of which only the newest were read, assuming the same density.
fn estimate_row_count(rows: &[i64], all: f64) -> f64 {
    let (Some(newest), Some(oldest)) = (rows.first(), rows.last()) else { return 0.0 };
    let (newest, oldest) = (entity_of(*newest) as f64, entity_of(*oldest) as f64);
    (rows.len() as f64 * newest / (newest - oldest + 1.0)).min(all)
}

/// Rows that have all the frequent words at once, as far back as the budget allows.
fn rows_with_all(
    view: &MemoryView<'_>,
    lists: &[WordRows],
    kind: Option<&str>,
) -> rusqlite::Result<Vec<i64>> {
    let frequent: Vec<&WordRows> = lists.iter().filter(|list| list.is_truncated).collect();
    if frequent.len() < 2 {
        return Ok(Vec::new());
    }
    let newest = frequent.iter().filter_map(|list| list.rows.first()).max().copied().unwrap_or_default();
    let density: f64 = frequent.iter().map(|list| list.density()).sum();
    let floor = newest.saturating_sub((MAX_SCANNED_ROWS / density) as i64);
    let mut common: Option<BTreeSet<i64>> = None;
    for list in frequent {
        let found =
            matching_rows(view, &fts_query(view.owner, &list.term), kind, floor, MAX_SCANNED_ROWS as usize)?;
        common = Some(match common {
            None => found.into_iter().collect(),
            Some(common) => found.into_iter().filter(|row| common.contains(row)).collect(),
        });
    }
    Ok(common.into_iter().flatten().rev().take(MAX_ROWS_PER_WORD).collect())
}

/// The rows that the index returns, newest entities first.
fn matching_rows(
    view: &MemoryView<'_>,
    words: &str,
    kind: Option<&str>,
    floor: i64,
    most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let live =
        "SELECT rowid FROM live_words WHERE live_words MATCH ?1 AND rowid >= ?2 ORDER BY rowid DESC LIMIT ?3";
    let past =
        "SELECT rowid FROM past_words WHERE past_words MATCH ?1 AND rowid >= ?2 ORDER BY rowid DESC LIMIT ?3";
    if view.is_now() {
        let words = match kind {
            Some(kind) => format!("({words}) AND \"{}\"", kind_term(view.owner, &normalize_name(kind))),
            None => words.to_owned(),
        };
        let mut statement = view.conn.prepare_cached(live)?;
        return statement.query_map((words, floor, limit), |row| row.get(0))?.collect();
    }
    let mut found = BTreeSet::new();
    for sql in [live, past] {
        let mut statement = view.conn.prepare_cached(sql)?;
        for row in statement.query_map((words, floor, limit), |row| row.get(0))? {
            found.insert(row?);
        }
    }
    Ok(found.into_iter().rev().take(most).collect())
}
