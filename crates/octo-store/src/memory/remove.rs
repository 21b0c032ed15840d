//! What is no longer so, and what shall never have been known.

use super::index::Side;
use super::pen::{Entity, Fault, OVERHEAD, Owner, Pen, size};
use super::tables::{ENDLESS, first_row, last_row};
use super::words::fold;
use octo_grants::memory::{Forget, Link, Names, Removal};

/// Takes entities away with all that belongs to them.
pub(super) fn delete(
    pen: &mut Pen<'_>,
    owner: &Owner,
    names: &[String],
    removal: Removal,
) -> Result<Vec<String>, Fault> {
    let (mut gone, mut grown) = (Vec::new(), 0);
    for name in names {
        let found = pen.find(owner, name, Names::Alike, None)?;
        let known_as = found.as_ref().map_or_else(|| name.clone(), |entity| entity.name.clone());
        match (removal, found) {
            (Removal::Ended, Some(entity)) => end(pen, owner, &entity)?,
            (Removal::Ended, None) => continue,
            (Removal::Erased, _) => match erase_all(pen, owner, &known_as)? {
                0 => continue,
                freed => grown -= freed,
            },
        }
        gone.push(known_as);
    }
    pen.close(owner, grown)?;
    Ok(gone)
}

fn end(pen: &mut Pen<'_>, owner: &Owner, entity: &Entity) -> Result<(), Fault> {
    for (row, text) in pen.live_facts(entity.id)? {
        fact_to_past(pen, owner, entity, row, &text);
    }
    pen.changes.take(Side::Live, first_row(entity.id), entity.words(owner.id, Side::Live));
    pen.changes.put(Side::Past, first_row(entity.id), entity.words(owner.id, Side::Past));
    pen.run(
        "UPDATE facts SET until = ?3 WHERE id BETWEEN ?1 AND ?2 AND until = ?4",
        (first_row(entity.id), last_row(entity.id), pen.at, ENDLESS),
    )?;
    pen.run("UPDATE links SET until = ?2 WHERE source = ?1 AND until = ?3", (entity.id, pen.at, ENDLESS))?;
    pen.run("UPDATE links SET until = ?2 WHERE target = ?1 AND until = ?3", (entity.id, pen.at, ENDLESS))?;
    pen.run("UPDATE entities SET until = ?2 WHERE id = ?1", (entity.id, pen.at))?;
    pen.count(owner.id, &entity.kind, &entity.kind_folded, -1)?;
    Ok(())
}

fn fact_to_past(pen: &mut Pen<'_>, owner: &Owner, entity: &Entity, row: i64, text: &str) {
    pen.changes.take(Side::Live, row, entity.fact_words(owner.id, Side::Live, text));
    pen.changes.put(Side::Past, row, entity.fact_words(owner.id, Side::Past, text));
}

