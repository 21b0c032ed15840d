//! What is written exists once, for its owner only.

use super::*;
use octo_model::Principal;
use octo_ports::memory::{ForgetTarget, MAX_FACTS, PageRequest, Removal};
use octo_ports::{Limit, StoreError};

#[tokio::test]
async fn entities_are_made_added_to_and_never_forked() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let first = put(&memories, "Ada Lovelace", "person", &["Writes programs", "Writes programs"]).await;
    assert_eq!((first.created, first.added, first.kind_was), (true, 1, None));
    let rows = [
        ("Ada Lovelace", "person", "Writes programs", (false, 0)),
        ("ada  LOVELACE", "Person", "Likes tea", (false, 1)),
        ("Ada Lovelace", "", "Likes maths", (false, 1)),
    ];
    for (name, kind, fact, expected) in rows {
        let done = put(&memories, name, kind, &[fact]).await;
        assert_eq!((done.created, done.added, done.name.as_str()), (expected.0, expected.1, "Ada Lovelace"));
    }
    // An entity of another type whose name differs only in case is a different one.
    assert!(put(&memories, "ADA LOVELACE", "ship", &[]).await.created);
    let ada = known(&memories, "Ada Lovelace").await.unwrap();
    assert_eq!(facts(&ada), ["Writes programs", "Likes tea", "Likes maths"]);
    assert_eq!((ada.fact_count, ada.kind.as_str()), (3, "person"));
    assert!(ada.updated > ada.created);
    assert_eq!(ask(&memories, named("ada lovelace")).await.total, 2);
}

#[tokio::test]
async fn another_type_is_told_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    put(&memories, "Heron", "bird", &["Stands in water"]).await;
    let done = put(&memories, "Heron", "project", &["Has a deadline"]).await;
    assert_eq!(done.kind_was.as_deref(), Some("bird"));
    for (kind, count) in [("bird", 0), ("project", 1), ("PROJECT", 1)] {
        let of_kind = MemoryQuery { kind: Some(kind.to_owned()), ..words("water deadline") };
        assert_eq!(ask(&memories, of_kind).await.total, count, "{kind}");
        let all = MemoryQuery { kind: Some(kind.to_owned()), ..question() };
        assert_eq!(ask(&memories, all).await.total, count, "{kind}");
    }
}

#[tokio::test]
async fn relations_are_added_once_and_never_lead_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    put(&memories, "Ada", "person", &[]).await;
    let links = vec![
        link("ada", "knows", "Charles"),
        link("Ada", "knows", "Charles"),
        link("Ada", "likes", "Charles"),
    ];
    let done = memories.link(ada(), links, NameMatch::Alike).await.unwrap();
    assert_eq!((done.added, done.skipped, done.created), (2, 1, vec!["Charles".to_owned()]));
    let charles = known(&memories, "Charles").await.unwrap();
    assert_eq!(charles.kind, "entity");
    let ties: Vec<_> =
        charles.links.iter().map(|tie| (tie.relation.as_str(), tie.other.as_str(), tie.outward)).collect();
    assert_eq!(ties, [("knows", "Ada", false), ("likes", "Ada", false)]);
    memories.delete(ada(), vec!["Ada".to_owned()], Removal::Ended).await.unwrap();
    assert!(known(&memories, "Charles").await.unwrap().links.is_empty());
}

#[tokio::test]
async fn nobody_sees_searches_changes_or_guesses_what_is_another_s() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    put(&memories, "Secret plan", "plan", &["Buy the zeppelin"]).await;
    relate(&memories, "Secret plan", "needs", "Helium").await;
    let stranger = MemoryCaller { principal: Principal::new("other", "ada"), ..ada() };
    for other in [asker("bob"), stranger, asker("")] {
        for asked in [words("zeppelin"), words("zep"), named("Secret plan"), named("secret"), question()] {
            let answer = memories.query(other.clone(), asked).await.unwrap();
            assert!(answer.entities.is_empty() && answer.nearest.is_empty() && answer.total == 0);
        }
        let page = PageRequest { limit: 9, ..PageRequest::default() };
        let listed = memories.list(other.clone(), page).await.unwrap();
        assert!(listed.entities.is_empty() && listed.kinds.is_empty());
        assert!(memories.dump(other.clone(), 0, 9).await.unwrap().entities.is_empty());
        let gone = memories.delete(other.clone(), vec!["Secret plan".to_owned()], Removal::Erased).await;
        assert!(gone.unwrap().is_empty());
        let fact = ForgetTarget::Fact { entity: "Secret plan".into(), text: "Buy the zeppelin".into() };
        assert_eq!(memories.forget(other.clone(), fact, Removal::Erased).await.unwrap(), 0);
        let own = vec![entity("Secret plan", "plan", &["Mine"])];
        assert!(memories.upsert(other.clone(), own, NameMatch::Alike).await.unwrap()[0].created);
        memories.delete(other, vec!["Secret plan".to_owned()], Removal::Erased).await.unwrap();
    }
    assert_eq!(facts(&known(&memories, "Secret plan").await.unwrap()), ["Buy the zeppelin"]);
}

