//! Adding entities, observations and relations.

use super::transaction::{Entity, MemoryOwner, MemoryTxn, too_many_facts};
use super::word_index::IndexSide;
use crate::lazy_database::WorkResult;
use octo_ports::memory::backend::{ITEM_OVERHEAD_BYTES, NO_END, quota_size};
use octo_ports::memory::{Fact, Link, LinkResult, MAX_FACTS, NameMatch, NewEntity, UpsertResult};
use octo_search::{first_row, normalize_name};
use std::collections::HashSet;

pub(super) fn upsert(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    entities: &[NewEntity],
    names: NameMatch,
) -> WorkResult<Vec<UpsertResult>> {
    let mut grown = 0;
    let done = entities
        .iter()
        .map(|entity| upsert_one(pen, owner, entity, names, &mut grown))
        .collect::<Result<_, _>>()?;
    pen.update_usage(owner, grown)?;
    Ok(done)
}

fn upsert_one(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    new: &NewEntity,
    names: NameMatch,
    grown: &mut i64,
) -> WorkResult<UpsertResult> {
    let found = pen.find_entity(owner, &new.name, names, new.kind.as_deref())?;
    let created = found.is_none();
    let mut entity = match found {
        Some(entity) => entity,
        None => {
            *grown += quota_size(&new.name);
            pen.create(owner, &new.name, new.kind.as_deref())?
        }
    };
    let other = new.kind.as_ref().filter(|kind| normalize_name(kind) != entity.kind_folded);
    let kind_was = other.map(|_| entity.kind.clone());
    if let Some(kind) = other {
        pen.change_kind(owner, &mut entity, kind)?;
    }
    let added = add_facts(pen, owner, &entity, &new.facts, created, grown)?;
    if !created {
        pen.execute(
            "UPDATE entities SET facts = facts + ?2, updated = ?3 WHERE id = ?1",
            (entity.id, added, pen.timestamp),
        )?;
    } else if added > 0 {
        pen.execute("UPDATE entities SET facts = ?2 WHERE id = ?1", (entity.id, added))?;
    }
    Ok(UpsertResult { name: entity.name, created, added: added.cast_unsigned(), kind_was })
}

/// Adds the observations that do not exist yet.
fn add_facts(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    entity: &Entity,
    facts: &[Fact],
    created: bool,
    grown: &mut i64,
) -> WorkResult<i64> {
    if facts.is_empty() {
        return Ok(0);
    }
    let mut known: HashSet<String> = HashSet::new();
    let mut row = first_row(entity.id) + 1;
    if !created {
        known = pen.live_facts(entity.id)?.into_iter().map(|(_, text)| text).collect();
        row = pen.next_row(entity)?;
    }
    let mut added = 0;
    for fact in facts {
        if !known.insert(fact.text.clone()) {
            continue;
        }
        if known.len() > MAX_FACTS {
            return Err(too_many_facts(&entity.name).into());
        }
        pen.execute(
            "INSERT INTO facts (id, text, origin, source, call, since, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (row, &fact.text, fact.origin.code(), &fact.source, &owner.call, pen.timestamp, NO_END),
        )?;
        pen.index_changes.put(IndexSide::Live, row, entity.fact_words(owner.id, IndexSide::Live, &fact.text));
        *grown += quota_size(&fact.text);
        (row, added) = (row + 1, added + 1);
    }
    Ok(added)
}

/// Creates missing entities, so that no relation dangles.
pub(super) fn link(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    links: &[Link],
    names: NameMatch,
) -> WorkResult<LinkResult> {
    let (mut done, mut grown) = (LinkResult::default(), 0);
    for link in links {
        let source = link_end(pen, owner, &link.source, names, &mut done, &mut grown)?;
        let target = link_end(pen, owner, &link.target, names, &mut done, &mut grown)?;
        if link_exists(pen, source, &link.relation, target)? {
            done.skipped += 1;
            continue;
        }
        pen.execute(
            "INSERT INTO links (source, relation, target, call, since, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (source, &link.relation, target, &owner.call, pen.timestamp, NO_END),
        )?;
        grown += ITEM_OVERHEAD_BYTES;
        done.added += 1;
    }
    pen.update_usage(owner, grown)?;
    Ok(done)
}

fn link_end(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    name: &str,
    names: NameMatch,
    done: &mut LinkResult,
    grown: &mut i64,
) -> WorkResult<i64> {
    if let Some(entity) = pen.find_entity(owner, name, names, None)? {
        return Ok(entity.id);
    }
    *grown += quota_size(name);
    done.created.push(name.to_owned());
    Ok(pen.create(owner, name, None)?.id)
}

fn link_exists(pen: &MemoryTxn<'_>, source: i64, relation: &str, target: i64) -> rusqlite::Result<bool> {
    pen.conn
        .prepare_cached(
            "SELECT 1 FROM links WHERE source = ?1 AND relation = ?2 AND target = ?3 AND until = ?4",
        )?
        .exists((source, relation, target, NO_END))
}
