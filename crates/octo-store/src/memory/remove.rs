//! Ending and erasing of memories.

use super::transaction::{Entity, MemoryOwner, MemoryTxn};
use super::word_index::IndexSide;
use crate::lazy_database::WorkResult;
use octo_ports::memory::backend::{ITEM_OVERHEAD_BYTES, NO_END, quota_size};
use octo_ports::memory::{ForgetTarget, Link, NameMatch, Removal};
use octo_search::{first_row, last_row, normalize_name};

/// Removes entities with all their data.
pub(super) fn delete(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    names: &[String],
    removal: Removal,
) -> WorkResult<Vec<String>> {
    let (mut gone, mut grown) = (Vec::new(), 0);
    for name in names {
        let found = pen.find_entity(owner, name, NameMatch::Alike, None)?;
        let known_as = found.as_ref().map_or_else(|| name.clone(), |entity| entity.name.clone());
        match (removal, found) {
            (Removal::Ended, Some(entity)) => end_entity(pen, owner, &entity)?,
            (Removal::Ended, None) => continue,
            (Removal::Erased, _) => match erase_all(pen, owner, &known_as)? {
                0 => continue,
                freed => grown -= freed,
            },
        }
        gone.push(known_as);
    }
    pen.update_usage(owner, grown)?;
    Ok(gone)
}

fn end_entity(pen: &mut MemoryTxn<'_>, owner: &MemoryOwner, entity: &Entity) -> WorkResult<()> {
    for (row, text) in pen.live_facts(entity.id)? {
        move_fact_to_past(pen, owner, entity, row, &text);
    }
    pen.index_changes.take(IndexSide::Live, first_row(entity.id), entity.words(owner.id, IndexSide::Live));
    pen.index_changes.put(IndexSide::Past, first_row(entity.id), entity.words(owner.id, IndexSide::Past));
    pen.execute(
        "UPDATE facts SET until = ?3 WHERE id BETWEEN ?1 AND ?2 AND until = ?4",
        (first_row(entity.id), last_row(entity.id), pen.timestamp, NO_END),
    )?;
    pen.execute(
        "UPDATE links SET until = ?2 WHERE source = ?1 AND until = ?3",
        (entity.id, pen.timestamp, NO_END),
    )?;
    pen.execute(
        "UPDATE links SET until = ?2 WHERE target = ?1 AND until = ?3",
        (entity.id, pen.timestamp, NO_END),
    )?;
    pen.execute("UPDATE entities SET until = ?2 WHERE id = ?1", (entity.id, pen.timestamp))?;
    pen.adjust_kind_count(owner.id, &entity.kind, &entity.kind_folded, -1)?;
    Ok(())
}

fn move_fact_to_past(pen: &mut MemoryTxn<'_>, owner: &MemoryOwner, entity: &Entity, row: i64, text: &str) {
    pen.index_changes.take(IndexSide::Live, row, entity.fact_words(owner.id, IndexSide::Live, text));
    pen.index_changes.put(IndexSide::Past, row, entity.fact_words(owner.id, IndexSide::Past, text));
}

