//! Answers to questions, lists, and everything for an export.

use super::look::{Head, Links, Seen, View, moment};
use super::search::{self, Hit};
use super::tables::{ENDLESS, NOW};
use super::words::fold;
use octo_grants::memory::{Answer, Brief, Dump, Known, Listed, MAX_FACTS, Page, Question};
use rusqlite::Connection;
use std::collections::BTreeSet;

/// Names to try instead of one that is not there.
const NEAREST: usize = 3;
/// Types that a list counts.
const KINDS: usize = 20;
/// Entities that are looked at one by one for a moment in the past.
const PATIENCE: i64 = 100_000;

pub(super) fn ask(conn: &Connection, owner: i64, question: &Question) -> rusqlite::Result<Answer> {
    let at = question.at.map_or(NOW, |at| at.as_microsecond());
    let view = View { conn, owner, at, stated_only: question.stated_only };
    match (&question.name, &question.text) {
        (Some(name), text) => by_name(&view, question, name, text.as_deref()),
        (None, Some(text)) => {
            let found = search::search(&view, text, question.kind.as_deref())?;
            let hits = found.hits.into_iter().take(question.limit);
            let entities = hits.map(|hit| shown(&view, question, hit)).collect::<Result<_, _>>()?;
            Ok(Answer { entities, total: found.total, exact: found.exact, nearest: Vec::new() })
        }
        (None, None) => browse(&view, question),
    }
}

fn by_name(view: &View<'_>, question: &Question, name: &str, text: Option<&str>) -> rusqlite::Result<Answer> {
    let of_kind = |head: &Head| question.kind.as_ref().is_none_or(|kind| fold(kind) == fold(&head.kind));
    let mut entities = Vec::new();
    let named = view.named(name)?;
    let nobody = named.is_empty();
    for head in named.into_iter().filter(of_kind) {
        let hit = match text {
            None => Some(Hit { head, score: 0.0, facts: Vec::new() }),
            Some(text) => search::judge(view, text, &search::plain_terms(text), head, &[])?,
        };
        if let Some(hit) = hit {
            let known = shown(view, question, hit)?;
            entities.push(Known { score: known.score.filter(|_| text.is_some()), ..known });
        }
    }
    let mut nearest = Vec::new();
    if nobody {
        let found = search::search(view, name, None)?;
        nearest = found.hits.into_iter().take(NEAREST).map(|hit| hit.head.name).collect();
    }
    let total = entities.len() as u64;
    entities.truncate(question.limit);
    Ok(Answer { entities, total, exact: true, nearest })
}

/// An entity with those observations that fit, and then the newest.
fn shown(view: &View<'_>, question: &Question, hit: Hit) -> rusqlite::Result<Known> {
    let mut facts: Vec<Seen> = hit.facts;
    facts.truncate(question.facts);
    if facts.len() < question.facts {
        let there: BTreeSet<i64> = facts.iter().map(|seen| seen.row).collect();
        let newest = view.facts(hit.head.id, question.facts)?;
        let room = question.facts - facts.len();
        facts.extend(newest.into_iter().filter(|seen| !there.contains(&seen.row)).take(room));
    }
    let links = if question.links { Links::Some } else { Links::None };
    let known = view.known(hit.head, facts, links)?;
    Ok(Known { score: Some(hit.score), ..known })
}

/// Entities by name, without words to look for.
fn browse(view: &View<'_>, question: &Question) -> rusqlite::Result<Answer> {
    let limit = question.limit;
    let heads = match view.is_now() {
        true => page(view, question.kind.as_deref(), limit, 0)?,
        false => past_heads(view, question.kind.as_deref(), limit)?,
    };
    let (total, exact) = match view.is_now() {
        true => (total(view, question.kind.as_deref())?, true),
        false => (heads.len() as u64, heads.len() < limit),
    };
    let bare = |head| shown(view, question, Hit { head, score: 0.0, facts: Vec::new() });
    let entities = heads.into_iter().map(bare).map(|known| Ok(Known { score: None, ..known? }));
    Ok(Answer { entities: entities.collect::<rusqlite::Result<_>>()?, total, exact, nearest: Vec::new() })
}

