//! Full-text search of entities: one statement finds the rows of all words, another reads the most promising entities.

use super::memory_view::{EntityFacts, MemoryView, OWNER, limit_value};
use super::name_key::name_key;
use octo_ports::StoreResult;
use octo_ports::memory::backend::{EntityHead, FactRow, NO_END};
use octo_search::{
    Candidates, EntitySearch, FrequentWords, MAX_COMMON_ROWS, MAX_RECENT_FACTS, MAX_ROWS_PER_WORD,
    MAX_SCANNED_ROWS, MIN_PREFIX_CHARS, Term, WordRows, entity_of, first_row, normalize_name, older_rows,
    query_stems, score_entity,
};
use std::collections::HashMap;

/// Follows every character of a word.
const LAST_CHAR: char = '\u{10ffff}';

/// A matching entity.
pub(super) struct SearchHit {
    pub(super) head: EntityHead,
    pub(super) score: f64,
    /// Best first.
    pub(super) matching: Vec<FactRow>,
    /// Newest first, up to [`MAX_RECENT_FACTS`].
    pub(super) recent: Vec<FactRow>,
}

pub(super) struct SearchHits {
    /// Best first.
    pub(super) hits: Vec<SearchHit>,
    pub(super) total: u64,
    pub(super) exact: bool,
}

/// How rows of words are looked up.
struct RowLookup<'a> {
    view: &'a MemoryView<'a>,
    /// The value with the key of a type, to which rows are restricted. Rows of the past have none: it may have changed.
    kind: Option<&'static str>,
}

impl RowLookup<'_> {
    /// Selects the newest rows with the word `w.stem`.
    fn with_word(&self, more: &str, limit: usize) -> String {
        let condition = format!("word = w.stem {more}");
        match self.kind.filter(|_| self.view.is_now()) {
            None => self.select("row_id", &condition, limit),
            // Either each entity of the type is looked up, or that of each row until there are enough.
            Some(kind) => {
                let is_rare = format!(
                    "(SELECT live * live <= {limit} * (SELECT sum(live) FROM memory_kinds WHERE owner = {OWNER})
                      FROM memory_kinds WHERE owner = {OWNER} AND kind_folded = {kind})"
                );
                let frequent = self.select_of_kind(kind, "row_id", &format!("{condition} AND NOT {is_rare}"));
                let rows_per_entity = first_row(1);
                format!(
                    "SELECT row_id FROM (
                        (SELECT row_id FROM ({frequent}) AS found LIMIT {limit})
                        UNION ALL
                        SELECT found.row_id FROM (
                            SELECT id * {rows_per_entity} AS first, (id + 1) * {rows_per_entity} - 1 AS last
                            FROM memory_entities
                            WHERE owner = {OWNER} AND kind_folded = {kind} AND until = {NO_END} AND {is_rare} OFFSET 0
                        ) AS e CROSS JOIN LATERAL (
                            SELECT row_id FROM memory_words WHERE owner = {OWNER} AND past = false AND {condition}
                            AND row_id BETWEEN e.first AND e.last OFFSET 0
                        ) AS found
                     ) AS found ORDER BY row_id DESC LIMIT {limit}"
                )
            }
        }
    }

    /// Selects the newest rows with a word that starts with `w.stem`.
    fn with_prefix(&self, more: &str, limit: usize) -> String {
        let condition = format!("word >= w.stem AND word < w.stem_end {more}");
        match self.kind.filter(|_| self.view.is_now()) {
            None => self.select("DISTINCT row_id", &condition, limit),
            Some(kind) => {
                format!("{} LIMIT {limit}", self.select_of_kind(kind, "DISTINCT row_id", &condition))
            }
        }
    }

    fn select(&self, columns: &str, condition: &str, limit: usize) -> String {
        let side = |past: bool| {
            format!(
                "(SELECT {columns} FROM memory_words WHERE owner = {OWNER} AND past = {past} AND {condition}
                 ORDER BY row_id DESC LIMIT {limit})"
            )
        };
        match self.view.is_now() {
            true => side(false),
            false => format!(
                "SELECT row_id FROM ({} UNION {}) AS sides ORDER BY row_id DESC LIMIT {limit}",
                side(false),
                side(true)
            ),
        }
    }

    /// All rows, newest first, whose entity has the type.
    fn select_of_kind(&self, kind: &str, columns: &str, condition: &str) -> String {
        let rows_per_entity = first_row(1);
        format!(
            "SELECT words.row_id FROM (
                SELECT {columns}, row_id / {rows_per_entity} AS entity FROM memory_words
                WHERE owner = {OWNER} AND past = false AND {condition} ORDER BY row_id DESC OFFSET 0
             ) AS words CROSS JOIN LATERAL (
                SELECT kind_folded, until FROM memory_entities WHERE owner = {OWNER} AND id = words.entity OFFSET 0
             ) AS e
             WHERE e.kind_folded = {kind} AND e.until = {NO_END} ORDER BY words.row_id DESC"
        )
    }
}

