//! Cost of changes and queries in a small and in a large memory, alternating.

use super::*;
use std::time::{Duration, Instant};

/// Number of entities in the large memory, if not a million.
const SIZE: &str = "OCTO_MEMORY_SCALE";
const SMALL: usize = 10_000;

/// Deterministic random numbers.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of fifty thousand words, with frequencies as in a natural language.
    fn word(&mut self) -> String {
        let rank = 50_000f64.powf(self.next()) as usize;
        let syllables =
            ["ba", "co", "du", "fe", "gi", "ha", "jo", "ku", "le", "mi", "no", "pu", "ra", "so", "tu", "ve"];
        let mut word = String::new();
        let mut left = rank + 300;
        while left > 0 {
            word.push_str(syllables[left % 16]);
            left /= 16;
        }
        word
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn entity(&mut self, at: usize) -> NewEntity {
        let kind = ["person", "project", "task", "concept", "place"][at % 5];
        let name = format!("{} {at}", self.words(2));
        entity(&name, kind, &[&self.words(10), &self.words(8)])
    }
}

struct Times(Vec<Duration>);

impl Times {
    fn at(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64() * 1e3 / self.0.len() as f64
    }

    fn say(&self, what: &str) {
        let (half, high) = (self.at(0.5), self.at(0.99));
        println!(
            "{what}: mean {:.3} ms, p50 {half:.3} ms, p99 {high:.3} ms, most {:.3} ms",
            self.mean(),
            self.at(1.0)
        );
    }
}

async fn timed<F: Future>(times: &mut Times, work: F) {
    let begun = Instant::now();
    work.await;
    times.0.push(begun.elapsed());
}

async fn fill(memories: &SqliteMemoryStore, dice: &mut Rng, from: usize, to: usize) {
    let begun = Instant::now();
    let mut at = from;
    while at < to {
        let part: Vec<NewEntity> = (at..(at + 500).min(to)).map(|at| dice.entity(at)).collect();
        at += part.len();
        memories.upsert(ada(), part, NameMatch::Exact).await.unwrap();
    }
    println!("filled up to {to} in {:.1} s", begun.elapsed().as_secs_f64());
}

/// One memory and its measured costs.
struct Subject {
    memories: SqliteMemoryStore,
    size: usize,
    dice: Rng,
    old: Rng,
    there: Vec<NewEntity>,
    upserts: Times,
    texts: Times,
    lookups: Times,
    _dir: tempfile::TempDir,
}

impl Subject {
    async fn new(size: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let memories = open(dir.path());
        fill(&memories, &mut Rng(1), 0, size).await;
        // The same seed as when the memory was filled: existing names.
        let mut again = Rng(1);
        let there = (0..size.min(1_000)).map(|at| again.entity(at)).collect();
        let [upserts, texts, lookups] = std::array::from_fn(|_| Times(Vec::new()));
        Self { memories, size, dice: Rng(99), old: Rng(7), there, upserts, texts, lookups, _dir: dir }
    }

    /// New entities and additions to old ones, alternating.
    async fn upsert(&mut self, at: usize) {
        let new = if at.is_multiple_of(2) {
            self.dice.entity(self.size + at)
        } else {
            let known = &self.there[(self.old.next() * self.there.len() as f64) as usize];
            entity(&known.name, "", &[&self.dice.words(8)])
        };
        let change = self.memories.upsert(ada(), vec![new], NameMatch::Alike);
        timed(&mut self.upserts, async { change.await.unwrap() }).await;
    }

    async fn query(&mut self, at: usize) {
        let entity = &self.there[at];
        let text = match at % 4 {
            0 => entity.name.clone(),
            1 => self.dice.words(2),
            2 => self.dice.words(4),
            _ => entity.facts[0].text.split(' ').take(4).collect::<Vec<_>>().join(" "),
        };
        timed(&mut self.texts, ask(&self.memories, words(&text))).await;
        timed(&mut self.lookups, ask(&self.memories, named(&entity.name))).await;
    }

    fn say(&self) {
        println!("{} entities:", self.size);
        self.upserts.say("  upsert");
        self.texts.say("  query by words");
        self.lookups.say("  query by name");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and a gigabyte: a million entities"]
async fn a_million_entities() {
    let large: usize = std::env::var(SIZE).ok().and_then(|size| size.parse().ok()).unwrap_or(1_000_000);
    let (mut small, mut large) = (Subject::new(SMALL).await, Subject::new(large).await);
    for at in 0..2_000 {
        small.upsert(at).await;
        large.upsert(at).await;
    }
    for at in 0..1_000 {
        small.query(at).await;
        large.query(at).await;
    }
    small.say();
    large.say();
    let ratio = large.upserts.mean() / small.upserts.mean();
    println!("an upsert costs {ratio:.2} times as much");
    let found = ask(&large.memories, words(&large.there[17].name)).await;
    assert_eq!(found.entities[0].name, large.there[17].name);
    assert!(ratio <= 2.0);
    for times in [&large.upserts, &large.texts, &large.lookups] {
        assert!(times.at(0.99) < 20.0);
    }
}
