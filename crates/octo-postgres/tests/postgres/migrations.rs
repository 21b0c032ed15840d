//! Creating and upgrading the tables.

use crate::postgres_schema::PostgresSchema;
use octo_ports::StoreError;
use octo_postgres::{Migrated, PostgresError, check, migrate};

#[tokio::test]
async fn a_hub_refuses_tables_that_are_missing_or_too_new() {
    let schema = PostgresSchema::empty().await;
    let missing = check(&schema.options).await.unwrap_err();
    assert!(matches!(missing, PostgresError::NotMigrated { .. }), "{missing}");
    let stores = schema.stores();
    let Err(StoreError::Unavailable { why, .. }) = stores.listings.get("a", "m").await else { panic!() };
    assert!(why.contains("Migrate the database"), "{why}");
    let created = migrate(&schema.options).await.unwrap();
    assert_eq!(migrate(&schema.options).await.unwrap(), Migrated { from: created.to, to: created.to });
    assert_eq!(created.from, 0);
    // The same stores, without a restart.
    assert_eq!(stores.listings.get("a", "m").await.unwrap(), None);
    schema.run("INSERT INTO schema_versions (version, compatible) VALUES (1000, 1)").await;
    check(&schema.options).await.unwrap();
    schema.run("UPDATE schema_versions SET compatible = 1000 WHERE version = 1000").await;
    let newer = check(&schema.options).await.unwrap_err();
    assert!(matches!(newer, PostgresError::Newer { .. }), "{newer}");
}

#[tokio::test]
async fn several_processes_may_migrate_at_once() {
    let schema = PostgresSchema::empty().await;
    let results = futures_util::future::join_all((0..6).map(|_| migrate(&schema.options))).await;
    let created = results.iter().filter(|result| result.as_ref().unwrap().from == 0).count();
    assert_eq!(created, 1);
    check(&schema.options).await.unwrap();
}

/// Tables of version 1, with a row, as a hub of that version left them.
#[tokio::test]
async fn tables_of_an_older_version_are_upgraded_and_stay_usable_for_it() {
    let schema = PostgresSchema::new().await;
    schema.run("DROP TABLE fleet_records, rate_buckets, session_events, session_streams, sessions").await;
    schema.run("DROP FUNCTION audit_append").await;
    schema.run("DELETE FROM schema_versions WHERE version > 1").await;
    schema.run("INSERT INTO listings (server, mark, text) VALUES ('a', 'm', 'kept')").await;
    let older = check(&schema.options).await.unwrap_err();
    assert!(matches!(older, PostgresError::NotMigrated { .. }), "{older}");
    let upgraded = migrate(&schema.options).await.unwrap();
    assert_eq!(upgraded.from, 1);
    assert!(upgraded.to > 1);
    check(&schema.options).await.unwrap();
    assert_eq!(schema.stores().listings.get("a", "m").await.unwrap().as_deref(), Some("kept"));
    assert_eq!(schema.count("SELECT max(compatible) FROM schema_versions").await, 1);
}
