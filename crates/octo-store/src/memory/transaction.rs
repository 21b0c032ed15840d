//! Operations within a change of one memory.

use super::word_index::{IndexChanges, IndexSide, row_words};
use crate::lazy_database::WorkResult;
use octo_ports::memory::backend::{NO_END, select_by_name};
use octo_ports::memory::{DEFAULT_KIND, MemoryCaller, NameMatch};
use octo_ports::{Limit, StoreError};
use octo_search::{first_row, last_row, normalize_name};
use rusqlite::{Connection, OptionalExtension, Row};

/// One change: connection, timestamp and index updates.
pub(super) struct MemoryTxn<'a> {
    pub(super) conn: &'a Connection,
    pub(super) timestamp: i64,
    pub(super) index_changes: IndexChanges,
    /// Something was erased from the file.
    pub(super) erased: bool,
}

/// The owner of the memory, and its remaining quota.
pub(super) struct MemoryOwner {
    pub(super) id: i64,
    pub(super) call: String,
    bytes: i64,
    quota: i64,
}

/// An entity in its current state.
pub(super) struct Entity {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) kind_folded: String,
}

impl Entity {
    pub(super) const COLUMNS: &str = "id, name, kind, kind_folded";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (id, name, kind) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Self { id, name, kind, kind_folded: row.get(3)? })
    }

    /// The words of its own row.
    pub(super) fn words(&self, owner: i64, side: IndexSide) -> String {
        row_words(owner, side, &self.kind_folded, &[&self.name, &self.kind])
    }

    /// The words of one of its observations.
    pub(super) fn fact_words(&self, owner: i64, side: IndexSide, text: &str) -> String {
        row_words(owner, side, &self.kind_folded, &[text])
    }
}

pub(super) fn owner_id(conn: &Connection, asker: &MemoryCaller) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM owners WHERE tenant = ?1 AND subject = ?2")?
        .query_row((&asker.principal.tenant, &asker.principal.subject), |row| row.get(0))
        .optional()
}

impl<'a> MemoryTxn<'a> {
    pub(super) fn new(conn: &'a Connection, at: i64) -> Self {
        Self { conn, timestamp: at, index_changes: IndexChanges::default(), erased: false }
    }

    /// Runs a cached statement.
    pub(super) fn execute(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.conn.prepare_cached(sql)?.execute(values)
    }

