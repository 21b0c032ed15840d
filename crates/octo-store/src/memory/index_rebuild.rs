//! Builds the word index anew from the rows, in the order of the index.

use super::remove::index_side;
use super::transaction::Entity;
use super::word_index::IndexChanges;
use octo_search::{first_row, last_row};
use rusqlite::Connection;

/// Rows per write to the index.
const ROWS_PER_WRITE: usize = 10_000;

/// The index must be empty.
pub(crate) fn rebuild_index(conn: &Connection) -> rusqlite::Result<()> {
    let sql = format!("SELECT {}, owner, until FROM entities ORDER BY id", Entity::COLUMNS);
    let mut statement = conn.prepare(&sql)?;
    let mut entities = statement.query(())?;
    let (mut changes, mut count) = (IndexChanges::default(), 0);
    while let Some(row) = entities.next()? {
        let (entity, owner, until) = (Entity::read(row)?, row.get(4)?, row.get(5)?);
        count += add_entity(conn, &mut changes, &entity, owner, until)?;
        if count >= ROWS_PER_WRITE {
            std::mem::take(&mut changes).write(conn)?;
            count = 0;
        }
    }
    changes.write(conn)
}

/// Returns the number of rows.
fn add_entity(
    conn: &Connection,
    changes: &mut IndexChanges,
    entity: &Entity,
    owner: i64,
    until: i64,
) -> rusqlite::Result<usize> {
    let (side, first) = (index_side(until), first_row(entity.id));
    changes.put(side, first, entity.words(owner, side));
    let mut facts = conn.prepare_cached("SELECT id, text, until FROM facts WHERE id BETWEEN ?1 AND ?2")?;
    let mut rows = facts.query((first, last_row(entity.id)))?;
    let mut count = 1;
    while let Some(row) = rows.next()? {
        let (text, side): (String, _) = (row.get(1)?, index_side(row.get(2)?));
        changes.put(side, row.get(0)?, entity.fact_words(owner, side, &text));
        count += 1;
    }
    Ok(count)
}
