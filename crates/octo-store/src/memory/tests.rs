//! Memories as a whole. Helpers: callers and short forms of requests.

mod concurrent_writers;
mod erasure;
mod killed_process;
mod past_views;
mod quality;
mod scale;
mod search_results;
mod upsert_and_link;

use super::SqliteMemoryStore;
use crate::Durability;
use jiff::Timestamp;
use octo_model::{CallId, Caller};
use octo_ports::StoreResult;
use octo_ports::memory::{
    Fact, FactOrigin, KnownEntity, Link, MemoryCaller, MemoryQuery, MemoryStore, NameMatch, NewEntity,
    QueryResult, UpsertResult,
};
use std::path::Path;

fn open(dir: &Path) -> SqliteMemoryStore {
    SqliteMemoryStore::new(dir, Durability::Flush, 4 << 30)
}

fn asker(subject: &str) -> MemoryCaller {
    MemoryCaller::new(&Caller::named(subject), CallId::fresh())
}

fn ada() -> MemoryCaller {
    asker("ada")
}

fn stated(text: &str) -> Fact {
    Fact { text: text.to_owned(), origin: FactOrigin::Stated, source: None }
}

fn entity(name: &str, kind: &str, facts: &[&str]) -> NewEntity {
    let kind = (!kind.is_empty()).then(|| kind.to_owned());
    NewEntity { name: name.to_owned(), kind, facts: facts.iter().map(|fact| stated(fact)).collect() }
}

fn link(source: &str, relation: &str, target: &str) -> Link {
    Link { source: source.to_owned(), relation: relation.to_owned(), target: target.to_owned() }
}

fn question() -> MemoryQuery {
    MemoryQuery { links: true, limit: 20, facts: 30, ..MemoryQuery::default() }
}

fn words(text: &str) -> MemoryQuery {
    MemoryQuery { text: Some(text.to_owned()), ..question() }
}

fn named(name: &str) -> MemoryQuery {
    MemoryQuery { name: Some(name.to_owned()), ..question() }
}

async fn put(memories: &SqliteMemoryStore, name: &str, kind: &str, facts: &[&str]) -> UpsertResult {
    let mut done = try_put(memories, name, kind, facts).await.unwrap();
    done.remove(0)
}

async fn try_put(
    memories: &SqliteMemoryStore,
    name: &str,
    kind: &str,
    facts: &[&str],
) -> StoreResult<Vec<UpsertResult>> {
    memories.upsert(ada(), vec![entity(name, kind, facts)], NameMatch::Alike).await
}

async fn relate(memories: &SqliteMemoryStore, source: &str, relation: &str, target: &str) -> u64 {
    memories.link(ada(), vec![link(source, relation, target)], NameMatch::Alike).await.unwrap().added
}

async fn ask(memories: &SqliteMemoryStore, question: MemoryQuery) -> QueryResult {
    memories.query(ada(), question).await.unwrap()
}

/// Names found by a text search, best first.
async fn find(memories: &SqliteMemoryStore, text: &str) -> Vec<String> {
    names(&ask(memories, words(text)).await)
}

fn names(answer: &QueryResult) -> Vec<String> {
    answer.entities.iter().map(|known| known.name.clone()).collect()
}

fn facts(known: &KnownEntity) -> Vec<&str> {
    known.facts.iter().map(|fact| fact.text.as_str()).collect()
}

/// One entity by name.
async fn known(memories: &SqliteMemoryStore, name: &str) -> Option<KnownEntity> {
    ask(memories, named(name)).await.entities.pop()
}

/// A point in time after everything acknowledged and before later requests.
async fn moment(memories: &SqliteMemoryStore) -> Timestamp {
    put(memories, "clock", "thing", &[]).await;
    known(memories, "clock").await.unwrap().updated
}
