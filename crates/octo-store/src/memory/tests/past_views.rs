//! Queries about the past.

use super::*;
use octo_ports::memory::{ForgetTarget, Removal};

/// Type, observations and number of relations.
type Believed<'a> = (&'a str, &'a [&'a str], usize);

fn then(at: Timestamp, asked: MemoryQuery) -> MemoryQuery {
    MemoryQuery { at: Some(at), ..asked }
}

#[tokio::test]
async fn the_past_is_what_was_known_then() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let before = moment(&memories).await;
    put(&memories, "Heron", "bird", &["Stands in water"]).await;
    relate(&memories, "Heron", "eats", "Fish").await;
    let first = moment(&memories).await;
    put(&memories, "Heron", "project", &["Has a deadline in May"]).await;
    let second = moment(&memories).await;
    let old = ForgetTarget::Fact { entity: "Heron".into(), text: "Stands in water".into() };
    assert_eq!(memories.forget(ada(), old, Removal::Ended).await.unwrap(), 1);
    let tie = ForgetTarget::Link(link("Heron", "eats", "Fish"));
    assert_eq!(memories.forget(ada(), tie.clone(), Removal::Ended).await.unwrap(), 1);
    assert_eq!(memories.forget(ada(), tie, Removal::Ended).await.unwrap(), 0);
    let third = moment(&memories).await;
    memories.delete(ada(), vec!["heron".to_owned()], Removal::Ended).await.unwrap();
    let fourth = moment(&memories).await;
    put(&memories, "Heron", "ship", &["Sails"]).await;

    let rows: [(Timestamp, Option<Believed<'_>>); 5] = [
        (before, None),
        (first, Some(("bird", &["Stands in water"], 1))),
        (second, Some(("project", &["Stands in water", "Has a deadline in May"], 1))),
        (third, Some(("project", &["Has a deadline in May"], 0))),
        (fourth, None),
    ];
    for (at, expected) in rows {
        let answer = ask(&memories, then(at, named("Heron"))).await;
        let found =
            answer.entities.first().map(|known| (known.kind.as_str(), facts(known), known.links.len()));
        assert_eq!(found, expected.map(|(kind, facts, links)| (kind, facts.to_vec(), links)), "{at}");
        let by_words = ask(&memories, then(at, words("water deadline"))).await;
        assert_eq!(by_words.total, u64::from(expected.is_some()), "{at}");
        for kind in ["bird", "project"] {
            let of_kind = |asked| MemoryQuery { kind: Some(kind.to_owned()), ..then(at, asked) };
            let there = u64::from(expected.is_some_and(|(then, _, _)| then == kind));
            assert_eq!(ask(&memories, of_kind(question())).await.total, there, "{at} {kind}");
            assert_eq!(ask(&memories, of_kind(words("heron"))).await.total, there, "{at} {kind}");
        }
    }
    assert_eq!(facts(&known(&memories, "Heron").await.unwrap()), ["Sails"]);
    assert!(find(&memories, "water").await.is_empty());
}

#[tokio::test]
async fn the_past_of_a_memory_without_one_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    put(&memories, "Ada", "person", &["Likes tea"]).await;
    for at in [Timestamp::UNIX_EPOCH, Timestamp::MIN] {
        assert_eq!(ask(&memories, then(at, words("tea"))).await.total, 0);
        assert_eq!(ask(&memories, then(at, question())).await.total, 0);
    }
    assert_eq!(ask(&memories, then(Timestamp::MAX, words("tea"))).await.total, 1);
}