pub(super) async fn search(view: &MemoryView<'_>, text: &str, kind: Option<&str>) -> StoreResult<SearchHits> {
    let kind_key = kind.map(name_key);
    let (search, named) = find_words(view, text, kind_key.as_deref()).await?;
    let common = match search.frequent_words() {
        Some(frequent) => rows_with_all(view, &frequent, kind_key.as_deref()).await?,
        None => Vec::new(),
    };
    rank_candidates(view, text, kind, &search.candidates(&common, &named)).await
}

/// The rows of each word, and the entities whose name is the text.
async fn find_words(
    view: &MemoryView<'_>,
    text: &str,
    kind_key: Option<&str>,
) -> StoreResult<(EntitySearch, Vec<i64>)> {
    let stems = query_stems(text);
    let ends: Vec<Option<String>> = stems.iter().map(|stem| prefix_end(stem)).collect();
    let lookup = RowLookup { view, kind: kind_key.map(|_| "$9") };
    let (exact, prefix) =
        (lookup.with_word("", MAX_ROWS_PER_WORD + 1), lookup.with_prefix("", MAX_ROWS_PER_WORD + 1));
    let is_valid = view.is_valid();
    let named = format!("FROM memory_entities WHERE owner = {OWNER} AND folded = $5 AND {is_valid}");
    let sql = format!(
        "SELECT
            (SELECT coalesce(sum(live), 0)::int8 FROM memory_kinds WHERE owner = {OWNER}),
            ARRAY(SELECT id {named} AND (name = $6 OR NOT EXISTS (SELECT {named} AND name = $6)) ORDER BY until, id),
            exact.rows, prefix.rows
         FROM (VALUES (1)) AS one
         LEFT JOIN unnest($7::text[], $8::text[]) WITH ORDINALITY AS w (stem, stem_end, n) ON true
         LEFT JOIN LATERAL (SELECT ARRAY({exact}) AS rows OFFSET 0) AS exact ON true
         LEFT JOIN LATERAL (
            SELECT ARRAY({prefix}) AS rows WHERE cardinality(exact.rows) = 0 AND w.stem_end IS NOT NULL OFFSET 0
         ) AS prefix ON true
         ORDER BY w.n"
    );
    let rows = view.read(&sql, &[&name_key(text), &text, &&*stems, &ends, &kind_key]).await?;
    let count = rows.first().map_or(0, |row| row.get::<_, i64>(0)) as f64;
    let named = rows.first().map(|row| row.get(1)).unwrap_or_default();
    let words = stems.into_iter().zip(&rows).map(|(stem, row)| match row.get::<_, Option<Vec<i64>>>(3) {
        Some(rows) => WordRows::new(stem, true, rows, count),
        None => WordRows::new(stem, false, row.get(2), count),
    });
    Ok((EntitySearch::new(words.collect()), named))
}

/// The end of the range of words with this prefix; none for a short one.
fn prefix_end(stem: &str) -> Option<String> {
    (stem.chars().count() >= MIN_PREFIX_CHARS).then(|| format!("{stem}{LAST_CHAR}"))
}

