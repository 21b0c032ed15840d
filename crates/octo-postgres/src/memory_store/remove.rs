//! Ending and erasing of memories.

use super::change_statement::{ChangeStatement, KindCounts, WordList, row_words};
use super::entity_batch::EntityBatch;
use super::memory_transaction::MemoryTransaction;
use super::name_key::name_key;
use octo_ports::StoreResult;
use octo_ports::memory::backend::{NO_END, quota_size, select_by_name};
use octo_ports::memory::{ForgetTarget, Link, NameMatch, Removal};
use octo_search::{first_row, last_row};
use std::collections::BTreeSet;

/// An entity that may be removed.
struct StoredEntity {
    id: i64,
    name: String,
    folded: String,
    kind: String,
    until: i64,
}

impl StoredEntity {
    const fn is_live(&self) -> bool {
        self.until == NO_END
    }
}

/// Removes entities with all their data.
pub(super) async fn delete(
    mut transaction: MemoryTransaction,
    names: &[String],
    removal: Removal,
) -> StoreResult<Vec<String>> {
    let mut known = load(&mut transaction, names).await?;
    let (mut gone, mut removed) = (Vec::new(), Vec::new());
    for name in names {
        let key = name_key(name);
        let live = known.iter().filter(|entity| entity.is_live() && entity.folded == key);
        let found = select_by_name(live, name, NameMatch::Alike, |entity| &entity.name, |_| true);
        let known_as = found.map_or_else(|| name.clone(), |entity| entity.name.clone());
        let is_meant = |entity: &mut StoredEntity| {
            entity.folded == key
                && entity.name == known_as
                && (removal == Removal::Erased || entity.is_live())
        };
        let taken: Vec<StoredEntity> = known.extract_if(.., is_meant).collect();
        if !taken.is_empty() {
            gone.push(known_as);
            removed.extend(taken);
        }
    }
    if !removed.is_empty() {
        match removal {
            Removal::Ended => end_entities(transaction, removed).await?,
            Removal::Erased => erase_entities(transaction, removed).await?,
        }
    }
    Ok(gone)
}

/// All entities that have or had one of the names.
async fn load(transaction: &mut MemoryTransaction, names: &[String]) -> StoreResult<Vec<StoredEntity>> {
    let keys: BTreeSet<String> = names.iter().map(|name| name_key(name)).collect();
    let keys: Vec<String> = keys.into_iter().collect();
    let sql = "SELECT id, name, folded, kind, until FROM memory_entities
               WHERE owner = $1 AND folded = ANY ($2) ORDER BY id";
    let entity = |row: &tokio_postgres::Row| {
        let (id, name, folded) = (row.get(0), row.get(1), row.get(2));
        StoredEntity { id, name, folded, kind: row.get(3), until: row.get(4) }
    };
    Ok(transaction.query(sql, &[&keys]).await?.iter().map(entity).collect())
}

/// A stored observation.
struct StoredFact {
    row: i64,
    text: String,
    until: i64,
}

/// All observations of entities, including past ones.
async fn all_facts(
    transaction: &mut MemoryTransaction,
    entities: &[StoredEntity],
) -> StoreResult<Vec<StoredFact>> {
    let (first, last) = row_ranges(entities);
    let sql = "SELECT f.id, f.text, f.until FROM unnest($2::int8[], $3::int8[]) AS r (first, last)
               JOIN memory_facts f ON f.owner = $1 AND f.id BETWEEN r.first AND r.last";
    let rows = transaction.query(sql, &[&first, &last]).await?;
    let fact =
        |row: &tokio_postgres::Row| StoredFact { row: row.get(0), text: row.get(1), until: row.get(2) };
    Ok(rows.iter().map(fact).collect())
}

fn row_ranges(entities: &[StoredEntity]) -> (Vec<i64>, Vec<i64>) {
    entities.iter().map(|entity| (first_row(entity.id), last_row(entity.id))).unzip()
}

async fn end_entities(mut transaction: MemoryTransaction, entities: Vec<StoredEntity>) -> StoreResult<()> {
    let facts = all_facts(&mut transaction, &entities).await?;
    let (mut words, mut kinds) = (WordList::default(), KindCounts::default());
    for fact in facts.iter().filter(|fact| fact.until == NO_END) {
        words.add(fact.row, row_words(&[&fact.text]));
    }
    for entity in &entities {
        words.add(first_row(entity.id), row_words(&[&entity.name, &entity.kind]));
        kinds.add(&entity.kind, -1);
    }
    let mut changes = ChangeStatement::new(&transaction.owner);
    changes.end_words(words);
    changes.count_kinds(kinds);
    let (first, last) = row_ranges(&entities);
    let (first, last) = (changes.value(first), changes.value(last));
    changes.part(format!(
        "UPDATE memory_facts f SET until = $3 FROM unnest({first}::int8[], {last}::int8[]) AS r (first, last)
         WHERE f.owner = $1 AND f.until = {NO_END} AND f.id BETWEEN r.first AND r.last"
    ));
    let ids = changes.value(entities.iter().map(|entity| entity.id).collect::<Vec<_>>());
    changes.end_rows("memory_links", &format!("(source = ANY ({ids}) OR target = ANY ({ids}))"));
    changes.end_rows("memory_entities", &format!("id = ANY ({ids})"));
    transaction.commit(changes, 0).await
}

