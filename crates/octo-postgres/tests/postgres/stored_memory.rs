//! Memories on a real server.

mod concurrent_writers;
mod rng;
mod same_replies;
mod scale;
mod tenants;
mod texts;

use octo_model::{CallId, Caller, Principal};
use octo_ports::memory::{
    Fact, FactOrigin, KnownEntity, Link, Memory, MemoryCaller, MemoryQuery, NameMatch, NewEntity, QueryResult,
};

fn ada() -> MemoryCaller {
    MemoryCaller::new(&Caller::named("ada"), CallId::fresh())
}

fn of_tenant(tenant: &str) -> MemoryCaller {
    MemoryCaller { principal: Principal::new(tenant, "ada"), call: CallId::fresh() }
}

fn entity(name: &str, kind: &str, facts: &[&str]) -> NewEntity {
    let fact = |text: &&str| Fact { text: (*text).to_owned(), origin: FactOrigin::Stated, source: None };
    NewEntity { name: name.to_owned(), kind: Some(kind.to_owned()), facts: facts.iter().map(fact).collect() }
}

fn link(source: &str, relation: &str, target: &str) -> Link {
    Link { source: source.to_owned(), relation: relation.to_owned(), target: target.to_owned() }
}

fn everything() -> MemoryQuery {
    MemoryQuery { links: true, limit: 20, facts: 30, ..MemoryQuery::default() }
}

fn words(text: &str) -> MemoryQuery {
    MemoryQuery { text: Some(text.to_owned()), ..everything() }
}

fn named(name: &str) -> MemoryQuery {
    MemoryQuery { name: Some(name.to_owned()), ..everything() }
}

async fn put(memory: &Memory, entities: Vec<NewEntity>) {
    memory.upsert(ada(), entities, NameMatch::Alike).await.unwrap();
}

async fn ask(memory: &Memory, question: MemoryQuery) -> QueryResult {
    memory.query(ada(), question).await.unwrap()
}

async fn known(memory: &Memory, name: &str) -> Option<KnownEntity> {
    ask(memory, named(name)).await.entities.pop()
}

fn facts(known: &KnownEntity) -> Vec<&str> {
    known.facts.iter().map(|fact| fact.text.as_str()).collect()
}
