//! What a change of one memory is made of.

use super::index::{Changes, Side, row_words};
use super::tables::{ENDLESS, first_row, last_row};
use super::words::fold;
use octo_grants::memory::{Asker, MAX_FACTS, Names, Origin, PLAIN};
use octo_model::{Kind, ToolError};
use rusqlite::{Connection, OptionalExtension, Row};

/// What an item takes beside its text, roughly: counted, so that empty ones fill a memory, too.
pub(super) const OVERHEAD: i64 = 64;

/// What an item counts for in a memory's quota.
pub(super) fn size(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX).saturating_add(OVERHEAD)
}

/// Why a change was not made.
pub(super) enum Fault {
    Refused(ToolError),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        Self::Refused(error)
    }
}

impl From<Fault> for ToolError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) => error,
            Fault::Database(error) => ToolError::unavailable("The memory could not be used.")
                .hint("Try again; whoever runs the hub must look at its data directory if it goes on.")
                .detail(error),
        }
    }
}

/// One change: where it is written, when, and what the index shall be told.
pub(super) struct Pen<'a> {
    pub(super) conn: &'a Connection,
    pub(super) at: i64,
    pub(super) changes: Changes,
    /// Something was taken out of the file for good.
    pub(super) erased: bool,
}

/// Whose memory is changed, and how much more it may hold.
pub(super) struct Owner {
    pub(super) id: i64,
    pub(super) call: String,
    bytes: i64,
    quota: i64,
}

/// An entity as it is now.
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
    pub(super) fn words(&self, owner: i64, side: Side) -> String {
        row_words(owner, side, &self.kind_folded, &[&self.name, &self.kind])
    }

    /// The words of one of its observations.
    pub(super) fn fact_words(&self, owner: i64, side: Side, text: &str) -> String {
        row_words(owner, side, &self.kind_folded, &[text])
    }
}

pub(super) fn owner_id(conn: &Connection, asker: &Asker) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM owners WHERE tenant = ?1 AND subject = ?2")?
        .query_row((&asker.principal.tenant, &asker.principal.subject), |row| row.get(0))
        .optional()
}

impl<'a> Pen<'a> {
    pub(super) fn new(conn: &'a Connection, at: i64) -> Self {
        Self { conn, at, changes: Changes::default(), erased: false }
    }

    /// Runs a statement that is used again and again.
    pub(super) fn run(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.conn.prepare_cached(sql)?.execute(values)
    }