/// Erases everything that ever had this name, and gives how many bytes that were.
fn erase_all(pen: &mut Pen<'_>, owner: &Owner, name: &str) -> Result<i64, Fault> {
    let sql = format!(
        "SELECT {}, until FROM entities WHERE owner = ?1 AND folded = ?2 AND name = ?3",
        Entity::COLUMNS
    );
    let entities: Vec<(Entity, i64)> = pen
        .conn
        .prepare_cached(&sql)?
        .query_map((owner.id, fold(name), name), |row| Ok((Entity::read(row)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut freed = 0;
    for (entity, until) in entities {
        freed += erase(pen, owner, &entity, until)?;
    }
    Ok(freed)
}

fn erase(pen: &mut Pen<'_>, owner: &Owner, entity: &Entity, until: i64) -> Result<i64, Fault> {
    let (first, last) = (first_row(entity.id), last_row(entity.id));
    let mut freed = size(&entity.name);
    for (row, text, until) in facts(pen, entity.id)? {
        let side = side(until);
        pen.changes.take(side, row, entity.fact_words(owner.id, side, &text));
        freed += size(&text);
    }
    pen.changes.take(side(until), first, entity.words(owner.id, side(until)));
    if until == ENDLESS {
        pen.count(owner.id, &entity.kind, &entity.kind_folded, -1)?;
    }
    pen.run("DELETE FROM facts WHERE id BETWEEN ?1 AND ?2", (first, last))?;
    let links = pen.run("DELETE FROM links WHERE source = ?1", [entity.id])?
        + pen.run("DELETE FROM links WHERE target = ?1", [entity.id])?;
    freed += OVERHEAD * links.cast_signed() as i64;
    pen.run("DELETE FROM former_kinds WHERE entity = ?1", [entity.id])?;
    pen.run("DELETE FROM entities WHERE id = ?1", [entity.id])?;
    pen.erased = true;
    Ok(freed)
}

/// All observations, past ones too: row, text, until.
fn facts(pen: &Pen<'_>, entity: i64) -> rusqlite::Result<Vec<(i64, String, i64)>> {
    pen.conn
        .prepare_cached("SELECT id, text, until FROM facts WHERE id BETWEEN ?1 AND ?2")?
        .query_map((first_row(entity), last_row(entity)), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

const fn side(until: i64) -> Side {
    if until == ENDLESS { Side::Live } else { Side::Past }
}

/// Takes one observation or one relation away and says how many that were.
pub(super) fn forget(
    pen: &mut Pen<'_>,
    owner: &Owner,
    what: &Forget,
    removal: Removal,
) -> Result<u64, Fault> {
    match what {
        Forget::Fact { entity, text } => forget_fact(pen, owner, entity, text, removal),
        Forget::Link(link) => forget_link(pen, owner, link, removal),
    }
}

fn forget_fact(
    pen: &mut Pen<'_>,
    owner: &Owner,
    name: &str,
    text: &str,
    removal: Removal,
) -> Result<u64, Fault> {
    let Some(entity) = pen.find(owner, name, Names::Alike, None)? else { return Ok(0) };
    let (mut gone, mut live, mut freed) = (0, 0, 0);
    for (row, known, until) in facts(pen, entity.id)? {
        let is_live = until == ENDLESS;
        if known != text || (removal == Removal::Ended && !is_live) {
            continue;
        }
        match removal {
            Removal::Ended => {
                fact_to_past(pen, owner, &entity, row, text);
                pen.run("UPDATE facts SET until = ?2 WHERE id = ?1", (row, pen.at))?;
            }
            Removal::Erased => {
                let side = side(until);
                pen.changes.take(side, row, entity.fact_words(owner.id, side, text));
                pen.run("DELETE FROM facts WHERE id = ?1", [row])?;
                pen.erased = true;
                freed -= size(text);
            }
        }
        live += i64::from(is_live);
        gone += 1;
    }
    if gone > 0 {
        let sql = "UPDATE entities SET facts = facts - ?2, updated = ?3 WHERE id = ?1";
        pen.run(sql, (entity.id, live, pen.at))?;
    }
    pen.close(owner, freed)?;
    Ok(gone)
}

fn forget_link(pen: &mut Pen<'_>, owner: &Owner, link: &Link, removal: Removal) -> Result<u64, Fault> {
    let source = pen.find(owner, &link.source, Names::Alike, None)?;
    let target = pen.find(owner, &link.target, Names::Alike, None)?;
    let (Some(source), Some(target)) = (source, target) else { return Ok(0) };
    let gone = match removal {
        Removal::Ended => pen.run(
            "UPDATE links SET until = ?4 WHERE source = ?1 AND relation = ?2 AND target = ?3 AND until = ?5",
            (source.id, &link.relation, target.id, pen.at, ENDLESS),
        )?,
        Removal::Erased => pen.run(
            "DELETE FROM links WHERE source = ?1 AND relation = ?2 AND target = ?3",
            (source.id, &link.relation, target.id),
        )?,
    };
    if removal == Removal::Erased && gone > 0 {
        pen.erased = true;
        pen.close(owner, -OVERHEAD * gone.cast_signed() as i64)?;
    }
    Ok(gone as u64)
}
