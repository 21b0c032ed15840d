//! A copy that cannot be made changes nothing.

use super::used_state::{callers, fill, record_call};
use super::*;
use octo_model::Secret;
use octo_ports::transfer::{RecordSender, StateKind};
use octo_ports::{Port, StoreError};
use tokio::sync::oneshot;

const ALL_KINDS: [StateKind; 9] = [
    StateKind::AuditRecords,
    StateKind::Results,
    StateKind::Pins,
    StateKind::Listings,
    StateKind::Apis,
    StateKind::Runs,
    StateKind::Credentials,
    StateKind::PendingLogins,
    StateKind::Entities,
];

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_records_is_refused() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    fill(&state(temp.path())).await;
    to_postgres(temp.path(), &schema.options).await.unwrap();
    let (in_directory, in_database) = (sqlite_records(temp.path()).await, postgres_records(&schema).await);
    let refused = TransferError::NotEmpty(ALL_KINDS.to_vec());
    assert_eq!(to_postgres(temp.path(), &schema.options).await.unwrap_err(), refused);
    assert_eq!(to_sqlite(&schema.options, temp.path()).await.unwrap_err(), refused);
    assert_same(&in_directory, &sqlite_records(temp.path()).await);
    assert_same(&in_database, &postgres_records(&schema).await);
    assert!(!temp.path().join("store-copy.part").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_runs_is_noticed() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let (source, target) = (temp.path().join("a"), temp.path().join("b"));
    let options = Options::default();
    // Another process has the directory open.
    let stores = state(&source);
    // More than fit on the way to a reader that waits.
    for number in 0..100 {
        record_call(&stores, &callers()[0], &format!("call {number}")).await;
    }
    let export = |to: RecordSender| octo_store::export_state(&source, &options, is_of_machine, to);
    let import = |from| octo_postgres::import_state(&schema.options, from);
    assert!(matches!(transfer(export, import).await, Err(TransferError::InUse(_))));
    drop(stores);
    to_postgres(&source, &schema.options).await.unwrap();

    // A hub works on something in the database.
    let hub = schema.stores_of("hub");
    let lease = hub.leases.acquire("work", Duration::from_secs(60)).await.unwrap().unwrap();
    let refused = transfer(|to| octo_postgres::export_state(&schema.options, to), collect).await.unwrap_err();
    assert!(refused.to_string().contains("`hub "), "{refused}");
    hub.leases.release(&lease).await.unwrap();
    assert!(transfer(|to| octo_postgres::export_state(&schema.options, to), collect).await.is_ok());

    // A hub records a call during the copy.
    let late = |mut from: RecordReceiver| async {
        from.next().await?;
        record_call(&schema.stores_of("hub"), &callers()[0], "late").await;
        octo_store::import_state(&target, &options, is_of_machine, from).await
    };
    let refused = transfer(|to| octo_postgres::export_state(&schema.options, to), late).await.unwrap_err();
    assert!(refused.to_string().contains("recorded calls"), "{refused}");
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_secret_opens_nothing() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    fill(&state(temp.path())).await;
    to_postgres(temp.path(), &schema.options).await.unwrap();
    let wrong =
        PostgresOptions { secret: Secret::new("another secret, also long"), ..schema.options.clone() };
    let target = temp.path().join("target");
    let refused = to_sqlite(&wrong, &target).await.unwrap_err();
    assert!(
        matches!(&refused, TransferError::Store(StoreError::SealMismatch { port: Port::Apis, .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    // The key of the directory is gone.
    std::fs::remove_file(temp.path().join("seal.key")).unwrap();
    let other = PostgresSchema::new().await;
    let refused = to_postgres(temp.path(), &other.options).await.unwrap_err();
    assert!(matches!(&refused, TransferError::Store(StoreError::SealMismatch { .. })), "{refused:?}");
    assert_eq!(other.count("SELECT count(*) FROM audit").await, 0);
}

/// A copy to a database that ends in the middle leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_copy_leaves_the_database_empty() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    fill(&state(temp.path())).await;
    let records = sqlite_records(temp.path()).await;
    let (half_way, is_half_way) = oneshot::channel();
    let (options, half) = (schema.options.clone(), records[..records.len() * 9 / 10].to_vec());
    let export = async move |to: RecordSender| {
        for record in half {
            to.send(record).await?;
        }
        half_way.send(()).unwrap();
        std::future::pending().await
    };
    let copy =
        tokio::spawn(
            async move { transfer(export, |from| octo_postgres::import_state(&options, from)).await },
        );
    is_half_way.await.unwrap();
    copy.abort();
    assert!(copy.await.unwrap_err().is_cancelled());
    to_postgres(temp.path(), &schema.options).await.unwrap();
    assert_same(&records, &postgres_records(&schema).await);
}
