//! Memories as a whole. Helpers: who asks, and short ways to say what.

mod erased;
mod kill;
mod many;
mod quality;
mod remembering;
mod scale;
mod searching;
mod then;

use super::{Memories, MemoryOptions};
use jiff::Timestamp;
use octo_grants::memory::{
    Answer, Asker, Fact, Known, Link, Names, NewEntity, Origin, Question, Remembers, Upserted,
};
use octo_model::{CallId, Caller, ToolError};
use std::path::Path;

fn open(dir: &Path) -> Memories {
    Memories::new(dir, MemoryOptions::default())
}

fn asker(subject: &str) -> Asker {
    Asker::new(&Caller::named(subject), CallId::fresh())
}

fn ada() -> Asker {
    asker("ada")
}

fn stated(text: &str) -> Fact {
    Fact { text: text.to_owned(), origin: Origin::Stated, source: None }
}

fn entity(name: &str, kind: &str, facts: &[&str]) -> NewEntity {
    let kind = (!kind.is_empty()).then(|| kind.to_owned());
    NewEntity { name: name.to_owned(), kind, facts: facts.iter().map(|fact| stated(fact)).collect() }
}

fn link(source: &str, relation: &str, target: &str) -> Link {
    Link { source: source.to_owned(), relation: relation.to_owned(), target: target.to_owned() }
}

fn question() -> Question {
    Question { links: true, limit: 20, facts: 30, ..Question::default() }
}

fn words(text: &str) -> Question {
    Question { text: Some(text.to_owned()), ..question() }
}

fn named(name: &str) -> Question {
    Question { name: Some(name.to_owned()), ..question() }
}

async fn put(memories: &Memories, name: &str, kind: &str, facts: &[&str]) -> Upserted {
    let mut done = try_put(memories, name, kind, facts).await.unwrap();
    done.remove(0)
}

async fn try_put(
    memories: &Memories,
    name: &str,
    kind: &str,
    facts: &[&str],
) -> Result<Vec<Upserted>, ToolError> {
    memories.upsert(ada(), vec![entity(name, kind, facts)], Names::Alike).await
}

async fn relate(memories: &Memories, source: &str, relation: &str, target: &str) -> u64 {
    memories.link(ada(), vec![link(source, relation, target)], Names::Alike).await.unwrap().added
}

async fn ask(memories: &Memories, question: Question) -> Answer {
    memories.ask(ada(), question).await.unwrap()
}

/// Names of what is found by words, best first.
async fn find(memories: &Memories, text: &str) -> Vec<String> {
    names(&ask(memories, words(text)).await)
}

fn names(answer: &Answer) -> Vec<String> {
    answer.entities.iter().map(|known| known.name.clone()).collect()
}

fn facts(known: &Known) -> Vec<&str> {
    known.facts.iter().map(|fact| fact.text.as_str()).collect()
}

/// What is known of one entity.
async fn known(memories: &Memories, name: &str) -> Option<Known> {
    ask(memories, named(name)).await.entities.pop()
}

/// A moment after everything that was answered, and before everything that is asked for later.
async fn moment(memories: &Memories) -> Timestamp {
    put(memories, "clock", "thing", &[]).await;
    known(memories, "clock").await.unwrap().updated
}