    pub(super) fn open_owner(&self, asker: &MemoryCaller, quota: u64) -> rusqlite::Result<MemoryOwner> {
        let known = self
            .conn
            .prepare_cached("SELECT id, bytes FROM owners WHERE tenant = ?1 AND subject = ?2")?
            .query_row((&asker.principal.tenant, &asker.principal.subject), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let (id, bytes) = match known {
            Some(known) => known,
            None => {
                self.execute(
                    "INSERT INTO owners (tenant, subject) VALUES (?1, ?2)",
                    (&asker.principal.tenant, &asker.principal.subject),
                )?;
                (self.conn.last_insert_rowid(), 0)
            }
        };
        let quota = i64::try_from(quota).unwrap_or(i64::MAX);
        Ok(MemoryOwner { id, call: asker.call.to_string(), bytes, quota })
    }

    /// Updates the size of the memory at the end of a change. A change that shrinks it is never refused.
    pub(super) fn update_usage(&self, owner: &MemoryOwner, grown: i64) -> WorkResult<()> {
        if grown == 0 {
            return Ok(());
        }
        let bytes = owner.bytes.saturating_add(grown).max(0);
        if grown > 0 && bytes > owner.quota {
            return Err(StoreError::Full(Limit::MemoryBytes(owner.quota)).into());
        }
        self.execute("UPDATE owners SET bytes = ?2 WHERE id = ?1", (owner.id, bytes))?;
        Ok(())
    }

    /// The current entity of a name. A match by folded name must be the only one, and of the same type if one
    /// is given.
    pub(super) fn find_entity(
        &self,
        owner: &MemoryOwner,
        name: &str,
        names: NameMatch,
        kind: Option<&str>,
    ) -> rusqlite::Result<Option<Entity>> {
        let sql = format!(
            "SELECT {} FROM entities WHERE owner = ?1 AND folded = ?2 AND until = ?3",
            Entity::COLUMNS
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_map((owner.id, normalize_name(name), NO_END), Entity::read)?;
        let alike = rows.collect::<rusqlite::Result<Vec<Entity>>>()?;
        let is_of_kind = |entity: &Entity| kind.is_none_or(|kind| normalize_name(kind) == entity.kind_folded);
        Ok(select_by_name(alike, name, names, |entity| &entity.name, is_of_kind))
    }

    pub(super) fn create(
        &mut self,
        owner: &MemoryOwner,
        name: &str,
        kind: Option<&str>,
    ) -> rusqlite::Result<Entity> {
        let kind = kind.unwrap_or(DEFAULT_KIND);
        let kind_folded = normalize_name(kind);
        self.execute(
            "INSERT INTO entities (owner, name, folded, kind, kind_folded, facts, updated, since, until)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7)",
            (owner.id, name, normalize_name(name), kind, &kind_folded, self.timestamp, NO_END),
        )?;
        let id = self.conn.last_insert_rowid();
        let entity = Entity { id, name: name.to_owned(), kind: kind.to_owned(), kind_folded };
        self.adjust_kind_count(owner.id, &entity.kind, &entity.kind_folded, 1)?;
        self.index_changes.put(IndexSide::Live, first_row(id), entity.words(owner.id, IndexSide::Live));
        Ok(entity)
    }

    /// Adjusts the number of entities of a type.
    pub(super) fn adjust_kind_count(
        &self,
        owner: i64,
        kind: &str,
        folded: &str,
        more: i64,
    ) -> rusqlite::Result<()> {
        self.execute(
            "INSERT INTO kinds (owner, kind_folded, kind, live) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET live = live + ?4",
            (owner, folded, kind, more),
        )?;
        Ok(())
    }

    /// Changes the type of an entity, which is also in its index rows.
    pub(super) fn change_kind(
        &mut self,
        owner: &MemoryOwner,
        entity: &mut Entity,
        kind: &str,
    ) -> rusqlite::Result<()> {
        let folded = normalize_name(kind);
        let facts = self.live_facts(entity.id)?;
        self.index_changes.take(
            IndexSide::Live,
            first_row(entity.id),
            entity.words(owner.id, IndexSide::Live),
        );
        for (row, text) in &facts {
            self.index_changes.take(
                IndexSide::Live,
                *row,
                entity.fact_words(owner.id, IndexSide::Live, text),
            );
        }
        self.execute(
            "INSERT INTO former_kinds (entity, kind, until) VALUES (?1, ?2, ?3)",
            (entity.id, &entity.kind, self.timestamp),
        )?;
        self.execute(
            "UPDATE entities SET kind = ?2, kind_folded = ?3 WHERE id = ?1",
            (entity.id, kind, &folded),
        )?;
        self.adjust_kind_count(owner.id, &entity.kind, &entity.kind_folded, -1)?;
        self.adjust_kind_count(owner.id, kind, &folded, 1)?;
        (entity.kind, entity.kind_folded) = (kind.to_owned(), folded);
        self.index_changes.put(
            IndexSide::Live,
            first_row(entity.id),
            entity.words(owner.id, IndexSide::Live),
        );
        for (row, text) in facts {
            self.index_changes.put(IndexSide::Live, row, entity.fact_words(owner.id, IndexSide::Live, &text));
        }
        Ok(())
    }

    /// The current observations, with their rows.
    pub(super) fn live_facts(&self, entity: i64) -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT id, text FROM facts WHERE id BETWEEN ?1 AND ?2 AND until = ?3")?;
        let rows = statement
            .query_map((first_row(entity), last_row(entity), NO_END), |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    /// The row for the next observation of an entity.
    pub(super) fn next_row(&self, entity: &Entity) -> WorkResult<i64> {
        let last: Option<i64> = self
            .conn
            .prepare_cached("SELECT max(id) FROM facts WHERE id BETWEEN ?1 AND ?2")?
            .query_row((first_row(entity.id), last_row(entity.id)), |row| row.get(0))?;
        let next = last.unwrap_or_else(|| first_row(entity.id)) + 1;
        if next > last_row(entity.id) { Err(too_many_facts(&entity.name).into()) } else { Ok(next) }
    }
}

pub(super) fn too_many_facts(name: &str) -> StoreError {
    StoreError::Full(Limit::Facts(name.to_owned()))
}
