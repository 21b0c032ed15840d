//! Cost of changes and searches in a memory of ten thousand observations, beside SQLite.

use super::rng::Rng;
use super::*;
use crate::postgres_schema::PostgresSchema;
use octo_store::{Options, sqlite};
use std::time::{Duration, Instant};

const ENTITIES: usize = 2_000;
const FACTS_PER_ENTITY: usize = 5;

/// One of fifty thousand words, with frequencies as in a natural language.
fn new_word(rng: &mut Rng) -> String {
    let syllables =
        ["ba", "co", "du", "fe", "gi", "ha", "jo", "ku", "le", "mi", "no", "pu", "ra", "so", "tu", "ve"];
    let (mut word, mut left) = (String::new(), 50_000f64.powf(rng.unit()) as usize + 300);
    while left > 0 {
        word.push_str(syllables[left % 16]);
        left /= 16;
    }
    word
}

fn new_words(rng: &mut Rng, count: usize) -> String {
    (0..count).map(|_| new_word(rng)).collect::<Vec<_>>().join(" ")
}

fn new_entity(rng: &mut Rng, at: usize, facts: usize) -> NewEntity {
    let kind = ["person", "project", "task", "concept", "place"][at % 5];
    let name = format!("{} {at}", new_words(rng, 2));
    let facts: Vec<String> = (0..facts).map(|_| new_words(rng, 10)).collect();
    entity(&name, kind, &facts.iter().map(String::as_str).collect::<Vec<_>>())
}

struct Times(Vec<Duration>);

impl Times {
    fn at(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3
    }

    async fn of<F: Future>(count: usize, mut work: impl FnMut(usize) -> F) -> Self {
        let mut times = Vec::new();
        for at in 0..count {
            let (work, begun) = (work(at), Instant::now());
            work.await;
            times.push(begun.elapsed());
        }
        Self(times)
    }

    fn print(&self, what: &str) {
        println!(
            "  {what}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
            self.at(0.5),
            self.at(0.99),
            self.at(1.0)
        );
    }
}

async fn measure(memory: &Memory, backend: &str) {
    let (begun, mut rng) = (Instant::now(), Rng(1));
    let all: Vec<NewEntity> = (0..ENTITIES).map(|at| new_entity(&mut rng, at, FACTS_PER_ENTITY)).collect();
    for part in all.chunks(100) {
        memory.upsert(ada(), part.to_vec(), NameMatch::Exact).await.unwrap();
    }
    println!(
        "{backend}: {} observations in {:.2} s",
        ENTITIES * FACTS_PER_ENTITY,
        begun.elapsed().as_secs_f64()
    );
    let mut rng = Rng(99);
    let new: Vec<NewEntity> = (0..200).map(|at| new_entity(&mut rng, ENTITIES + at, 1)).collect();
    let one = |at: usize| memory.upsert(ada(), vec![new[at].clone()], NameMatch::Alike);
    Times::of(200, one).await.print("upsert of 1 observation");
    let batches: Vec<NewEntity> = (0..20).map(|at| new_entity(&mut rng, 2 * ENTITIES + at, 100)).collect();
    let hundred = |at: usize| memory.upsert(ada(), vec![batches[at].clone()], NameMatch::Alike);
    Times::of(20, hundred).await.print("upsert of 100 observations");
    for (what, count) in [("search for 1 word", 1), ("search for 2 words", 2), ("search for 4 words", 4)] {
        let texts: Vec<String> = (0..200).map(|_| new_words(&mut rng, count)).collect();
        Times::of(200, |at| ask(memory, words(&texts[at]))).await.print(what);
    }
    let of_kind = |at: usize| MemoryQuery { kind: Some("task".to_owned()), ..words(&all[at].facts[0].text) };
    Times::of(100, |at| ask(memory, of_kind(at))).await.print("search for 10 words of one type");
    let prefixes: Vec<String> = (0..100).map(|_| new_word(&mut rng)[..3].to_owned()).collect();
    Times::of(100, |at| ask(memory, words(&prefixes[at]))).await.print("search for a prefix");
    Times::of(200, |at| ask(memory, named(&all[at].name))).await.print("query by name");
    Times::of(50, |at| {
        memory.list(ada(), octo_ports::memory::PageRequest { limit: 50, offset: 30 * at as u64, kind: None })
    })
    .await
    .print("list of 50");
    let found = ask(memory, words(&all[17].name)).await;
    assert_eq!(found.entities[0].name, all[17].name);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn ten_thousand_observations() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    measure(&sqlite(dir.path(), Options::default()).unwrap().memory, "SQLite").await;
    measure(&schema.stores().memory, "PostgreSQL").await;
}
