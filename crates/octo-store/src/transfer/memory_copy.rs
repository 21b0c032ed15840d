//! Memories. Another backend counts entities within a memory, here they have one number for all.

use super::copy_error::CopyResult;
use octo_model::Principal;
use octo_ports::transfer::{
    EntityRow, FactRow, FormerKindRow, KindRow, LinkRow, MemoryOwnerRow, RecordSender, TransferRecord,
};
use octo_ports::{Port, StoreError};
use octo_search::{entity_of, first_row, normalize_name};
use rusqlite::{Connection, OptionalExtension};

pub(super) fn export(conn: &Connection, to: &RecordSender) -> CopyResult<()> {
    let mut statement = conn.prepare("SELECT id, tenant, subject, bytes FROM owners ORDER BY id")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let owner = Principal { tenant: row.get(1)?, subject: row.get(2)? };
        to.blocking_send(TransferRecord::MemoryOwner(MemoryOwnerRow { owner, bytes: row.get(3)? }))?;
        export_owner(conn, row.get(0)?, to)?;
    }
    Ok(())
}

fn export_owner(conn: &Connection, owner: i64, to: &RecordSender) -> CopyResult<()> {
    let rows_per_entity = first_row(1);
    let send = |sql: &str, record: &dyn Fn(&rusqlite::Row<'_>) -> rusqlite::Result<TransferRecord>| {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([owner])?;
        while let Some(row) = rows.next()? {
            to.blocking_send(record(row)?)?;
        }
        CopyResult::Ok(())
    };
    send("SELECT kind, live FROM kinds WHERE owner = ?1 ORDER BY kind_folded", &|row| {
        Ok(TransferRecord::Kind(KindRow { kind: row.get(0)?, live: row.get(1)? }))
    })?;
    let entities = format!(
        "SELECT id, name, kind, facts, coalesce(
            (SELECT max(f.id) FROM facts f WHERE f.id BETWEEN e.id * {rows_per_entity} AND (e.id + 1) * {rows_per_entity} - 1),
            id * {rows_per_entity}
         ), updated, since, until FROM entities e WHERE owner = ?1 ORDER BY id"
    );
    send(&entities, &|row| {
        Ok(TransferRecord::Entity(EntityRow {
            id: row.get(0)?,
            name: row.get(1)?,
            kind: row.get(2)?,
            facts: row.get(3)?,
            last_row: row.get(4)?,
            updated: row.get(5)?,
            since: row.get(6)?,
            until: row.get(7)?,
        }))
    })?;
    let former =
        "SELECT k.entity, k.kind, k.until FROM entities e CROSS JOIN former_kinds k ON k.entity = e.id
                  WHERE e.owner = ?1 ORDER BY k.entity, k.until, k.id";
    send(former, &|row| {
        let (entity, kind) = (row.get(0)?, row.get(1)?);
        Ok(TransferRecord::FormerKind(FormerKindRow { entity, kind, until: row.get(2)? }))
    })?;
    let facts = format!(
        "SELECT f.id, f.text, f.origin, f.source, f.call, f.since, f.until
         FROM (SELECT id FROM entities WHERE owner = ?1 ORDER BY id) e CROSS JOIN facts f
            ON f.id BETWEEN e.id * {rows_per_entity} AND (e.id + 1) * {rows_per_entity} - 1
         ORDER BY e.id, f.id"
    );
    send(&facts, &|row| {
        Ok(TransferRecord::Fact(FactRow {
            row: row.get(0)?,
            text: row.get(1)?,
            origin: row.get(2)?,
            source: row.get(3)?,
            call: row.get(4)?,
            since: row.get(5)?,
            until: row.get(6)?,
        }))
    })?;
    let links = "SELECT l.source, l.relation, l.target, l.call, l.since, l.until
                 FROM entities e CROSS JOIN links l ON l.source = e.id WHERE e.owner = ?1 ORDER BY l.id";
    send(links, &|row| {
        Ok(TransferRecord::Link(LinkRow {
            source: row.get(0)?,
            relation: row.get(1)?,
            target: row.get(2)?,
            call: row.get(3)?,
            since: row.get(4)?,
            until: row.get(5)?,
        }))
    })
}

