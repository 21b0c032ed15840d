//! Full-text search of entities: the index returns rows that have a word, and ranking reads these rows.

use super::memory_view::MemoryView;
use super::word_index::{kind_term, term};
use octo_ports::memory::backend::{EntityHead, FactRow};
use octo_search::{
    Candidates, EntitySearch, FrequentWords, MAX_COMMON_ROWS, MAX_RECENT_FACTS, MAX_ROWS_PER_WORD,
    MAX_SCANNED_ROWS, MIN_PREFIX_CHARS, Term, WordRows, normalize_name, older_rows, query_stems,
    score_entity,
};
use std::collections::BTreeSet;

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

/// Query for the index.
fn fts_query(owner: i64, stem: &str, is_prefix: bool) -> String {
    let quoted = format!("\"{}\"", term(owner, stem));
    if is_prefix { format!("{quoted} *") } else { quoted }
}

pub(super) fn search(view: &MemoryView<'_>, text: &str, kind: Option<&str>) -> rusqlite::Result<SearchHits> {
    let all = entity_count(view)?;
    let stems = query_stems(text).into_iter();
    let words = stems.map(|stem| rows_of_word(view, stem, kind, all)).collect::<Result<_, _>>()?;
    let search = EntitySearch::new(words);
    let common = match search.frequent_words() {
        Some(frequent) => rows_with_all(view, &frequent, kind)?,
        None => Vec::new(),
    };
    let named: Vec<i64> = view.by_name(text)?.into_iter().map(|head| head.id).collect();
    rank_candidates(view, text, kind, &search.candidates(&common, &named))
}

/// Reads the most promising candidates and ranks those that match.
fn rank_candidates(
    view: &MemoryView<'_>,
    text: &str,
    kind: Option<&str>,
    candidates: &Candidates,
) -> rusqlite::Result<SearchHits> {
    let (mut hits, mut unfit) = (Vec::new(), 0);
    for candidate in &candidates.promising {
        let head = view
            .head(candidate.entity)?
            .filter(|head| kind.is_none_or(|kind| normalize_name(kind) == normalize_name(&head.kind)));
        let hit = match head {
            Some(head) => rank_entity(view, text, &candidates.terms, head, &candidate.rows)?,
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
    let exact = candidates.is_exact(!view.is_now() || view.stated_only);
    Ok(SearchHits { hits, total: (candidates.found - unfit) as u64, exact })
}

/// Scores an entity; `None` if nothing matches.
pub(super) fn rank_entity(
    view: &MemoryView<'_>,
    text: &str,
    terms: &[Term],
    head: EntityHead,
    rows: &[i64],
) -> rusqlite::Result<Option<SearchHit>> {
    let mut facts = view.facts(head.id, MAX_RECENT_FACTS)?;
    let oldest = facts.last().map_or(i64::MAX, |seen| seen.row);
    for row in older_rows(rows, head.id, oldest) {
        facts.extend(view.fact(row)?);
    }
    let texts = facts.iter().map(|seen| seen.fact.text.as_str());
    let scored = score_entity(text, terms, &head.name, &head.kind, texts);
    Ok(scored.map(|scored| SearchHit { head, score: scored.score, facts: scored.matching_facts(facts) }))
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
    let find = |is_prefix| {
        matching_rows(view, &fts_query(view.owner, &stem, is_prefix), kind, 0, MAX_ROWS_PER_WORD + 1)
    };
    let mut rows = find(false)?;
    let is_prefix = rows.is_empty() && stem.chars().count() >= MIN_PREFIX_CHARS;
    if is_prefix {
        rows = find(true)?;
    }
    Ok(WordRows::new(stem, is_prefix, rows, all))
}

/// Rows that have all the frequent words at once, as far back as the budget allows.
fn rows_with_all(
    view: &MemoryView<'_>,
    frequent: &FrequentWords<'_>,
    kind: Option<&str>,
) -> rusqlite::Result<Vec<i64>> {
    let mut common: Option<BTreeSet<i64>> = None;
    for term in &frequent.terms {
        let query = fts_query(view.owner, &term.stem, term.is_prefix);
        let found = matching_rows(view, &query, kind, frequent.floor, MAX_SCANNED_ROWS)?;
        common = Some(match common {
            None => found.into_iter().collect(),
            Some(common) => found.into_iter().filter(|row| common.contains(row)).collect(),
        });
    }
    Ok(common.into_iter().flatten().rev().take(MAX_COMMON_ROWS).collect())
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
