//! Entities, observations and relations that are new.

use super::index::Side;
use super::pen::{Entity, Fault, OVERHEAD, Owner, Pen, crowded, number, size};
use super::tables::{ENDLESS, first_row};
use super::words::fold;
use octo_grants::memory::{Fact, Link, Linked, MAX_FACTS, Names, NewEntity, Upserted};
use std::collections::HashSet;

pub(super) fn upsert(
    pen: &mut Pen<'_>,
    owner: &Owner,
    entities: &[NewEntity],
    names: Names,
) -> Result<Vec<Upserted>, Fault> {
    let mut grown = 0;
    let done =
        entities.iter().map(|entity| one(pen, owner, entity, names, &mut grown)).collect::<Result<_, _>>()?;
    pen.close(owner, grown)?;
    Ok(done)
}

fn one(
    pen: &mut Pen<'_>,
    owner: &Owner,
    new: &NewEntity,
    names: Names,
    grown: &mut i64,
) -> Result<Upserted, Fault> {
    let found = pen.find(owner, &new.name, names, new.kind.as_deref())?;
    let created = found.is_none();
    let mut entity = match found {
        Some(entity) => entity,
        None => {
            *grown += size(&new.name);
            pen.create(owner, &new.name, new.kind.as_deref())?
        }
    };
    let other = new.kind.as_ref().filter(|kind| fold(kind) != entity.kind_folded);
    let kind_was = other.map(|_| entity.kind.clone());
    if let Some(kind) = other {
        pen.retype(owner, &mut entity, kind)?;
    }
    let added = observe(pen, owner, &entity, &new.facts, created, grown)?;
    if !created {
        pen.run(
            "UPDATE entities SET facts = facts + ?2, updated = ?3 WHERE id = ?1",
            (entity.id, added, pen.at),
        )?;
    } else if added > 0 {
        pen.run("UPDATE entities SET facts = ?2 WHERE id = ?1", (entity.id, added))?;
    }
    Ok(Upserted { name: entity.name, created, added: added.cast_unsigned(), kind_was })
}

/// Adds those observations that are not there yet.
fn observe(
    pen: &mut Pen<'_>,
    owner: &Owner,
    entity: &Entity,
    facts: &[Fact],
    created: bool,
    grown: &mut i64,
) -> Result<i64, Fault> {
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
            return Err(crowded(&entity.name).into());
        }
        pen.run(
            "INSERT INTO facts (id, text, origin, source, call, since, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (row, &fact.text, number(fact.origin), &fact.source, &owner.call, pen.at, ENDLESS),
        )?;
        pen.changes.put(Side::Live, row, entity.fact_words(owner.id, Side::Live, &fact.text));
        *grown += size(&fact.text);
        (row, added) = (row + 1, added + 1);
    }
    Ok(added)
}

/// Entities that are not there are made, so that no relation leads nowhere.
pub(super) fn link(pen: &mut Pen<'_>, owner: &Owner, links: &[Link], names: Names) -> Result<Linked, Fault> {
    let (mut done, mut grown) = (Linked::default(), 0);
    for link in links {
        let source = end(pen, owner, &link.source, names, &mut done, &mut grown)?;
        let target = end(pen, owner, &link.target, names, &mut done, &mut grown)?;
        if known(pen, source, &link.relation, target)? {
            done.skipped += 1;
            continue;
        }
        pen.run(
            "INSERT INTO links (source, relation, target, call, since, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (source, &link.relation, target, &owner.call, pen.at, ENDLESS),
        )?;
        grown += OVERHEAD;
        done.added += 1;
    }
    pen.close(owner, grown)?;
    Ok(done)
}

fn end(
    pen: &mut Pen<'_>,
    owner: &Owner,
    name: &str,
    names: Names,
    done: &mut Linked,
    grown: &mut i64,
) -> Result<i64, Fault> {
    if let Some(entity) = pen.find(owner, name, names, None)? {
        return Ok(entity.id);
    }
    *grown += size(name);
    done.created.push(name.to_owned());
    Ok(pen.create(owner, name, None)?.id)
}

fn known(pen: &Pen<'_>, source: i64, relation: &str, target: i64) -> rusqlite::Result<bool> {
    pen.conn
        .prepare_cached(
            "SELECT 1 FROM links WHERE source = ?1 AND relation = ?2 AND target = ?3 AND until = ?4",
        )?
        .exists((source, relation, target, ENDLESS))
}