fn past_heads(view: &View<'_>, kind: Option<&str>, limit: usize) -> rusqlite::Result<Vec<Head>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT id, name, kind, facts, since, updated FROM entities
         WHERE owner = ?1 AND since <= ?2 AND until > ?2 ORDER BY folded LIMIT ?3",
    )?;
    let mut heads = Vec::new();
    for head in statement.query_map((view.owner, view.at, PATIENCE), View::read)? {
        let head = view.then(head?)?;
        if kind.is_none_or(|kind| fold(kind) == fold(&head.kind)) {
            heads.push(head);
        }
        if heads.len() >= limit {
            break;
        }
    }
    Ok(heads)
}

fn page(view: &View<'_>, kind: Option<&str>, limit: usize, offset: u64) -> rusqlite::Result<Vec<Head>> {
    let (limit, offset) =
        (i64::try_from(limit).unwrap_or(i64::MAX), i64::try_from(offset).unwrap_or(i64::MAX));
    let columns = "SELECT id, name, kind, facts, since, updated FROM entities";
    match kind {
        None => view
            .conn
            .prepare_cached(&format!(
                "{columns} WHERE owner = ?1 AND until = ?2 ORDER BY folded LIMIT ?3 OFFSET ?4"
            ))?
            .query_map((view.owner, ENDLESS, limit, offset), View::read)?
            .collect(),
        Some(kind) => view
            .conn
            .prepare_cached(&format!(
                "{columns} WHERE owner = ?1 AND kind_folded = ?5 AND until = ?2 ORDER BY folded LIMIT ?3 OFFSET ?4"
            ))?
            .query_map((view.owner, ENDLESS, limit, offset, fold(kind)), View::read)?
            .collect(),
    }
}

fn total(view: &View<'_>, kind: Option<&str>) -> rusqlite::Result<u64> {
    let sql =
        "SELECT coalesce(sum(live), 0) FROM kinds WHERE owner = ?1 AND (?2 IS NULL OR kind_folded = ?2)";
    let total: i64 =
        view.conn.prepare_cached(sql)?.query_row((view.owner, kind.map(fold)), |row| row.get(0))?;
    Ok(total.cast_unsigned())
}

pub(super) fn list(conn: &Connection, owner: i64, asked: &Page) -> rusqlite::Result<Listed> {
    let view = View { conn, owner, at: NOW, stated_only: false };
    let heads = page(&view, asked.kind.as_deref(), asked.limit, asked.offset)?;
    let entities = heads.into_iter().map(|head| Brief {
        fact_count: head.fact_count.cast_unsigned(),
        updated: moment(head.updated),
        name: head.name,
        kind: head.kind,
    });
    let kinds = conn
        .prepare_cached(
            "SELECT kind, live FROM kinds WHERE owner = ?1 AND live > 0 ORDER BY live DESC, kind LIMIT ?2",
        )?
        .query_map((owner, KINDS as i64), |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Listed { entities: entities.collect(), total: total(&view, asked.kind.as_deref())?, kinds })
}

/// Entities after the one with this number, with everything.
pub(super) fn dump(conn: &Connection, owner: i64, after: i64, limit: usize) -> rusqlite::Result<Dump> {
    let view = View { conn, owner, at: NOW, stated_only: false };
    let heads: Vec<Head> = conn
        .prepare_cached(
            "SELECT id, name, kind, facts, since, updated FROM entities
             WHERE id > ?1 AND owner = ?2 AND until = ?3 ORDER BY id LIMIT ?4",
        )?
        .query_map((after, owner, ENDLESS, limit as i64), View::read)?
        .collect::<rusqlite::Result<_>>()?;
    let next = heads.last().filter(|_| heads.len() == limit).map(|head| head.id);
    let whole = |head: Head| {
        let facts = view.facts(head.id, MAX_FACTS)?;
        view.known(head, facts, Links::AllOutward)
    };
    Ok(Dump { entities: heads.into_iter().map(whole).collect::<rusqlite::Result<_>>()?, next })
}