    pub(super) fn owner(&self, asker: &Asker, quota: u64) -> rusqlite::Result<Owner> {
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
                self.run(
                    "INSERT INTO owners (tenant, subject) VALUES (?1, ?2)",
                    (&asker.principal.tenant, &asker.principal.subject),
                )?;
                (self.conn.last_insert_rowid(), 0)
            }
        };
        let quota = i64::try_from(quota).unwrap_or(i64::MAX);
        Ok(Owner { id, call: asker.call.to_string(), bytes, quota })
    }

    /// Notes how much the memory holds at the end of a change. What makes it smaller is never refused.
    pub(super) fn close(&self, owner: &Owner, grown: i64) -> Result<(), Fault> {
        if grown == 0 {
            return Ok(());
        }
        let bytes = owner.bytes.saturating_add(grown).max(0);
        if grown > 0 && bytes > owner.quota {
            let full = format!("The memory is full: it may hold {} bytes.", owner.quota);
            let error = ToolError::new(Kind::TooLarge, full);
            return Err(error.hint("Delete what is no longer needed, with erase, and try again.").into());
        }
        self.run("UPDATE owners SET bytes = ?2 WHERE id = ?1", (owner.id, bytes))?;
        Ok(())
    }

    /// The entity that a name means now. One that only looks alike must be the only one, and of the same type where
    /// one is given.
    pub(super) fn find(
        &self,
        owner: &Owner,
        name: &str,
        names: Names,
        kind: Option<&str>,
    ) -> rusqlite::Result<Option<Entity>> {
        let sql = format!(
            "SELECT {} FROM entities WHERE owner = ?1 AND folded = ?2 AND until = ?3",
            Entity::COLUMNS
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_map((owner.id, fold(name), ENDLESS), Entity::read)?;
        let mut alike: Vec<Entity> = rows.collect::<rusqlite::Result<_>>()?;
        if let Some(at) = alike.iter().position(|entity| entity.name == name) {
            return Ok(Some(alike.swap_remove(at)));
        }
        let lone = if alike.len() == 1 { alike.pop() } else { None };
        let same_kind = |entity: &Entity| kind.is_none_or(|kind| fold(kind) == entity.kind_folded);
        Ok(lone.filter(|entity| names == Names::Alike && same_kind(entity)))
    }

    pub(super) fn create(
        &mut self,
        owner: &Owner,
        name: &str,
        kind: Option<&str>,
    ) -> rusqlite::Result<Entity> {
        let kind = kind.unwrap_or(PLAIN);
        let kind_folded = fold(kind);
        self.run(
            "INSERT INTO entities (owner, name, folded, kind, kind_folded, facts, updated, since, until)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7)",
            (owner.id, name, fold(name), kind, &kind_folded, self.at, ENDLESS),
        )?;
        let id = self.conn.last_insert_rowid();
        let entity = Entity { id, name: name.to_owned(), kind: kind.to_owned(), kind_folded };
        self.count(owner.id, &entity.kind, &entity.kind_folded, 1)?;
        self.changes.put(Side::Live, first_row(id), entity.words(owner.id, Side::Live));
        Ok(entity)
    }

    /// Counts entities of a type.
    pub(super) fn count(&self, owner: i64, kind: &str, folded: &str, more: i64) -> rusqlite::Result<()> {
        self.run(
            "INSERT INTO kinds (owner, kind_folded, kind, live) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET live = live + ?4",
            (owner, folded, kind, more),
        )?;
        Ok(())
    }

    /// Gives an entity another type; the rows of the index carry it.
    pub(super) fn retype(&mut self, owner: &Owner, entity: &mut Entity, kind: &str) -> rusqlite::Result<()> {
        let folded = fold(kind);
        let facts = self.live_facts(entity.id)?;
        self.changes.take(Side::Live, first_row(entity.id), entity.words(owner.id, Side::Live));
        for (row, text) in &facts {
            self.changes.take(Side::Live, *row, entity.fact_words(owner.id, Side::Live, text));
        }
        self.run(
            "INSERT INTO former_kinds (entity, kind, until) VALUES (?1, ?2, ?3)",
            (entity.id, &entity.kind, self.at),
        )?;
        self.run(
            "UPDATE entities SET kind = ?2, kind_folded = ?3 WHERE id = ?1",
            (entity.id, kind, &folded),
        )?;
        self.count(owner.id, &entity.kind, &entity.kind_folded, -1)?;
        self.count(owner.id, kind, &folded, 1)?;
        (entity.kind, entity.kind_folded) = (kind.to_owned(), folded);
        self.changes.put(Side::Live, first_row(entity.id), entity.words(owner.id, Side::Live));
        for (row, text) in facts {
            self.changes.put(Side::Live, row, entity.fact_words(owner.id, Side::Live, &text));
        }
        Ok(())
    }

    /// The observations that are true now, with their rows.
    pub(super) fn live_facts(&self, entity: i64) -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT id, text FROM facts WHERE id BETWEEN ?1 AND ?2 AND until = ?3")?;
        let rows = statement.query_map((first_row(entity), last_row(entity), ENDLESS), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        rows.collect()
    }

    /// The row for the next observation of an entity.
    pub(super) fn next_row(&self, entity: &Entity) -> Result<i64, Fault> {
        let last: Option<i64> = self
            .conn
            .prepare_cached("SELECT max(id) FROM facts WHERE id BETWEEN ?1 AND ?2")?
            .query_row((first_row(entity.id), last_row(entity.id)), |row| row.get(0))?;
        let next = last.unwrap_or_else(|| first_row(entity.id)) + 1;
        if next > last_row(entity.id) { Err(crowded(&entity.name).into()) } else { Ok(next) }
    }
}

pub(super) fn crowded(name: &str) -> ToolError {
    ToolError::new(
        Kind::TooLarge,
        format!("`{name}` has {MAX_FACTS} observations, which is all that one entity may have."),
    )
    .hint("Put further ones on entities of their own and relate them, or forget some.")
}

pub(super) const fn number(origin: Origin) -> i64 {
    match origin {
        Origin::Stated => 0,
        Origin::Sourced => 1,
        Origin::Imported => 2,
    }
}

pub(super) const fn origin(number: i64) -> Origin {
    match number {
        0 => Origin::Stated,
        1 => Origin::Sourced,
        _ => Origin::Imported,
    }
}