#[tokio::test]
async fn provenance_is_kept_and_what_came_from_elsewhere_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let page = Fact {
        text: "Pays in gold".into(),
        origin: FactOrigin::Sourced,
        source: Some("https://example.org".into()),
    };
    let asker = ada();
    let new = NewEntity { facts: vec![stated("Is reliable"), page], ..entity("Acme", "vendor", &[]) };
    memories.upsert(asker.clone(), vec![new], NameMatch::Alike).await.unwrap();
    let acme = known(&memories, "Acme").await.unwrap();
    assert_eq!(acme.facts[1].source.as_deref(), Some("https://example.org"));
    assert!(acme.facts.iter().all(|fact| fact.call == asker.call.to_string() && fact.since == acme.created));
    let own = |asked: MemoryQuery| MemoryQuery { stated_only: true, ..asked };
    assert_eq!(facts(&ask(&memories, own(named("Acme"))).await.entities[0]), ["Is reliable"]);
    assert_eq!(ask(&memories, own(words("gold"))).await.total, 0);
    assert_eq!(ask(&memories, words("gold")).await.total, 1);
}

#[tokio::test]
async fn what_is_refused_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let memories = SqliteMemoryStore::new(dir.path(), Durability::Flush, 2_000);
    put(&memories, "Small", "thing", &["fits"]).await;
    let large = vec![entity("One", "thing", &["fits"]), entity("Two", "thing", &[&"x".repeat(2_000)])];
    let error = memories.upsert(ada(), large, NameMatch::Alike).await.unwrap_err();
    assert!(matches!(error, StoreError::Full(Limit::MemoryBytes(_))), "{error}");
    assert!(known(&memories, "One").await.is_none() && find(&memories, "One").await.is_empty());
    // Other callers have their own memory, and erasing frees space.
    let other =
        memories.upsert(asker("bob"), vec![entity("Mine", "thing", &[&"y".repeat(1_500)])], NameMatch::Alike);
    assert!(other.await.is_ok());
    assert!(try_put(&memories, "Two", "thing", &[&"x".repeat(1_700)]).await.is_ok());
    assert!(try_put(&memories, "Three", "thing", &[&"x".repeat(1_000)]).await.is_err());
    memories.delete(ada(), vec!["Two".to_owned()], Removal::Erased).await.unwrap();
    assert!(try_put(&memories, "Three", "thing", &[&"x".repeat(1_000)]).await.is_ok());

    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    let many: Vec<String> = (0..=MAX_FACTS).map(|at| format!("fact {at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = try_put(&memories, "Log", "thing", &many).await.unwrap_err();
    assert_eq!(refused, StoreError::Full(Limit::Facts("Log".to_owned())));
    assert!(try_put(&memories, "Log", "thing", &many[1..]).await.is_ok());
    assert!(try_put(&memories, "Log", "thing", &["one more"]).await.is_err());
}

#[tokio::test]
async fn lists_go_by_name_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    for (name, kind) in [("delta", "b"), ("Alpha", "a"), ("charlie", "a"), ("Bravo", "a")] {
        put(&memories, name, kind, &["x"]).await;
    }
    let list = async |kind: Option<&str>, offset| {
        let page = PageRequest { kind: kind.map(str::to_owned), limit: 2, offset };
        let listed = memories.list(ada(), page).await.unwrap();
        let names: Vec<String> = listed.entities.iter().map(|brief| brief.name.clone()).collect();
        (names.join(" "), listed.total, listed.kinds)
    };
    let kinds = vec![("a".to_owned(), 3), ("b".to_owned(), 1)];
    assert_eq!(list(None, 0).await, ("Alpha Bravo".to_owned(), 4, kinds.clone()));
    assert_eq!(list(None, 2).await, ("charlie delta".to_owned(), 4, kinds.clone()));
    assert_eq!(list(Some("A"), 1).await, ("Bravo charlie".to_owned(), 3, kinds.clone()));
    assert_eq!(list(Some("c"), 0).await.0, "");
    assert_eq!(list(None, u64::MAX).await.0, "");
}

#[tokio::test]
async fn everything_is_there_after_a_restart_and_in_a_dump() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(dir.path());
    for at in 0..5 {
        put(&memories, &format!("e{at}"), "thing", &["first", "second"]).await;
    }
    relate(&memories, "e0", "before", "e4").await;
    drop(memories);
    let memories = open(dir.path());
    let (mut after, mut all) = (Some(0), Vec::new());
    while let Some(from) = after {
        let dump = memories.dump(ada(), from, 2).await.unwrap();
        all.extend(dump.entities);
        after = dump.next;
    }
    assert_eq!(all.len(), 5);
    assert!(all.iter().all(|known| facts(known) == ["first", "second"]));
    assert_eq!(all.iter().map(|known| known.links.len()).sum::<usize>(), 1);
    assert_eq!(find(&memories, "second").await.len(), 5);
}

#[tokio::test]
async fn nothing_is_written_before_something_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let memories = open(&dir.path().join("state"));
    assert!(!dir.path().join("state").exists());
    put(&memories, "First", "thing", &["there"]).await;
    assert!(dir.path().join("state/memory.db").exists());
}
