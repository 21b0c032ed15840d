//! Memories of a database, where each one counts its own entities, fit into one file.

use super::used_state::{asker, callers, entity, fill_memory, link, view_memory};
use super::*;
use octo_ports::memory::{MemoryQuery, NameMatch};

#[tokio::test(flavor = "multi_thread")]
async fn equal_numbers_of_entities_do_not_collide() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let stores = schema.stores();
    for caller in &callers() {
        fill_memory(&stores, caller).await;
    }
    let shown = |stores: Stores| async move {
        let mut lines = Vec::new();
        for caller in &callers() {
            view_memory(&stores, caller, &mut lines).await;
        }
        lines
    };
    let expected = shown(stores).await;
    let dir = temp.path().join("a");
    to_sqlite(&schema.options, &dir).await.unwrap();
    assert_eq!(expected, shown(state(&dir)).await);
    // Another time, without collisions.
    let other = PostgresSchema::new().await;
    to_postgres(&dir, &other.options).await.unwrap();
    assert_eq!(expected, shown(other.stores()).await);
    let links = vec![link("Sencha", "likes", "New entity")];
    let done = state(&dir).memory.link(asker(&callers()[1]), links, NameMatch::Exact).await.unwrap();
    assert_eq!((done.added, done.created.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_is_replaced_as_when_it_is_stored() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let ada = &callers()[0];
    let entities = vec![entity("a\0b", Some("k\0"), &["one\0two"]), entity("plain", Some("k\u{fffd}"), &[])];
    state(temp.path()).memory.upsert(asker(ada), entities, NameMatch::Exact).await.unwrap();
    to_postgres(temp.path(), &schema.options).await.unwrap();
    let question = MemoryQuery { name: Some("a\0b".to_owned()), limit: 5, facts: 5, ..Default::default() };
    let found = schema.stores().memory.query(asker(ada), question).await.unwrap();
    assert_eq!(found.entities[0].name, "a\u{fffd}b");
    assert_eq!(found.entities[0].facts[0].text, "one\u{fffd}two");
}