/// Erases everything that ever had this name; returns the number of freed bytes.
fn erase_all(pen: &mut MemoryTxn<'_>, owner: &MemoryOwner, name: &str) -> WorkResult<i64> {
    let sql = format!(
        "SELECT {}, until FROM entities WHERE owner = ?1 AND folded = ?2 AND name = ?3",
        Entity::COLUMNS
    );
    let entities: Vec<(Entity, i64)> = pen
        .conn
        .prepare_cached(&sql)?
        .query_map((owner.id, normalize_name(name), name), |row| Ok((Entity::read(row)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut freed = 0;
    for (entity, until) in entities {
        freed += erase_entity(pen, owner, &entity, until)?;
    }
    Ok(freed)
}

fn erase_entity(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    entity: &Entity,
    until: i64,
) -> WorkResult<i64> {
    let (first, last) = (first_row(entity.id), last_row(entity.id));
    let mut freed = quota_size(&entity.name);
    for (row, text, until) in all_facts(pen, entity.id)? {
        let side = index_side(until);
        pen.index_changes.take(side, row, entity.fact_words(owner.id, side, &text));
        freed += quota_size(&text);
    }
    pen.index_changes.take(index_side(until), first, entity.words(owner.id, index_side(until)));
    if until == NO_END {
        pen.adjust_kind_count(owner.id, &entity.kind, &entity.kind_folded, -1)?;
    }
    pen.execute("DELETE FROM facts WHERE id BETWEEN ?1 AND ?2", (first, last))?;
    let links = pen.execute("DELETE FROM links WHERE source = ?1", [entity.id])?
        + pen.execute("DELETE FROM links WHERE target = ?1", [entity.id])?;
    freed += ITEM_OVERHEAD_BYTES * links.cast_signed() as i64;
    pen.execute("DELETE FROM former_kinds WHERE entity = ?1", [entity.id])?;
    pen.execute("DELETE FROM entities WHERE id = ?1", [entity.id])?;
    pen.erased = true;
    Ok(freed)
}

/// All observations, including past ones: row, text, until.
fn all_facts(pen: &MemoryTxn<'_>, entity: i64) -> rusqlite::Result<Vec<(i64, String, i64)>> {
    pen.conn
        .prepare_cached("SELECT id, text, until FROM facts WHERE id BETWEEN ?1 AND ?2")?
        .query_map((first_row(entity), last_row(entity)), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

pub(super) const fn index_side(until: i64) -> IndexSide {
    if until == NO_END { IndexSide::Live } else { IndexSide::Past }
}

/// Removes one observation or one relation; returns the number of removed rows.
pub(super) fn forget(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    what: &ForgetTarget,
    removal: Removal,
) -> WorkResult<u64> {
    match what {
        ForgetTarget::Fact { entity, text } => forget_fact(pen, owner, entity, text, removal),
        ForgetTarget::Link(link) => forget_link(pen, owner, link, removal),
    }
}

fn forget_fact(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    name: &str,
    text: &str,
    removal: Removal,
) -> WorkResult<u64> {
    let Some(entity) = pen.find_entity(owner, name, NameMatch::Alike, None)? else { return Ok(0) };
    let (mut gone, mut live, mut freed) = (0, 0, 0);
    for (row, known, until) in all_facts(pen, entity.id)? {
        let is_live = until == NO_END;
        if known != text || (removal == Removal::Ended && !is_live) {
            continue;
        }
        match removal {
            Removal::Ended => {
                move_fact_to_past(pen, owner, &entity, row, text);
                pen.execute("UPDATE facts SET until = ?2 WHERE id = ?1", (row, pen.timestamp))?;
            }
            Removal::Erased => {
                let side = index_side(until);
                pen.index_changes.take(side, row, entity.fact_words(owner.id, side, text));
                pen.execute("DELETE FROM facts WHERE id = ?1", [row])?;
                pen.erased = true;
                freed -= quota_size(text);
            }
        }
        live += i64::from(is_live);
        gone += 1;
    }
    if gone > 0 {
        let sql = "UPDATE entities SET facts = facts - ?2, updated = ?3 WHERE id = ?1";
        pen.execute(sql, (entity.id, live, pen.timestamp))?;
    }
    pen.update_usage(owner, freed)?;
    Ok(gone)
}

fn forget_link(
    pen: &mut MemoryTxn<'_>,
    owner: &MemoryOwner,
    link: &Link,
    removal: Removal,
) -> WorkResult<u64> {
    let source = pen.find_entity(owner, &link.source, NameMatch::Alike, None)?;
    let target = pen.find_entity(owner, &link.target, NameMatch::Alike, None)?;
    let (Some(source), Some(target)) = (source, target) else { return Ok(0) };
    let gone = match removal {
        Removal::Ended => pen.execute(
            "UPDATE links SET until = ?4 WHERE source = ?1 AND relation = ?2 AND target = ?3 AND until = ?5",
            (source.id, &link.relation, target.id, pen.timestamp, NO_END),
        )?,
        Removal::Erased => pen.execute(
            "DELETE FROM links WHERE source = ?1 AND relation = ?2 AND target = ?3",
            (source.id, &link.relation, target.id),
        )?,
    };
    if removal == Removal::Erased && gone > 0 {
        pen.erased = true;
        pen.update_usage(owner, -ITEM_OVERHEAD_BYTES * gone.cast_signed() as i64)?;
    }
    Ok(gone as u64)
}
