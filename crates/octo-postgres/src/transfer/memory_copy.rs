//! Memories. NUL, which texts cannot have here, is replaced as when a text is stored.

use super::state_export::{SMALL_ROWS, StateExport};
use crate::memory_store::change_statement::row_words;
use crate::memory_store::name_key::{name_key, storable};
use crate::transaction::Transaction;
use crate::value::Value;
use octo_model::Principal;
use octo_ports::memory::backend::NO_END;
use octo_ports::transfer::{
    EntityRow, FactRow, FormerKindRow, KindRow, LinkRow, MemoryOwnerRow, TransferError, TransferRecord,
};
use octo_ports::{Port, StoreError, StoreResult};
use octo_search::first_row;
use std::collections::BTreeSet;
use tokio_postgres::Row;

/// Observations have up to sixteen kilobytes.
const FACTS_PER_PAGE: u32 = 250;

pub(super) async fn export(export: &mut StateExport<'_>) -> Result<(), TransferError> {
    export.set_port(Port::Memory);
    let owners = "SELECT id, tenant, subject, bytes FROM memory_owners ORDER BY id";
    for row in export.transaction.query(owners, &[]).await? {
        let owner = Principal { tenant: row.get(1), subject: row.get(2) };
        let owner = MemoryOwnerRow { owner, bytes: row.get(3) };
        export.to.send(TransferRecord::MemoryOwner(owner)).await?;
        export_entities(export, row.get(0)).await?;
        export_facts(export, row.get(0)).await?;
    }
    Ok(())
}

async fn export_entities(export: &mut StateExport<'_>, owner: i64) -> Result<(), TransferError> {
    let kinds = "SELECT kind, live FROM memory_kinds WHERE owner = $1 ORDER BY kind_folded";
    let kind = |row: &Row| Ok([TransferRecord::Kind(KindRow { kind: row.get(0), live: row.get(1) })]);
    export.send(kinds, &[&owner], SMALL_ROWS, kind).await?;
    let entities = "SELECT id, name, kind, facts, last_row, updated, since, until FROM memory_entities
                    WHERE owner = $1 ORDER BY id";
    let entity = |row: &Row| {
        Ok([TransferRecord::Entity(EntityRow {
            id: row.get(0),
            name: row.get(1),
            kind: row.get(2),
            facts: row.get(3),
            last_row: row.get(4),
            updated: row.get(5),
            since: row.get(6),
            until: row.get(7),
        })])
    };
    export.send(entities, &[&owner], SMALL_ROWS, entity).await?;
    let former =
        "SELECT entity, kind, until FROM memory_former_kinds WHERE owner = $1 ORDER BY entity, until, id";
    let former_kind = |row: &Row| {
        let former = FormerKindRow { entity: row.get(0), kind: row.get(1), until: row.get(2) };
        Ok([TransferRecord::FormerKind(former)])
    };
    export.send(former, &[&owner], SMALL_ROWS, former_kind).await
}

async fn export_facts(export: &mut StateExport<'_>, owner: i64) -> Result<(), TransferError> {
    let facts = "SELECT id, text, origin, source, call, since, until FROM memory_facts
                 WHERE owner = $1 ORDER BY id";
    let fact = |row: &Row| {
        Ok([TransferRecord::Fact(FactRow {
            row: row.get(0),
            text: row.get(1),
            origin: row.get(2),
            source: row.get(3),
            call: row.get(4),
            since: row.get(5),
            until: row.get(6),
        })])
    };
    export.send(facts, &[&owner], FACTS_PER_PAGE, fact).await?;
    let links = "SELECT source, relation, target, call, since, until FROM memory_links
                 WHERE owner = $1 ORDER BY id";
    let link = |row: &Row| {
        Ok([TransferRecord::Link(LinkRow {
            source: row.get(0),
            relation: row.get(1),
            target: row.get(2),
            call: row.get(3),
            since: row.get(4),
            until: row.get(5),
        })])
    };
    export.send(links, &[&owner], SMALL_ROWS, link).await
}

/// The memory whose rows arrive.
struct CurrentMemory {
    id: i64,
    tenant: String,
    last_entity: i64,
    last_change: i64,
}

impl CurrentMemory {
    fn note_times(&mut self, times: impl IntoIterator<Item = i64>) {
        let last = times.into_iter().filter(|time| *time != NO_END).max();
        self.last_change = self.last_change.max(last.unwrap_or_default());
    }
}

#[derive(Default)]
pub(super) struct MemoryImport(Option<CurrentMemory>);

