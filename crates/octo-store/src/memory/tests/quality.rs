//! Search quality: 52 queries over more than 200 entities, all written for this test. The test prints the
//! table for the documentation.

use super::*;
use octo_ports::memory::MAX_ITEMS;

const CORPUS: &str = include_str!("corpus.txt");
const QUESTIONS: &str = include_str!("questions.txt");

/// Hand-written entities, and others on the same topics that are never the answer.
fn corpus() -> Vec<NewEntity> {
    let written = CORPUS.lines().map(|line| {
        let mut parts = line.split('|');
        let (name, kind) = (parts.next().unwrap(), parts.next().unwrap());
        let facts: Vec<&str> = parts.next().unwrap().split(';').collect();
        entity(name, kind, &facts)
    });
    written.chain(people()).chain(things()).collect()
}

fn people() -> impl Iterator<Item = NewEntity> {
    let first = ["Anna", "Bela", "Carlos", "Dora", "Emil", "Freya", "Goran", "Heidi", "Igor", "Jana"];
    let last = ["Novak", "Weber", "Costa", "Larsen", "Moreau", "Rossi", "Kowalski", "Nagy"];
    let work = [
        "Tests the payment forms",
        "Answers customers by telephone",
        "Drives the delivery van",
        "Reviews contracts for the legal department",
        "Watches the servers at night",
        "Writes the release notes",
        "Plans the holidays of the team",
    ];
    let likes = ["tea", "football", "chess", "old cards", "trains", "databases", "the colour green"];
    (0..80).map(move |at| {
        let name = format!("{} {}", first[at % 10], last[at / 10]);
        entity(&name, "person", &[work[at % 7], &format!("Likes {}", likes[at % 5 + at % 3])])
    })
}

fn things() -> impl Iterator<Item = NewEntity> {
    let rows = [
        ("Ticket", "ticket", "A customer asks about an order", "Closed after a refund of shipping costs"),
        ("Server", "machine", "Stands in the data centre", "Was upgraded and restarted at night"),
        ("Release", "release", "Small corrections of the app", "Deployed without problems"),
        ("Note", "note", "Talked about budget and deadline", "Nothing was decided"),
    ];
    (0..80).map(move |at| {
        let (name, kind, one, other) = rows[at % 4];
        entity(&format!("{name} {}", 100 + at), kind, &[one, other])
    })
}

#[derive(Default)]
struct Score {
    first: usize,
    five: usize,
    reciprocal: f64,
}

impl Score {
    fn add(&mut self, found: &[String], wanted: &str) {
        let Some(rank) = found.iter().position(|name| name == wanted) else { return };
        self.first += usize::from(rank == 0);
        self.five += usize::from(rank < 5);
        self.reciprocal += 1.0 / (rank + 1) as f64;
    }

    fn line(&self, method: &str, count: usize) -> String {
        let percent = |hits: usize| 100.0 * hits as f64 / count as f64;
        let (first, five) = (percent(self.first), percent(self.five));
        format!("| {method} | {first:.1} | {five:.1} | {:.3} |", self.reciprocal / count as f64)
    }
}

/// The reference server's search: the whole query must occur literally.
fn whole_substring(corpus: &[NewEntity], question: &str) -> Vec<String> {
    let question = question.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&question);
    corpus
        .iter()
        .filter(|entity| has(&entity.name) || entity.facts.iter().any(|fact| has(&fact.text)))
        .map(|entity| entity.name.clone())
        .collect()
}

/// Most words of the query, literally, with equal weights.
fn most_words(corpus: &[NewEntity], question: &str) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        text.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned).collect()
    };
    let wanted: Vec<String> = split(question).into_iter().filter(|word| !word.is_empty()).collect();
    let mut scored: Vec<(usize, String)> = Vec::new();
    for entity in corpus {
        let texts = [entity.name.as_str(), entity.kind.as_deref().unwrap_or_default()];
        let all: Vec<String> = texts
            .into_iter()
            .chain(entity.facts.iter().map(|fact| fact.text.as_str()))
            .flat_map(split)
            .collect();
        let hits = wanted.iter().filter(|word| all.contains(word)).count();
        if hits > 0 {
            scored.push((hits, entity.name.clone()));
        }
    }
    scored.sort_by(|(one, _), (other, _)| other.cmp(one));
    scored.into_iter().map(|(_, name)| name).collect()
}

#[tokio::test]
async fn questions_find_what_they_are_about() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let corpus = corpus();
    assert!((200..MAX_ITEMS).contains(&corpus.len()));
    memories.upsert(ada(), corpus.clone(), NameMatch::Exact).await.unwrap();
    let (mut ours, mut whole, mut most) = (Score::default(), Score::default(), Score::default());
    let mut count = 0;
    for line in QUESTIONS.lines() {
        let (text, wanted) = line.split_once('|').unwrap();
        assert!(corpus.iter().any(|entity| entity.name == wanted), "{wanted}");
        let found = find(&memories, text).await;
        if found.first().is_none_or(|name| name != wanted) {
            println!("{text}: {wanted} is not the first of {:?}", found.iter().take(5).collect::<Vec<_>>());
        }
        ours.add(&found, wanted);
        whole.add(&whole_substring(&corpus, text), wanted);
        most.add(&most_words(&corpus, text), wanted);
        count += 1;
    }
    println!("\n{count} questions, {} entities", corpus.len());
    println!("| method | hit@1 | hit@5 | MRR |\n|---|---|---|---|");
    println!("{}", whole.line("whole question as a substring (reference server)", count));
    println!("{}", most.line("most words, no ranking", count));
    println!("{}", ours.line("memory_query", count));
    assert!(count >= 40);
    assert!(ours.first * 100 >= count * 80, "{} of {count} first", ours.first);
    assert!(ours.five * 100 >= count * 95, "{} of {count} among the first five", ours.five);
}