async fn erase_entities(mut transaction: MemoryTransaction, entities: Vec<StoredEntity>) -> StoreResult<()> {
    let facts = all_facts(&mut transaction, &entities).await?;
    let (mut live, mut past, mut kinds) = (WordList::default(), WordList::default(), KindCounts::default());
    let mut freed = 0;
    for fact in &facts {
        let side = if fact.until == NO_END { &mut live } else { &mut past };
        side.add(fact.row, row_words(&[&fact.text]));
        freed += quota_size(&fact.text);
    }
    for entity in &entities {
        let side = if entity.is_live() { &mut live } else { &mut past };
        side.add(first_row(entity.id), row_words(&[&entity.name, &entity.kind]));
        if entity.is_live() {
            kinds.add(&entity.kind, -1);
        }
        freed += quota_size(&entity.name);
    }
    let mut changes = ChangeStatement::new(&transaction.owner);
    changes.remove_words(live, false);
    changes.remove_words(past, true);
    changes.count_kinds(kinds);
    let (first, last) = row_ranges(&entities);
    let (first, last) = (changes.value(first), changes.value(last));
    changes.part(format!(
        "DELETE FROM memory_facts f USING unnest({first}::int8[], {last}::int8[]) AS r (first, last)
         WHERE f.owner = $1 AND f.id BETWEEN r.first AND r.last"
    ));
    let ids = changes.value(entities.iter().map(|entity| entity.id).collect::<Vec<_>>());
    changes.part_removing_links(format!(
        "DELETE FROM memory_links WHERE owner = $1 AND (source = ANY ({ids}) OR target = ANY ({ids}))"
    ));
    changes.part(format!("DELETE FROM memory_former_kinds WHERE owner = $1 AND entity = ANY ({ids})"));
    changes.part(format!("DELETE FROM memory_entities WHERE owner = $1 AND id = ANY ({ids})"));
    transaction.commit(changes, -freed).await
}

/// Removes one observation or one relation; returns the number of removed rows.
pub(super) async fn forget(
    transaction: MemoryTransaction,
    what: &ForgetTarget,
    removal: Removal,
) -> StoreResult<u64> {
    match what {
        ForgetTarget::Fact { entity, text } => forget_fact(transaction, entity, text, removal).await,
        ForgetTarget::Link(link) => forget_link(transaction, link, removal).await,
    }
}

async fn forget_fact(
    mut transaction: MemoryTransaction,
    name: &str,
    text: &str,
    removal: Removal,
) -> StoreResult<u64> {
    let Some(entity) = find(&mut transaction, &[name]).await?.pop().flatten() else { return Ok(0) };
    let sql = "SELECT id, until FROM memory_facts WHERE owner = $1 AND id BETWEEN $2 AND $3 AND text = $4";
    let rows = transaction.query(sql, &[&first_row(entity), &last_row(entity), &text]).await?;
    let facts = rows.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1) == NO_END));
    let facts: Vec<(i64, bool)> =
        facts.filter(|(_, is_live)| removal == Removal::Erased || *is_live).collect();
    if facts.is_empty() {
        return Ok(0);
    }
    let (mut live, mut past) = (WordList::default(), WordList::default());
    for (row, is_live) in &facts {
        let side = if *is_live { &mut live } else { &mut past };
        side.add(*row, row_words(&[text]));
    }
    let live_count = facts.iter().filter(|(_, is_live)| *is_live).count() as i64;
    let count = facts.len() as u64;
    let mut changes = ChangeStatement::new(&transaction.owner);
    let rows = changes.value(facts.into_iter().map(|(row, _)| row).collect::<Vec<_>>());
    let mut grown = 0;
    match removal {
        Removal::Ended => {
            changes.end_words(live);
            changes.end_rows("memory_facts", &format!("id = ANY ({rows})"));
        }
        Removal::Erased => {
            changes.remove_words(live, false);
            changes.remove_words(past, true);
            changes.part(format!("DELETE FROM memory_facts WHERE owner = $1 AND id = ANY ({rows})"));
            grown = -quota_size(text) * count.cast_signed();
        }
    }
    let (id, live_count) = (changes.value(entity), changes.value(live_count));
    changes.part(format!(
        "UPDATE memory_entities SET facts = facts - {live_count}, updated = $3 WHERE owner = $1 AND id = {id}"
    ));
    transaction.commit(changes, grown).await?;
    Ok(count)
}

/// The current entities of these names.
async fn find(transaction: &mut MemoryTransaction, names: &[&str]) -> StoreResult<Vec<Option<i64>>> {
    let batch = EntityBatch::load(transaction, names.iter().copied(), Vec::new()).await?;
    let id = |name: &&str| {
        let index = batch.find(name, NameMatch::Alike, None);
        index.map(|index| batch.get(index).map(|entity| entity.id)).transpose()
    };
    names.iter().map(id).collect()
}

async fn forget_link(mut transaction: MemoryTransaction, link: &Link, removal: Removal) -> StoreResult<u64> {
    let ends = find(&mut transaction, &[&link.source, &link.target]).await?;
    let [Some(source), Some(target)] = ends[..] else { return Ok(0) };
    let sql = "SELECT id, until FROM memory_links
               WHERE owner = $1 AND source = $2 AND relation = $3 AND target = $4";
    let rows = transaction.query(sql, &[&source, &link.relation, &target]).await?;
    let is_meant = |row: &&tokio_postgres::Row| removal == Removal::Erased || row.get::<_, i64>(1) == NO_END;
    let ids: Vec<i64> = rows.iter().filter(is_meant).map(|row| row.get(0)).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    let (count, mut changes) = (ids.len() as u64, ChangeStatement::new(&transaction.owner));
    let ids = changes.value(ids);
    match removal {
        Removal::Ended => changes.end_rows("memory_links", &format!("id = ANY ({ids})")),
        Removal::Erased => changes
            .part_removing_links(format!("DELETE FROM memory_links WHERE owner = $1 AND id = ANY ({ids})")),
    }
    transaction.commit(changes, 0).await?;
    Ok(count)
}