/// Rows that have all the frequent words at once, as far back as the budget allows.
async fn rows_with_all(
    view: &MemoryView<'_>,
    frequent: &FrequentWords<'_>,
    kind_key: Option<&str>,
) -> StoreResult<Vec<i64>> {
    let stems: Vec<&str> = frequent.terms.iter().map(|term| term.stem.as_str()).collect();
    let ends: Vec<Option<String>> =
        frequent.terms.iter().map(|term| prefix_end(&term.stem).filter(|_| term.is_prefix)).collect();
    let lookup = RowLookup { view, kind: kind_key.map(|_| "$9") };
    let exact = lookup.with_word("AND row_id >= $7 AND w.stem_end IS NULL", MAX_SCANNED_ROWS);
    let prefix = lookup.with_prefix("AND row_id >= $7 AND w.stem_end IS NOT NULL", MAX_SCANNED_ROWS);
    let sql = format!(
        "SELECT row_id FROM unnest($5::text[], $6::text[]) AS w (stem, stem_end)
         CROSS JOIN LATERAL (({exact}) UNION ALL ({prefix})) AS found
         GROUP BY row_id HAVING count(*) = $8 ORDER BY row_id DESC LIMIT {MAX_COMMON_ROWS}"
    );
    let count = limit_value(stems.len());
    let rows = view.read(&sql, &[&stems, &ends, &frequent.floor, &count, &kind_key]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Reads the most promising candidates and ranks those that match.
async fn rank_candidates(
    view: &MemoryView<'_>,
    text: &str,
    kind: Option<&str>,
    candidates: &Candidates,
) -> StoreResult<SearchHits> {
    let ids: Vec<i64> = candidates.promising.iter().map(|candidate| candidate.entity).collect();
    let mut entities = if ids.is_empty() { Vec::new() } else { view.by_ids(ids, MAX_RECENT_FACTS).await? };
    let kind = kind.map(normalize_name);
    entities.retain(|entity| kind.as_ref().is_none_or(|kind| *kind == normalize_name(&entity.head.kind)));
    let mut older = older_facts(view, candidates, &entities).await?;
    let mut hits: Vec<SearchHit> = entities
        .into_iter()
        .filter_map(|entity| {
            let older = older.remove(&entity.head.id).unwrap_or_default();
            rank_entity(text, &candidates.terms, entity, older)
        })
        .collect();
    hits.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| one.head.name.cmp(&other.head.name))
    });
    let unfit = candidates.promising.len() - hits.len();
    let exact = candidates.is_exact(!view.is_now() || view.stated_only);
    Ok(SearchHits { hits, total: (candidates.found - unfit) as u64, exact })
}

/// Matching observations of entities that have more than the recent ones.
async fn older_facts(
    view: &MemoryView<'_>,
    candidates: &Candidates,
    entities: &[EntityFacts],
) -> StoreResult<HashMap<i64, Vec<FactRow>>> {
    let mut matching: HashMap<i64, &[i64]> = HashMap::new();
    matching.extend(candidates.promising.iter().map(|candidate| (candidate.entity, &*candidate.rows)));
    let has_older = |entity: &&EntityFacts| entity.facts.len() == MAX_RECENT_FACTS;
    let rows = entities.iter().filter(has_older).flat_map(|entity| {
        let (id, oldest) = (entity.head.id, entity.facts.last().map_or(i64::MAX, |fact| fact.row));
        older_rows(matching.get(&id).copied().unwrap_or_default(), id, oldest)
    });
    let rows: Vec<i64> = rows.collect();
    let mut older: HashMap<i64, Vec<FactRow>> = HashMap::new();
    if !rows.is_empty() {
        for fact in view.facts(rows).await? {
            older.entry(entity_of(fact.row)).or_default().push(fact);
        }
    }
    Ok(older)
}

/// Scores an entity; `None` if nothing matches.
pub(super) fn rank_entity(
    text: &str,
    terms: &[Term],
    entity: EntityFacts,
    older: Vec<FactRow>,
) -> Option<SearchHit> {
    let EntityFacts { head, facts: recent } = entity;
    let facts: Vec<&FactRow> = recent.iter().take(MAX_RECENT_FACTS).chain(&older).collect();
    let texts = facts.iter().map(|fact| fact.fact.text.as_str());
    let scored = score_entity(text, terms, &head.name, &head.kind, texts)?;
    let matching = scored.matching_facts(facts).into_iter().cloned().collect();
    Some(SearchHit { head, score: scored.score, matching, recent })
}
