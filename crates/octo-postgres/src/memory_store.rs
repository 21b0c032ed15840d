//! Memories on PostgreSQL. A change locks the row of the memory's owner; queries lock nothing. A search reads a table of
//! words, and ranks as the other backends do.

pub(crate) mod change_statement;
mod entity_batch;
mod entity_search;
mod memory_query;
mod memory_transaction;
mod memory_view;
pub(crate) mod name_key;
mod owner_locks;
mod remove;
mod upsert;

use crate::database::Database;
use memory_transaction::MemoryTransaction;
use memory_view::MemoryView;
use name_key::storable;
use octo_model::BoxFuture;
use octo_ports::memory::backend::NOW;
use octo_ports::memory::{
    Dump, EndedFact, EntityPage, Fact, ForgetTarget, Link, LinkResult, MemoryCaller, MemoryQuery,
    MemoryStore, NameMatch, NewEntity, PageRequest, QueryResult, Removal, UpsertResult,
};
use octo_ports::{Port, StoreError, StoreResult};
use owner_locks::OwnerLocks;
use std::sync::Arc;

pub(crate) struct PostgresMemoryStore {
    database: Arc<Database>,
    quota_bytes: u64,
    locks: OwnerLocks,
}

impl PostgresMemoryStore {
    pub(crate) fn new(database: Arc<Database>, quota_bytes: u64) -> Self {
        Self { database, quota_bytes, locks: OwnerLocks::default() }
    }

    async fn begin(&self, asker: &MemoryCaller) -> StoreResult<MemoryTransaction> {
        check_caller(asker)?;
        let lock = self.locks.lock(&asker.principal).await?;
        MemoryTransaction::begin(&self.database, asker, self.quota_bytes, lock).await
    }

    fn view<'a>(
        &'a self,
        asker: &'a MemoryCaller,
        at: i64,
        stated_only: bool,
    ) -> StoreResult<MemoryView<'a>> {
        check_caller(asker)?;
        Ok(MemoryView { database: &self.database, principal: &asker.principal, at, stated_only })
    }
}

/// A caller is never mistaken for another one, so that NUL is not replaced.
fn check_caller(asker: &MemoryCaller) -> StoreResult<()> {
    let principal = &asker.principal;
    match principal.tenant.contains('\0') || principal.subject.contains('\0') {
        true => Err(StoreError::unavailable(Port::Memory, "the name of the caller contains NUL")),
        false => Ok(()),
    }
}

fn storable_entity(entity: NewEntity) -> NewEntity {
    let fact = |fact: Fact| Fact {
        text: storable(fact.text),
        source: fact.source.map(storable),
        origin: fact.origin,
    };
    NewEntity {
        name: storable(entity.name),
        kind: entity.kind.map(storable),
        facts: entity.facts.into_iter().map(fact).collect(),
    }
}

fn storable_link(link: Link) -> Link {
    Link { source: storable(link.source), relation: storable(link.relation), target: storable(link.target) }
}

impl MemoryStore for PostgresMemoryStore {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>> {
        Box::pin(async move {
            let entities: Vec<NewEntity> = entities.into_iter().map(storable_entity).collect();
            upsert::upsert(self.begin(&asker).await?, &entities, names).await
        })
    }

    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>> {
        Box::pin(async move {
            let links: Vec<Link> = links.into_iter().map(storable_link).collect();
            upsert::link(self.begin(&asker).await?, &links, names).await
        })
    }

    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>> {
        Box::pin(async move {
            let question = MemoryQuery {
                text: question.text.map(storable),
                name: question.name.map(storable),
                kind: question.kind.map(storable),
                ..question
            };
            let at = question.at.map_or(NOW, |at| at.as_microsecond());
            memory_query::query(&self.view(&asker, at, question.stated_only)?, &question).await
        })
    }

    fn history(
        &self,
        asker: MemoryCaller,
        name: String,
        limit: usize,
    ) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>> {
        Box::pin(async move { memory_query::history(&self.view(&asker, NOW, false)?, &name, limit).await })
    }

    fn list(&self, asker: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>> {
        Box::pin(async move {
            let page = PageRequest { kind: page.kind.map(storable), ..page };
            memory_query::list(&self.view(&asker, NOW, false)?, &page).await
        })
    }

    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>> {
        Box::pin(async move {
            let names: Vec<String> = names.into_iter().map(storable).collect();
            remove::delete(self.begin(&asker).await?, &names, removal).await
        })
    }

    fn forget(
        &self,
        asker: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(async move {
            let what = match what {
                ForgetTarget::Fact { entity, text } => {
                    ForgetTarget::Fact { entity: storable(entity), text: storable(text) }
                }
                ForgetTarget::Link(link) => ForgetTarget::Link(storable_link(link)),
            };
            remove::forget(self.begin(&asker).await?, &what, removal).await
        })
    }

    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> BoxFuture<'_, StoreResult<Dump>> {
        Box::pin(async move { memory_query::dump(&self.view(&asker, NOW, false)?, after, limit).await })
    }
}
