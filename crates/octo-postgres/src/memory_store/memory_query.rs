//! Queries, lists and exports.

use super::entity_search::{self, SearchHit};
use super::memory_view::{EntityFacts, MemoryView, OWNER, fact_from_row, former_kind, limit_value};
use super::name_key::name_key;
use octo_ports::StoreResult;
use octo_ports::memory::backend::{
    FactRow, LinkScope, MAX_KINDS, MAX_NEAREST, MAX_PAST_SCAN, NO_END, complete_facts, timestamp,
};
use octo_ports::memory::{
    Dump, EndedFact, EntityPage, EntitySummary, KnownEntity, MAX_FACTS, MemoryQuery, PageRequest, QueryResult,
};
use octo_search::{MAX_RECENT_FACTS, first_row, unweighted_terms};
use std::collections::HashMap;
use tokio_postgres::Row;

pub(super) async fn query(view: &MemoryView<'_>, question: &MemoryQuery) -> StoreResult<QueryResult> {
    match (&question.name, &question.text) {
        (Some(name), text) => by_name(view, question, name, text.as_deref()).await,
        (None, Some(text)) => {
            let mut found = entity_search::search(view, text, question.kind.as_deref()).await?;
            found.hits.truncate(question.limit);
            let entities = found_entities(view, question, found.hits).await?;
            Ok(QueryResult { entities, total: found.total, exact: found.exact, nearest: Vec::new() })
        }
        (None, None) => browse(view, question).await,
    }
}

/// The ended observations of the entities with this name, the last that ended first.
pub(super) async fn history(view: &MemoryView<'_>, name: &str, limit: usize) -> StoreResult<Vec<EndedFact>> {
    let rows_per_entity = first_row(1);
    let sql = format!(
        "SELECT f.id, f.text, f.origin, f.source, f.call, f.since, f.until, h.name
         FROM (
            SELECT name, id * {rows_per_entity} AS first_row, (id + 1) * {rows_per_entity} - 1 AS last_row
            FROM memory_entities WHERE owner = {OWNER} AND folded = $6 OFFSET 0
         ) h
         CROSS JOIN LATERAL (
            SELECT id, text, origin, source, call, since, until FROM memory_facts
            WHERE owner = {OWNER} AND id BETWEEN h.first_row AND h.last_row AND until < {NO_END}
         ) f
         ORDER BY f.until DESC, f.id DESC LIMIT $5"
    );
    let rows = view.read(&sql, &[&limit_value(limit), &name_key(name)]).await?;
    let ended = |row: &Row| {
        let until = timestamp(row.get(6));
        Some(EndedFact { entity: row.get(7), fact: fact_from_row(row, 0)?.fact, until })
    };
    Ok(rows.iter().filter_map(ended).collect())
}

async fn by_name(
    view: &MemoryView<'_>,
    question: &MemoryQuery,
    name: &str,
    text: Option<&str>,
) -> StoreResult<QueryResult> {
    let source = format!(
        "SELECT *, row_number() OVER (ORDER BY until, id) AS n FROM memory_entities
         WHERE owner = {OWNER} AND folded = $6 AND {}",
        view.is_valid()
    );
    let limit = question.facts.max(MAX_RECENT_FACTS);
    let mut named = view.entities(&source, limit, &[&name_key(name)]).await?;
    if let Some(at) = named.iter().position(|entity| entity.head.name == name) {
        named = vec![named.swap_remove(at)];
    }
    let mut nearest = Vec::new();
    if named.is_empty() {
        let found = entity_search::search(view, name, None).await?;
        nearest = found.hits.into_iter().take(MAX_NEAREST).map(|hit| hit.head.name).collect();
    }
    let kind = question.kind.as_deref().map(name_key);
    named.retain(|entity| kind.as_ref().is_none_or(|kind| *kind == name_key(&entity.head.kind)));
    let rank = |entity: EntityFacts| match text {
        None => Some(unscored(entity)),
        Some(text) => entity_search::rank_entity(text, &unweighted_terms(text), entity, Vec::new()),
    };
    let mut hits: Vec<SearchHit> = named.into_iter().filter_map(rank).collect();
    let total = hits.len() as u64;
    hits.truncate(question.limit);
    let mut entities = found_entities(view, question, hits).await?;
    if text.is_none() {
        entities.iter_mut().for_each(|known| known.score = None);
    }
    Ok(QueryResult { entities, total, exact: true, nearest })
}

fn unscored(entity: EntityFacts) -> SearchHit {
    SearchHit { head: entity.head, score: 0.0, matching: Vec::new(), recent: entity.facts }
}

/// Entities with their matching observations, then the newest.
async fn found_entities(
    view: &MemoryView<'_>,
    question: &MemoryQuery,
    hits: Vec<SearchHit>,
) -> StoreResult<Vec<KnownEntity>> {
    let scope = if question.links { LinkScope::Limited } else { LinkScope::None };
    let mut relations = view.relations(hits.iter().map(|hit| hit.head.id).collect(), scope).await?;
    let mut newest = more_facts(view, question, &hits).await?;
    let build = |hit: SearchHit| {
        let newest = newest.remove(&hit.head.id).unwrap_or(hit.recent);
        let facts = complete_facts(hit.matching, newest, question.facts);
        let links = relations.remove(&hit.head.id).unwrap_or_default();
        KnownEntity { score: Some(hit.score), ..hit.head.into_known(facts, links, scope, view.at) }
    };
    Ok(hits.into_iter().map(build).collect())
}

