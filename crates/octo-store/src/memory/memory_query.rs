//! Queries, lists and exports.

use super::entity_search::{self, SearchHit};
use super::memory_view::{MemoryView, fact_from_row};
use octo_ports::memory::backend::{
    EntityHead, LinkScope, MAX_KINDS, MAX_NEAREST, MAX_PAST_SCAN, NO_END, NOW, complete_facts, timestamp,
};
use octo_ports::memory::{
    Dump, EndedFact, EntityPage, EntitySummary, KnownEntity, MAX_FACTS, MemoryQuery, PageRequest, QueryResult,
};
use octo_search::{first_row, last_row, normalize_name, unweighted_terms};
use rusqlite::Connection;
use std::cmp::Reverse;

pub(super) fn query(conn: &Connection, owner: i64, question: &MemoryQuery) -> rusqlite::Result<QueryResult> {
    let at = question.at.map_or(NOW, |at| at.as_microsecond());
    let view = MemoryView { conn, owner, at, stated_only: question.stated_only };
    match (&question.name, &question.text) {
        (Some(name), text) => by_name(&view, question, name, text.as_deref()),
        (None, Some(text)) => {
            let found = entity_search::search(&view, text, question.kind.as_deref())?;
            let hits = found.hits.into_iter().take(question.limit);
            let entities = hits.map(|hit| found_entity(&view, question, hit)).collect::<Result<_, _>>()?;
            Ok(QueryResult { entities, total: found.total, exact: found.exact, nearest: Vec::new() })
        }
        (None, None) => browse(&view, question),
    }
}

