//! Texts that a database might not take.

use super::rng::Rng;
use super::*;
use crate::postgres_schema::PostgresSchema;
use octo_ports::memory::{ForgetTarget, MAX_FACT_BYTES, MAX_FACTS, MAX_NAME_BYTES, PageRequest, Removal};
use octo_ports::{Limit, StoreError};

#[tokio::test(flavor = "multi_thread")]
async fn nul_is_replaced_everywhere() {
    let schema = PostgresSchema::new().await;
    let memory = schema.stores().memory;
    let fact =
        Fact { text: "green\0tea".to_owned(), origin: FactOrigin::Sourced, source: Some("a\0b".to_owned()) };
    put(&memory, vec![NewEntity { facts: vec![fact], ..entity("A\0da", "per\0son", &[]) }]).await;
    memory.link(ada(), vec![link("A\0da", "kn\0ows", "B\0ob")], NameMatch::Alike).await.unwrap();
    let found = known(&memory, "a\0da").await.unwrap();
    assert_eq!((found.name.as_str(), found.kind.as_str()), ("A\u{fffd}da", "per\u{fffd}son"));
    assert_eq!(facts(&found), ["green\u{fffd}tea"]);
    assert_eq!(found.facts[0].source.as_deref(), Some("a\u{fffd}b"));
    let of_kind = MemoryQuery { kind: Some("PER\0SON".to_owned()), ..words("green\0") };
    assert_eq!(ask(&memory, of_kind).await.total, 1);
    let page = PageRequest { kind: Some("per\0son".to_owned()), limit: 9, offset: 0 };
    assert_eq!(memory.list(ada(), page).await.unwrap().total, 1);
    let relation = ForgetTarget::Link(link("A\0da", "kn\0ows", "B\0ob"));
    assert_eq!(memory.forget(ada(), relation, Removal::Ended).await.unwrap(), 1);
    let fact = ForgetTarget::Fact { entity: "A\0da".into(), text: "green\0tea".into() };
    assert_eq!(memory.forget(ada(), fact, Removal::Ended).await.unwrap(), 1);
    let names = vec!["A\0da".to_owned()];
    assert_eq!(memory.delete(ada(), names, Removal::Erased).await.unwrap(), ["A\u{fffd}da"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_nul_is_nobody_else() {
    let schema = PostgresSchema::new().await;
    let memory = schema.stores().memory;
    for principal in [Principal::new("a\0", "b"), Principal::new("a", "b\0")] {
        let asker = MemoryCaller { principal, ..ada() };
        for error in [
            memory.query(asker.clone(), everything()).await.unwrap_err(),
            memory.upsert(asker, vec![entity("x", "y", &[])], NameMatch::Exact).await.unwrap_err(),
        ] {
            assert!(matches!(&error, StoreError::Unavailable { why, .. } if why.contains("NUL")), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn very_long_texts() {
    let schema = PostgresSchema::new().await;
    let memory = schema.stores().memory;
    // Random letters, which do not compress.
    let mut rng = Rng(5);
    let mut letters =
        |count: usize| -> String { (0..count).map(|_| char::from(b'a' + rng.below(26) as u8)).collect() };
    let word = letters(MAX_FACT_BYTES);
    let prose: String = (0..MAX_FACT_BYTES / 8).map(|_| letters(7) + " ").collect();
    let (name, longer) = (letters(MAX_NAME_BYTES), letters(20_000));
    // One character that normalizes to eighteen.
    let wide = format!("{}{}", "\u{fdfa}".repeat(MAX_NAME_BYTES / 3), letters(2));
    for name in [&name, &longer, &wide] {
        put(&memory, vec![entity(name, &letters(128), &[&word, &prose, "same"])]).await;
        let found = known(&memory, &name.to_uppercase()).await.unwrap();
        assert_eq!((found.name.as_str(), found.fact_count), (name.as_str(), 3));
    }
    assert_eq!(ask(&memory, words(&word)).await.total, 3);
    assert_eq!(ask(&memory, words(&word[..20])).await.total, 3, "by its beginning");
    assert_eq!(ask(&memory, words(prose.split(' ').nth(1_000).unwrap())).await.total, 3);
    let fact = ForgetTarget::Fact { entity: longer.clone(), text: prose };
    assert_eq!(memory.forget(ada(), fact, Removal::Erased).await.unwrap(), 1);
    let names = vec![name, longer, wide];
    assert_eq!(memory.delete(ada(), names, Removal::Erased).await.unwrap().len(), 3);
    assert_eq!(schema.count("SELECT count(*) FROM memory_words").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_observations_leave_nothing() {
    let schema = PostgresSchema::new().await;
    let memory = schema.stores().memory;
    let many: Vec<String> = (0..=MAX_FACTS).map(|at| format!("fact {at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let put = async |facts: &[&str]| {
        memory.upsert(ada(), vec![entity("Log", "thing", facts)], NameMatch::Alike).await
    };
    assert_eq!(put(&many).await.unwrap_err(), StoreError::Full(Limit::Facts("Log".to_owned())));
    assert!(known(&memory, "Log").await.is_none());
    assert_eq!(put(&many[1..]).await.unwrap()[0].added, MAX_FACTS as u64);
    assert!(put(&["one more"]).await.is_err());
    assert_eq!(put(&["fact 7"]).await.unwrap()[0].added, 0);
}
