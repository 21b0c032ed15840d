//! What one change and one question cost in small and in large memories.

use super::*;
use std::time::{Duration, Instant};

/// How many entities the large memory has, when not a million.
const SIZE: &str = "OCTO_MEMORY_SCALE";
const SMALL: usize = 10_000;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A word of fifty thousand, of which some are as frequent as those of a language.
    fn word(&mut self) -> String {
        let rank = 50_000f64.powf(self.roll()) as usize;
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

async fn fill(memories: &Memories, dice: &mut Dice, from: usize, to: usize) {
    let begun = Instant::now();
    let mut at = from;
    while at < to {
        let part: Vec<NewEntity> = (at..(at + 500).min(to)).map(|at| dice.entity(at)).collect();
        at += part.len();
        memories.upsert(ada(), part, Names::Exact).await.unwrap();
    }
    println!("filled up to {to} in {:.1} s", begun.elapsed().as_secs_f64());
}

/// New entities and additions to old ones, one after the other.
async fn upserts(memories: &Memories, dice: &mut Dice, size: usize) -> Times {
    let mut times = Times(Vec::new());
    let mut old = Dice(7);
    for at in 0..2_000 {
        let new = if at % 2 == 0 {
            dice.entity(size + at)
        } else {
            let known = memories.list(
                ada(),
                octo_grants::memory::Page { limit: 1, offset: (old.roll() * 1_000.0) as u64, kind: None },
            );
            let name = known.await.unwrap().entities[0].name.clone();
            entity(&name, "", &[&dice.words(8)])
        };
        timed(&mut times, async { memories.upsert(ada(), vec![new], Names::Alike).await.unwrap() }).await;
    }
    times
}

async fn queries(memories: &Memories, size: usize) -> (Times, Times) {
    let (mut texts, mut lookups) = (Times(Vec::new()), Times(Vec::new()));
    // The same dice as when the memory was filled: names that are there.
    let (mut again, mut dice) = (Dice(1), Dice(99));
    let there: Vec<NewEntity> = (0..size.min(1_000)).map(|at| again.entity(at)).collect();
    for (at, entity) in there.iter().enumerate() {
        let text = match at % 4 {
            0 => entity.name.clone(),
            1 => dice.words(2),
            2 => dice.words(4),
            _ => entity.facts[0].text.split(' ').take(4).collect::<Vec<_>>().join(" "),
        };
        timed(&mut texts, ask(memories, words(&text))).await;
        timed(&mut lookups, ask(memories, named(&entity.name))).await;
    }
    let found = ask(memories, words(&there[17].name)).await;
    assert_eq!(found.entities[0].name, there[17].name);
    (texts, lookups)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes many minutes and gigabytes: a million entities"]
async fn a_million_entities() {
    let large: usize = std::env::var(SIZE).ok().and_then(|size| size.parse().ok()).unwrap_or(1_000_000);
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let mut dice = Dice(1);
    let mut costs = Vec::new();
    let mut filled = 0;
    for size in [SMALL, large] {
        fill(&memories, &mut dice, filled, size).await;
        let written = upserts(&memories, &mut Dice(size as u64), size).await;
        filled = size;
        let (texts, lookups) = queries(&memories, size).await;
        println!("{size} entities:");
        written.say("  upsert");
        texts.say("  query by words");
        lookups.say("  query by name");
        costs.push((written.mean(), written.at(0.99), texts.at(0.99), lookups.at(0.99)));
    }
    let (small, large) = (costs[0], costs[1]);
    println!("an upsert costs {:.2} times as much", large.0 / small.0);
    let bytes: u64 =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    println!("{} MB on disk", bytes >> 20);
    assert!(large.0 <= 2.0 * small.0);
    assert!(large.1 < 20.0 && large.2 < 20.0 && large.3 < 20.0);
}
