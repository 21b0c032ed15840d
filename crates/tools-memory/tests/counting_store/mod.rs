//! A store in memory that counts what is read of it as a whole.

use octo_ports::{StoreResult, Stores};
use octo_toolkit::memory::{
    Dump, EndedFact, EntityPage, ForgetTarget, Link, LinkResult, MemoryCaller, MemoryQuery, MemoryStore,
    NameMatch, NewEntity, PageRequest, QueryResult, Removal, UpsertResult,
};
use octo_toolkit::{BoxFuture, Memory};
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct CountingStore {
    store: Memory,
    pub dumped_facts: AtomicUsize,
    /// Facts of the largest part.
    pub largest_dump: AtomicUsize,
}

impl CountingStore {
    pub fn new() -> Self {
        let store = Stores::in_memory().memory;
        Self { store, dumped_facts: AtomicUsize::new(0), largest_dump: AtomicUsize::new(0) }
    }
}

impl MemoryStore for CountingStore {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>> {
        self.store.upsert(asker, entities, names)
    }

    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>> {
        self.store.link(asker, links, names)
    }

    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>> {
        self.store.query(asker, question)
    }

    fn history(
        &self,
        asker: MemoryCaller,
        name: String,
        limit: usize,
    ) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>> {
        self.store.history(asker, name, limit)
    }

    fn list(&self, asker: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>> {
        self.store.list(asker, page)
    }

    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>> {
        self.store.delete(asker, names, removal)
    }

    fn forget(
        &self,
        asker: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>> {
        self.store.forget(asker, what, removal)
    }

    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> BoxFuture<'_, StoreResult<Dump>> {
        Box::pin(async move {
            let dump = self.store.dump(asker, after, limit).await?;
            let facts = dump.entities.iter().map(|entity| entity.facts.len()).sum();
            self.dumped_facts.fetch_add(facts, Ordering::Relaxed);
            self.largest_dump.fetch_max(facts, Ordering::Relaxed);
            Ok(dump)
        })
    }
}
