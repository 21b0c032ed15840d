//! The chains of several hubs fit into one directory, and are still verified, read and pruned there.

use super::used_state::{callers, keep, record_call};
use super::*;
use jiff::Timestamp;
use octo_ports::{AuditCursor, ChainAnchor, RecordKind};

async fn names(stores: &Stores) -> Vec<(String, u64)> {
    let verified = stores.audit_reader.verify(&[]).await.unwrap();
    verified.into_iter().map(|one| (one.chain, one.head.seq)).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the clock of the records")]
async fn chains_of_other_hubs_are_kept() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let ada = &callers()[0];
    for round in 0..10 {
        for node in ["node-1", "node-2", "node-3"] {
            record_call(&schema.stores_of(node), ada, &format!("call {round}")).await;
        }
    }
    schema.stores().audit_reader.prune(keep(30), Timestamp::now()).await.unwrap();
    let heads: Vec<ChainAnchor> = schema.stores().audit_reader.heads().await.unwrap();
    let all = schema.stores().audit_reader.tail(1_000).await.unwrap();
    let dir = temp.path().join("a");
    to_sqlite(&schema.options, &dir).await.unwrap();

    let stores = state(&dir);
    let found = names(&stores).await;
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["", "node-2", "node-3"]);
    let same: Vec<ChainAnchor> = stores.audit_reader.heads().await.unwrap();
    assert_eq!(
        same.iter().map(|head| head.anchor).collect::<Vec<_>>(),
        heads.iter().map(|head| head.anchor).collect::<Vec<_>>()
    );
    let read = stores.audit_reader.tail(1_000).await.unwrap();
    let times = |records: &[octo_ports::AuditRecord]| records.iter().map(|one| one.at).collect::<Vec<_>>();
    assert_eq!(times(&read), times(&all));
    let next = stores.audit_reader.after(&AuditCursor::default()).await.unwrap();
    assert_eq!(times(&next), times(&all));

    // The hub goes on with its own chain, and prunes all of them.
    record_call(&stores, ada, "later").await;
    assert_eq!(names(&stores).await[0].1, found[0].1 + 2);
    assert!(stores.audit_reader.prune(keep(10), Timestamp::now()).await.unwrap() > 0);
    let verified = stores.audit_reader.verify(&same[1..]).await.unwrap();
    assert!(verified.iter().all(|one| one.pruned.is_some()), "{verified:?}");
    let left = stores.audit_reader.tail(1_000).await.unwrap();
    let prunings = left.iter().filter(|record| record.kind == RecordKind::Prune).count();
    assert!(left.len() - prunings <= 10, "{left:?}");
    drop(stores);

    // Back, as another hub.
    let other = PostgresSchema::new().await;
    let same_name = PostgresOptions { node: "node-2".to_owned(), ..other.options.clone() };
    let refused = to_postgres(&dir, &same_name).await.unwrap_err();
    assert_eq!(refused, TransferError::ChainName("node-2".to_owned()));
    assert_eq!(other.count("SELECT count(*) FROM audit").await, 0);
    let new_name = PostgresOptions { node: "node-9".to_owned(), ..other.options.clone() };
    to_postgres(&dir, &new_name).await.unwrap();
    let found = names(&other.stores()).await;
    assert_eq!(
        found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["node-2", "node-3", "node-9"]
    );
    let back = temp.path().join("b");
    to_sqlite(&new_name, &back).await.unwrap();
    assert_same(&sqlite_records(&dir).await, &sqlite_records(&back).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_was_tampered_with_is_not_copied() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    for number in 0..5 {
        record_call(&schema.stores(), &callers()[0], &format!("call {number}")).await;
    }
    schema.run("ALTER TABLE audit DISABLE TRIGGER USER; DELETE FROM audit WHERE seq = 10").await;
    let refused = to_sqlite(&schema.options, &temp.path().join("a")).await.unwrap_err();
    assert!(refused.to_string().contains("corrupt"), "{refused}");
    assert!(!temp.path().join("a/octoprox.db").exists());
}