/// Rows of memories as they arrive. An id that another memory has, and all later ones of its memory, get new numbers
/// after those in use, in the same order.
#[derive(Default)]
pub(super) struct MemoryImport {
    owner: Option<i64>,
    /// The first id with another number.
    first_moved: Option<i64>,
    offset: i64,
}

impl MemoryImport {
    fn owner(&self) -> CopyResult<i64> {
        self.owner.ok_or_else(|| StoreError::corrupt(Port::Memory, "a row of no memory").into())
    }

    fn number(&self, id: i64) -> i64 {
        if self.first_moved.is_some_and(|first| id >= first) { id + self.offset } else { id }
    }

    fn row_number(&self, row: i64) -> i64 {
        let entity = entity_of(row);
        first_row(self.number(entity)) + (row - first_row(entity))
    }

    pub(super) fn start(&mut self, conn: &Connection, row: &MemoryOwnerRow) -> CopyResult<()> {
        let insert = "INSERT INTO owners (tenant, subject, bytes) VALUES (?1, ?2, ?3)";
        conn.prepare_cached(insert)?.execute((&row.owner.tenant, &row.owner.subject, row.bytes))?;
        *self = Self { owner: Some(conn.last_insert_rowid()), first_moved: None, offset: 0 };
        Ok(())
    }

    pub(super) fn kind(&self, conn: &Connection, row: &KindRow) -> CopyResult<()> {
        let insert = "INSERT INTO kinds (owner, kind_folded, kind, live) VALUES (?1, ?2, ?3, ?4)";
        let values = (self.owner()?, normalize_name(&row.kind), &row.kind, row.live);
        conn.prepare_cached(insert)?.execute(values)?;
        Ok(())
    }

    pub(super) fn entity(&mut self, conn: &Connection, row: &EntityRow) -> CopyResult<()> {
        let is_used =
            conn.prepare_cached("SELECT 1 FROM entities WHERE id = ?1")?.exists([self.number(row.id)])?;
        if is_used {
            let last: Option<i64> =
                conn.query_row("SELECT max(id) FROM entities", (), |row| row.get(0)).optional()?.flatten();
            (self.first_moved, self.offset) = (Some(row.id), last.unwrap_or_default() + 1 - row.id);
        }
        let insert =
            "INSERT INTO entities (id, owner, name, folded, kind, kind_folded, facts, updated, since, until)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        conn.prepare_cached(insert)?.execute((
            self.number(row.id),
            self.owner()?,
            &row.name,
            normalize_name(&row.name),
            &row.kind,
            normalize_name(&row.kind),
            row.facts,
            row.updated,
            row.since,
            row.until,
        ))?;
        Ok(())
    }

    pub(super) fn former_kind(&self, conn: &Connection, row: &FormerKindRow) -> CopyResult<()> {
        let insert = "INSERT INTO former_kinds (entity, kind, until) VALUES (?1, ?2, ?3)";
        conn.prepare_cached(insert)?.execute((self.number(row.entity), &row.kind, row.until))?;
        Ok(())
    }

    pub(super) fn fact(&self, conn: &Connection, row: &FactRow) -> CopyResult<()> {
        let insert = "INSERT INTO facts (id, text, origin, source, call, since, until)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (id, source) = (self.row_number(row.row), &row.source);
        let values = (id, &row.text, row.origin, source, &row.call, row.since, row.until);
        conn.prepare_cached(insert)?.execute(values)?;
        Ok(())
    }

    pub(super) fn link(&self, conn: &Connection, row: &LinkRow) -> CopyResult<()> {
        let insert = "INSERT INTO links (source, relation, target, call, since, until)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (source, target) = (self.number(row.source), self.number(row.target));
        let values = (source, &row.relation, target, &row.call, row.since, row.until);
        conn.prepare_cached(insert)?.execute(values)?;
        Ok(())
    }
}