impl MemoryImport {
    fn current(&mut self) -> StoreResult<&mut CurrentMemory> {
        self.0.as_mut().ok_or_else(|| StoreError::corrupt(Port::Memory, "a row of no memory"))
    }

    pub(super) async fn start(
        &mut self,
        transaction: &mut Transaction,
        row: &MemoryOwnerRow,
    ) -> StoreResult<()> {
        self.end(transaction).await?;
        let insert = "INSERT INTO memory_owners (tenant, subject, bytes, last_change) VALUES ($1, $2, $3, 0)
                      RETURNING id";
        let owner = &row.owner;
        let created = transaction.query_opt(insert, &[&owner.tenant, &owner.subject, &row.bytes]).await?;
        let id = created.map_or(0, |row| row.get(0));
        let tenant = owner.tenant.clone();
        self.0 = Some(CurrentMemory { id, tenant, last_entity: 0, last_change: 0 });
        Ok(())
    }

    /// After the last row of a memory. A later change has a later time, and a new entity another number.
    pub(super) async fn end(&mut self, transaction: &mut Transaction) -> StoreResult<()> {
        let Some(memory) = self.0.take() else { return Ok(()) };
        let update = "UPDATE memory_owners SET last_entity = $2, last_change = $3 WHERE id = $1";
        let values: [&dyn Value; 3] = [&memory.id, &memory.last_entity, &memory.last_change];
        transaction.execute(update, &values).await.map(drop)
    }

    pub(super) async fn kinds(
        &mut self,
        transaction: &mut Transaction,
        rows: Vec<KindRow>,
    ) -> StoreResult<()> {
        let memory = self.current()?;
        let live: Vec<i64> = rows.iter().map(|row| row.live).collect();
        let kinds: Vec<String> = rows.into_iter().map(|row| storable(row.kind)).collect();
        let keys: Vec<String> = kinds.iter().map(|kind| name_key(kind)).collect();
        // Types that differ in NUL alone become one.
        let insert = "INSERT INTO memory_kinds (owner, tenant, kind, kind_folded, live)
            SELECT $1, $2, min(kind), kind_folded, sum(live)::int8
            FROM unnest($3::text[], $4::text[], $5::int8[]) AS item (kind, kind_folded, live)
            GROUP BY kind_folded
            ON CONFLICT (owner, kind_folded) DO UPDATE SET live = memory_kinds.live + excluded.live";
        let values: [&dyn Value; 5] = [&memory.id, &memory.tenant, &kinds, &keys, &live];
        transaction.execute(insert, &values).await.map(drop)
    }

