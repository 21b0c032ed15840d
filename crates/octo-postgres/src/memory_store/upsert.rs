//! Adding entities, observations and relations.

use super::change_statement::ChangeStatement;
use super::entity_batch::EntityBatch;
use super::memory_transaction::{MemoryOwner, MemoryTransaction};
use octo_ports::StoreResult;
use octo_ports::memory::backend::{ITEM_OVERHEAD_BYTES, NO_END};
use octo_ports::memory::{Link, LinkResult, NameMatch, NewEntity, UpsertResult};
use std::collections::HashSet;

pub(super) async fn upsert(
    mut transaction: MemoryTransaction,
    entities: &[NewEntity],
    names: NameMatch,
) -> StoreResult<Vec<UpsertResult>> {
    let facts = entities.iter().flat_map(|entity| &entity.facts).map(|fact| fact.text.as_str()).collect();
    let all_names = entities.iter().map(|entity| entity.name.as_str());
    let mut batch = EntityBatch::load(&mut transaction, all_names, facts).await?;
    let owner = &mut transaction.owner;
    let results: Vec<UpsertResult> = entities
        .iter()
        .map(|entity| upsert_one(&mut batch, owner, entity, names))
        .collect::<StoreResult<_>>()?;
    let (grown, mut changes) = (batch.grown, ChangeStatement::new(owner));
    batch.write(owner, &mut changes);
    transaction.commit(changes, grown).await?;
    Ok(results)
}

fn upsert_one(
    batch: &mut EntityBatch,
    owner: &mut MemoryOwner,
    new: &NewEntity,
    names: NameMatch,
) -> StoreResult<UpsertResult> {
    let kind = new.kind.as_deref();
    let found = batch.find(&new.name, names, kind);
    let index = found.unwrap_or_else(|| batch.create(owner, &new.name, kind));
    let kind_was = match kind {
        Some(kind) => batch.set_kind(index, kind)?,
        None => None,
    };
    let added = batch.add_facts(index, &new.facts)?;
    Ok(UpsertResult { name: batch.get(index)?.name.clone(), created: found.is_none(), added, kind_was })
}

#[derive(Default)]
struct LinkRows {
    sources: Vec<i64>,
    relations: Vec<String>,
    targets: Vec<i64>,
}

/// Creates missing entities, so that no relation dangles.
pub(super) async fn link(
    mut transaction: MemoryTransaction,
    links: &[Link],
    names: NameMatch,
) -> StoreResult<LinkResult> {
    let all_names = links.iter().flat_map(|link| [link.source.as_str(), link.target.as_str()]);
    let mut batch = EntityBatch::load(&mut transaction, all_names, Vec::new()).await?;
    let (mut done, mut wanted) = (LinkResult::default(), LinkRows::default());
    for link in links {
        let source = link_end(&mut batch, &mut transaction.owner, &link.source, names, &mut done)?;
        let target = link_end(&mut batch, &mut transaction.owner, &link.target, names, &mut done)?;
        wanted.sources.push(source);
        wanted.relations.push(link.relation.clone());
        wanted.targets.push(target);
    }
    let wanted = without_known(&mut transaction, wanted).await?;
    done.added = wanted.sources.len() as u64;
    done.skipped = links.len() as u64 - done.added;
    let grown = batch.grown + ITEM_OVERHEAD_BYTES * done.added.cast_signed();
    let mut changes = ChangeStatement::new(&transaction.owner);
    batch.write(&transaction.owner, &mut changes);
    insert_links(wanted, &transaction.owner, &mut changes);
    transaction.commit(changes, grown).await?;
    Ok(done)
}

fn link_end(
    batch: &mut EntityBatch,
    owner: &mut MemoryOwner,
    name: &str,
    names: NameMatch,
    done: &mut LinkResult,
) -> StoreResult<i64> {
    let index = batch.find(name, names, None).unwrap_or_else(|| {
        done.created.push(name.to_owned());
        batch.create(owner, name, None)
    });
    Ok(batch.get(index)?.id)
}

/// Those that do not exist yet, each one once.
async fn without_known(transaction: &mut MemoryTransaction, wanted: LinkRows) -> StoreResult<LinkRows> {
    let sql = format!(
        "SELECT w.n FROM unnest($2::int8[], $3::text[], $4::int8[]) WITH ORDINALITY AS w (source, relation, target, n)
         WHERE EXISTS (
            SELECT FROM memory_links l WHERE l.owner = $1 AND l.source = w.source AND l.relation = w.relation
            AND l.target = w.target AND l.until = {NO_END}
         )"
    );
    let LinkRows { sources, relations, targets } = wanted;
    let rows = transaction.query(&sql, &[&sources, &relations, &targets]).await?;
    let known: HashSet<i64> = rows.iter().map(|row| row.get(0)).collect();
    let (mut seen, mut new) = (HashSet::new(), LinkRows::default());
    for (n, ((source, relation), target)) in (1..).zip(sources.into_iter().zip(relations).zip(targets)) {
        if !known.contains(&n) && seen.insert((source, relation.clone(), target)) {
            new.sources.push(source);
            new.relations.push(relation);
            new.targets.push(target);
        }
    }
    Ok(new)
}

fn insert_links(links: LinkRows, owner: &MemoryOwner, changes: &mut ChangeStatement) {
    if links.sources.is_empty() {
        return;
    }
    let (sources, relations) = (changes.value(links.sources), changes.value(links.relations));
    let (targets, call) = (changes.value(links.targets), changes.value(owner.call.clone()));
    changes.part(format!(
        "INSERT INTO memory_links (owner, tenant, source, relation, target, call, since, until)
         SELECT $1, $2, source, relation, target, {call}, $3, {NO_END}
         FROM unnest({sources}::int8[], {relations}::text[], {targets}::int8[])
            WITH ORDINALITY AS l (source, relation, target, n)
         ORDER BY n"
    ));
}