/// The ended observations of the entities with this name, the last that ended first.
pub(super) fn history(
    conn: &Connection,
    owner: i64,
    name: &str,
    limit: usize,
) -> rusqlite::Result<Vec<EndedFact>> {
    let mut named = conn.prepare_cached("SELECT id, name FROM entities WHERE owner = ?1 AND folded = ?2")?;
    let rows = named.query_map((owner, normalize_name(name)), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let entities: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
    let mut facts = conn.prepare_cached(
        "SELECT id, text, origin, source, call, since, until FROM facts
         WHERE id BETWEEN ?1 AND ?2 AND until < ?3 ORDER BY until DESC, id DESC LIMIT ?4",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut ended = Vec::new();
    for (id, entity) in entities {
        let of_entity = facts.query_map((first_row(id) + 1, last_row(id), NO_END, most), |row| {
            Ok(EndedFact {
                entity: entity.clone(),
                fact: fact_from_row(row)?.fact,
                until: timestamp(row.get(6)?),
            })
        })?;
        ended.extend(of_entity.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    ended.sort_by_key(|ended| Reverse(ended.until));
    ended.truncate(limit);
    Ok(ended)
}

fn by_name(
    view: &MemoryView<'_>,
    question: &MemoryQuery,
    name: &str,
    text: Option<&str>,
) -> rusqlite::Result<QueryResult> {
    let of_kind = |head: &EntityHead| {
        question.kind.as_ref().is_none_or(|kind| normalize_name(kind) == normalize_name(&head.kind))
    };
    let mut entities = Vec::new();
    let named = view.by_name(name)?;
    let nobody = named.is_empty();
    for head in named.into_iter().filter(of_kind) {
        let hit = match text {
            None => Some(SearchHit { head, score: 0.0, facts: Vec::new() }),
            Some(text) => entity_search::rank_entity(view, text, &unweighted_terms(text), head, &[])?,
        };
        if let Some(hit) = hit {
            let known = found_entity(view, question, hit)?;
            entities.push(KnownEntity { score: known.score.filter(|_| text.is_some()), ..known });
        }
    }
    let mut nearest = Vec::new();
    if nobody {
        let found = entity_search::search(view, name, None)?;
        nearest = found.hits.into_iter().take(MAX_NEAREST).map(|hit| hit.head.name).collect();
    }
    let total = entities.len() as u64;
    entities.truncate(question.limit);
    Ok(QueryResult { entities, total, exact: true, nearest })
}

/// An entity with its matching observations, then the newest.
fn found_entity(
    view: &MemoryView<'_>,
    question: &MemoryQuery,
    hit: SearchHit,
) -> rusqlite::Result<KnownEntity> {
    let newest = match hit.facts.len() < question.facts {
        true => view.facts(hit.head.id, question.facts)?,
        false => Vec::new(),
    };
    let facts = complete_facts(hit.facts, newest, question.facts);
    let links = if question.links { LinkScope::Limited } else { LinkScope::None };
    let known = view.build_entity(hit.head, facts, links)?;
    Ok(KnownEntity { score: Some(hit.score), ..known })
}

/// Entities by name, without a text search.
fn browse(view: &MemoryView<'_>, question: &MemoryQuery) -> rusqlite::Result<QueryResult> {
    let limit = question.limit;
    let heads = match view.is_now() {
        true => list_page(view, question.kind.as_deref(), limit, 0)?,
        false => past_heads(view, question.kind.as_deref(), limit)?,
    };
    let (total, exact) = match view.is_now() {
        true => (total(view, question.kind.as_deref())?, true),
        false => (heads.len() as u64, heads.len() < limit),
    };
    let bare = |head| found_entity(view, question, SearchHit { head, score: 0.0, facts: Vec::new() });
    let entities = heads.into_iter().map(bare).map(|known| Ok(KnownEntity { score: None, ..known? }));
    Ok(QueryResult {
        entities: entities.collect::<rusqlite::Result<_>>()?,
        total,
        exact,
        nearest: Vec::new(),
    })
}

fn past_heads(view: &MemoryView<'_>, kind: Option<&str>, limit: usize) -> rusqlite::Result<Vec<EntityHead>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT id, name, kind, facts, since, updated FROM entities
         WHERE owner = ?1 AND since <= ?2 AND until > ?2 ORDER BY folded, until, id LIMIT ?3",
    )?;
    let mut heads = Vec::new();
    for head in statement.query_map((view.owner, view.at, MAX_PAST_SCAN), MemoryView::head_from_row)? {
        let head = view.at_time(head?)?;
        if kind.is_none_or(|kind| normalize_name(kind) == normalize_name(&head.kind)) {
            heads.push(head);
        }
        if heads.len() >= limit {
            break;
        }
    }
    Ok(heads)
}

fn list_page(
    view: &MemoryView<'_>,
    kind: Option<&str>,
    limit: usize,
    offset: u64,
) -> rusqlite::Result<Vec<EntityHead>> {
    let (limit, offset) =
        (i64::try_from(limit).unwrap_or(i64::MAX), i64::try_from(offset).unwrap_or(i64::MAX));
    let columns = "SELECT id, name, kind, facts, since, updated FROM entities";
    match kind {
        None => view
            .conn
            .prepare_cached(&format!(
                "{columns} WHERE owner = ?1 AND until = ?2 ORDER BY folded, id LIMIT ?3 OFFSET ?4"
            ))?
            .query_map((view.owner, NO_END, limit, offset), MemoryView::head_from_row)?
            .collect(),
        Some(kind) => view
            .conn
            .prepare_cached(&format!(
                "{columns} WHERE owner = ?1 AND kind_folded = ?5 AND until = ?2 ORDER BY folded, id LIMIT ?3 OFFSET ?4"
            ))?
            .query_map((view.owner, NO_END, limit, offset, normalize_name(kind)), MemoryView::head_from_row)?
            .collect(),
    }
}

fn total(view: &MemoryView<'_>, kind: Option<&str>) -> rusqlite::Result<u64> {
    let sql =
        "SELECT coalesce(sum(live), 0) FROM kinds WHERE owner = ?1 AND (?2 IS NULL OR kind_folded = ?2)";
    let total: i64 =
        view.conn.prepare_cached(sql)?.query_row((view.owner, kind.map(normalize_name)), |row| row.get(0))?;
    Ok(total.cast_unsigned())
}

pub(super) fn list(conn: &Connection, owner: i64, asked: &PageRequest) -> rusqlite::Result<EntityPage> {
    let view = MemoryView { conn, owner, at: NOW, stated_only: false };
    let heads = list_page(&view, asked.kind.as_deref(), asked.limit, asked.offset)?;
    let entities = heads.into_iter().map(|head| EntitySummary {
        fact_count: head.fact_count.cast_unsigned(),
        updated: timestamp(head.updated),
        name: head.name,
        kind: head.kind,
    });
    let kinds = conn
        .prepare_cached(
            "SELECT kind, live FROM kinds WHERE owner = ?1 AND live > 0 ORDER BY live DESC, kind LIMIT ?2",
        )?
        .query_map((owner, MAX_KINDS as i64), |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(EntityPage { entities: entities.collect(), total: total(&view, asked.kind.as_deref())?, kinds })
}

/// Entities after the one with this id, with all their data.
pub(super) fn dump(conn: &Connection, owner: i64, after: i64, limit: usize) -> rusqlite::Result<Dump> {
    let view = MemoryView { conn, owner, at: NOW, stated_only: false };
    let heads: Vec<EntityHead> = conn
        .prepare_cached(
            "SELECT id, name, kind, facts, since, updated FROM entities
             WHERE id > ?1 AND owner = ?2 AND until = ?3 ORDER BY id LIMIT ?4",
        )?
        .query_map((after, owner, NO_END, limit as i64), MemoryView::head_from_row)?
        .collect::<rusqlite::Result<_>>()?;
    let next = heads.last().filter(|_| heads.len() == limit).map(|head| head.id);
    let whole = |head: EntityHead| {
        let facts = view.facts(head.id, MAX_FACTS)?;
        view.build_entity(head, facts, LinkScope::AllOutward)
    };
    Ok(Dump { entities: heads.into_iter().map(whole).collect::<rusqlite::Result<_>>()?, next })
}