/// The newest observations where more are asked for than were read.
async fn more_facts(
    view: &MemoryView<'_>,
    question: &MemoryQuery,
    hits: &[SearchHit],
) -> StoreResult<HashMap<i64, Vec<FactRow>>> {
    let needs_more = |hit: &&SearchHit| {
        hit.recent.len() == MAX_RECENT_FACTS
            && hit.matching.len() < question.facts
            && question.facts > MAX_RECENT_FACTS
    };
    let ids: Vec<i64> = hits.iter().filter(needs_more).map(|hit| hit.head.id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let entities = view.by_ids(ids, question.facts).await?;
    Ok(entities.into_iter().map(|entity| (entity.head.id, entity.facts)).collect())
}

/// Entities by name, without a text search.
async fn browse(view: &MemoryView<'_>, question: &MemoryQuery) -> StoreResult<QueryResult> {
    let (limit, kind) = (question.limit, question.kind.as_deref().map(name_key));
    let entities = match view.is_now() {
        true => list_page(view, kind.as_deref(), limit, 0, question.facts).await?,
        false => past_entities(view, kind.as_deref(), limit, question.facts).await?,
    };
    let (total, exact) = match view.is_now() {
        true => (count_kinds(view, kind.as_deref()).await?.0, true),
        false => (entities.len() as u64, entities.len() < limit),
    };
    let hits = entities.into_iter().map(unscored).collect();
    let mut entities = found_entities(view, question, hits).await?;
    entities.iter_mut().for_each(|known| known.score = None);
    Ok(QueryResult { entities, total, exact, nearest: Vec::new() })
}

async fn past_entities(
    view: &MemoryView<'_>,
    kind: Option<&str>,
    limit: usize,
    facts: usize,
) -> StoreResult<Vec<EntityFacts>> {
    let order = "ORDER BY folded, until, id";
    let former = former_kind("kind_folded");
    let source = format!(
        "SELECT * FROM (
            SELECT *, row_number() OVER ({order}) AS n FROM memory_entities
            WHERE owner = {OWNER} AND {} {order} LIMIT {MAX_PAST_SCAN}
         ) e
         WHERE $6::text IS NULL OR $6 = {former} ORDER BY n LIMIT $7",
        view.is_valid()
    );
    view.entities(&source, facts, &[&kind, &limit_value(limit)]).await
}

async fn list_page(
    view: &MemoryView<'_>,
    kind: Option<&str>,
    limit: usize,
    offset: u64,
    facts: usize,
) -> StoreResult<Vec<EntityFacts>> {
    let of_kind = if kind.is_some() { "AND kind_folded = $6" } else { "" };
    let source = format!(
        "SELECT *, row_number() OVER (ORDER BY folded, id) AS n FROM memory_entities
         WHERE owner = {OWNER} AND until = {NO_END} {of_kind} ORDER BY folded, id LIMIT $7 OFFSET $8"
    );
    view.entities(&source, facts, &[&kind, &limit_value(limit), &limit_value(offset)]).await
}

/// The number of entities, of one type if one is given, and the most frequent types.
async fn count_kinds(view: &MemoryView<'_>, kind: Option<&str>) -> StoreResult<(u64, Vec<(String, u64)>)> {
    let sql = format!(
        "SELECT total, kind, live FROM (
            SELECT coalesce(sum(live), 0)::int8 AS total FROM memory_kinds
            WHERE owner = {OWNER} AND ($5::text IS NULL OR kind_folded = $5)
         ) t
         LEFT JOIN (
            SELECT kind, live FROM memory_kinds WHERE owner = {OWNER} AND live > 0
            ORDER BY live DESC, kind LIMIT {MAX_KINDS}
         ) k ON true
         ORDER BY live DESC, kind"
    );
    let rows = view.read(&sql, &[&kind]).await?;
    let total = rows.first().map_or(0, |row| row.get::<_, i64>(0));
    let kinds = rows.iter().filter_map(|row| {
        row.get::<_, Option<String>>(1).map(|kind| (kind, row.get::<_, i64>(2).cast_unsigned()))
    });
    Ok((total.cast_unsigned(), kinds.collect()))
}

pub(super) async fn list(view: &MemoryView<'_>, asked: &PageRequest) -> StoreResult<EntityPage> {
    let kind = asked.kind.as_deref().map(name_key);
    let entities = list_page(view, kind.as_deref(), asked.limit, asked.offset, 0).await?;
    let summary = |EntityFacts { head, .. }: EntityFacts| EntitySummary {
        fact_count: head.fact_count.cast_unsigned(),
        updated: timestamp(head.updated),
        name: head.name,
        kind: head.kind,
    };
    let (total, kinds) = count_kinds(view, kind.as_deref()).await?;
    Ok(EntityPage { entities: entities.into_iter().map(summary).collect(), total, kinds })
}

/// Entities after the one with this id, with all their data.
pub(super) async fn dump(view: &MemoryView<'_>, after: i64, limit: usize) -> StoreResult<Dump> {
    let source = format!(
        "SELECT *, id AS n FROM memory_entities WHERE owner = {OWNER} AND id > $6 AND until = {NO_END}
         ORDER BY id LIMIT $7"
    );
    let entities = view.entities(&source, MAX_FACTS, &[&after, &limit_value(limit)]).await?;
    let next = entities.last().filter(|_| entities.len() == limit).map(|entity| entity.head.id);
    let scope = LinkScope::AllOutward;
    let mut relations = view.relations(entities.iter().map(|entity| entity.head.id).collect(), scope).await?;
    let build = |EntityFacts { head, facts }: EntityFacts| -> KnownEntity {
        let links = relations.remove(&head.id).unwrap_or_default();
        head.into_known(facts, links, scope, view.at)
    };
    Ok(Dump { entities: entities.into_iter().map(build).collect(), next })
}