    pub(super) async fn entities(
        &mut self,
        transaction: &mut Transaction,
        rows: Vec<EntityRow>,
    ) -> StoreResult<()> {
        let memory = self.current()?;
        memory.note_times(rows.iter().flat_map(|row| [row.updated, row.since, row.until]));
        memory.last_entity = rows.iter().map(|row| row.id).fold(memory.last_entity, i64::max);
        let numbers = |column: fn(&EntityRow) -> i64| -> Vec<i64> { rows.iter().map(column).collect() };
        let names: Vec<String> = rows.iter().map(|row| storable(row.name.clone())).collect();
        let kinds: Vec<String> = rows.iter().map(|row| storable(row.kind.clone())).collect();
        let folded: Vec<String> = names.iter().map(|name| name_key(name)).collect();
        let kinds_folded: Vec<String> = kinds.iter().map(|kind| name_key(kind)).collect();
        let insert = "INSERT INTO memory_entities
                (owner, tenant, id, facts, last_row, updated, since, until, name, folded, kind, kind_folded)
            SELECT $1, $2, * FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[],
                $9::text[], $10::text[], $11::text[], $12::text[])";
        let values: [&dyn Value; 12] = [
            &memory.id,
            &memory.tenant,
            &numbers(|row| row.id),
            &numbers(|row| row.facts),
            &numbers(|row| row.last_row),
            &numbers(|row| row.updated),
            &numbers(|row| row.since),
            &numbers(|row| row.until),
            &names,
            &folded,
            &kinds,
            &kinds_folded,
        ];
        transaction.execute(insert, &values).await?;
        let words = rows
            .iter()
            .zip(names.iter().zip(&kinds))
            .map(|(row, (name, kind))| (row.until != NO_END, first_row(row.id), row_words(&[name, kind])));
        add_words(transaction, memory, words).await
    }

    pub(super) async fn former_kinds(
        &mut self,
        transaction: &mut Transaction,
        rows: Vec<FormerKindRow>,
    ) -> StoreResult<()> {
        let memory = self.current()?;
        memory.note_times(rows.iter().map(|row| row.until));
        let entities: Vec<i64> = rows.iter().map(|row| row.entity).collect();
        let until: Vec<i64> = rows.iter().map(|row| row.until).collect();
        let kinds: Vec<String> = rows.into_iter().map(|row| storable(row.kind)).collect();
        let keys: Vec<String> = kinds.iter().map(|kind| name_key(kind)).collect();
        let insert = "INSERT INTO memory_former_kinds (owner, tenant, entity, until, kind, kind_folded)
            SELECT $1, $2, entity, until, kind, kind_folded
            FROM unnest($3::int8[], $4::int8[], $5::text[], $6::text[])
                WITH ORDINALITY AS item (entity, until, kind, kind_folded, number)
            ORDER BY number";
        let values: [&dyn Value; 6] = [&memory.id, &memory.tenant, &entities, &until, &kinds, &keys];
        transaction.execute(insert, &values).await.map(drop)
    }

    pub(super) async fn facts(
        &mut self,
        transaction: &mut Transaction,
        rows: Vec<FactRow>,
    ) -> StoreResult<()> {
        let memory = self.current()?;
        memory.note_times(rows.iter().flat_map(|row| [row.since, row.until]));
        let numbers = |column: fn(&FactRow) -> i64| -> Vec<i64> { rows.iter().map(column).collect() };
        let texts: Vec<String> = rows.iter().map(|row| storable(row.text.clone())).collect();
        let sources: Vec<Option<String>> = rows.iter().map(|row| row.source.clone().map(storable)).collect();
        let calls: Vec<&str> = rows.iter().map(|row| row.call.as_str()).collect();
        let insert = "INSERT INTO memory_facts (owner, tenant, id, origin, since, until, text, source, call)
            SELECT $1, $2, * FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::text[], $8::text[],
                $9::text[])";
        let values: [&dyn Value; 9] = [
            &memory.id,
            &memory.tenant,
            &numbers(|row| row.row),
            &numbers(|row| row.origin),
            &numbers(|row| row.since),
            &numbers(|row| row.until),
            &texts,
            &sources,
            &calls,
        ];
        transaction.execute(insert, &values).await?;
        let words =
            rows.iter().zip(&texts).map(|(row, text)| (row.until != NO_END, row.row, row_words(&[text])));
        add_words(transaction, memory, words).await
    }

    pub(super) async fn links(
        &mut self,
        transaction: &mut Transaction,
        rows: Vec<LinkRow>,
    ) -> StoreResult<()> {
        let memory = self.current()?;
        memory.note_times(rows.iter().flat_map(|row| [row.since, row.until]));
        let numbers = |column: fn(&LinkRow) -> i64| -> Vec<i64> { rows.iter().map(column).collect() };
        let relations: Vec<String> = rows.iter().map(|row| storable(row.relation.clone())).collect();
        let calls: Vec<&str> = rows.iter().map(|row| row.call.as_str()).collect();
        let insert = "INSERT INTO memory_links (owner, tenant, source, target, since, until, relation, call)
            SELECT $1, $2, source, target, since, until, relation, call
            FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::text[], $8::text[])
                WITH ORDINALITY AS item (source, target, since, until, relation, call, number)
            ORDER BY number";
        let values: [&dyn Value; 8] = [
            &memory.id,
            &memory.tenant,
            &numbers(|row| row.source),
            &numbers(|row| row.target),
            &numbers(|row| row.since),
            &numbers(|row| row.until),
            &relations,
            &calls,
        ];
        transaction.execute(insert, &values).await.map(drop)
    }
}

/// Words of rows, each with whether it is past. Written in the order of the index.
async fn add_words(
    transaction: &mut Transaction,
    memory: &CurrentMemory,
    rows: impl Iterator<Item = (bool, i64, BTreeSet<String>)>,
) -> StoreResult<()> {
    let words = rows.flat_map(|(past, row, words)| words.into_iter().map(move |word| (past, word, row)));
    let words: BTreeSet<(bool, String, i64)> = words.collect();
    let past: Vec<bool> = words.iter().map(|(past, ..)| *past).collect();
    let ids: Vec<i64> = words.iter().map(|(.., row)| *row).collect();
    let words: Vec<String> = words.into_iter().map(|(_, word, _)| word).collect();
    let insert = "INSERT INTO memory_words (owner, tenant, past, word, row_id)
        SELECT $1, $2, * FROM unnest($3::bool[], $4::text[], $5::int8[])";
    let values: [&dyn Value; 5] = [&memory.id, &memory.tenant, &past, &words, &ids];
    transaction.execute(insert, &values).await.map(drop)
}
