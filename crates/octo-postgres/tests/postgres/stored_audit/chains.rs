//! Chains of several hubs.

use super::{all_records, calls, concurrent_calls, records_per_call, start};
use crate::postgres_schema::{PostgresSchema, client};
use octo_ports::{AuditCursor, StoreError};
use octo_postgres::{PostgresError, PostgresOptions, postgres};

#[tokio::test(flavor = "multi_thread")]
async fn two_hubs_write_two_chains() {
    let schema = PostgresSchema::new().await;
    let (one, two) = (schema.stores_of("one"), schema.stores_of("two"));
    let reader = &one.audit_reader;
    assert!(matches!(reader.heads().await, Err(StoreError::NotFound(_))));
    assert!(matches!(reader.verify(&[]).await, Err(StoreError::NotFound(_))));
    tokio::join!(concurrent_calls(&one, 4, 50), concurrent_calls(&two, 4, 25));
    let verified = reader.verify(&reader.heads().await.unwrap()).await.unwrap();
    let brief: Vec<_> = verified.iter().map(|chain| (chain.chain.as_str(), chain.records)).collect();
    assert_eq!(brief, [("one", 400), ("two", 200)]);
    assert_eq!(one.audit.fingerprint(b"{}"), two.audit.fingerprint(b"{}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_are_merged_by_time() {
    let schema = PostgresSchema::new().await;
    let hubs = [schema.stores_of("one"), schema.stores_of("two"), schema.stores_of("three")];
    let mut ids = Vec::new();
    for at in 0..9 {
        ids.push(start(&hubs[at % 3], "time_now").await.unwrap().to_string());
    }
    let reader = &hubs[0].audit_reader;
    let records = reader.after(&AuditCursor::default()).await.unwrap();
    assert_eq!(records.iter().map(|record| record.call.clone()).collect::<Vec<_>>(), ids);
    for count in [0, 1, 4, 9, 100] {
        assert_eq!(reader.tail(count).await.unwrap(), records[9 - count.min(9)..], "{count}");
    }
    // The position in each chain is its own.
    let mut cursor = AuditCursor::default();
    cursor.advance("one", 2);
    cursor.advance("two", 3);
    let rest: Vec<_> = reader.after(&cursor).await.unwrap();
    let rest: Vec<_> = rest.iter().map(|record| (record.chain.as_str(), record.seq)).collect();
    assert_eq!(rest, [("three", 1), ("three", 2), ("one", 3), ("three", 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hubs_of_one_name_write_one_chain() {
    let schema = PostgresSchema::new().await;
    let (one, other) = (schema.stores(), schema.stores());
    let (mut ids, more) = tokio::join!(concurrent_calls(&one, 8, 40), concurrent_calls(&other, 8, 40));
    ids.extend(more);
    let reader = &one.audit_reader;
    let [verified] = &reader.verify(&[]).await.unwrap()[..] else { panic!("not one chain") };
    assert_eq!(verified.records, 2 * 640);
    let records = all_records(&**reader).await;
    let count = records_per_call(&records);
    assert!(count.len() == ids.len() && ids.iter().all(|id| count[id.as_str()] == 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_share_few_transactions() {
    let schema = PostgresSchema::new().await;
    concurrent_calls(&schema.stores(), 200, 5).await;
    let groups = schema.count("SELECT count(DISTINCT xmin::text) FROM audit").await;
    assert!((1..400).contains(&groups), "{groups} transactions for 2000 records");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_store_writes_what_is_queued() {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    calls(&stores, 3).await;
    drop(stores);
    assert_eq!(schema.stores().audit_reader.tail(10).await.unwrap().len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_only_appended_to() {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    calls(&stores, 3).await;
    let (client, path) = (client(&schema.admin).await, schema.options.schema.as_str());
    for change in ["UPDATE audit SET record = ''", "DELETE FROM audit"] {
        let refused =
            client.batch_execute(&format!("SET search_path TO {path}; {change}")).await.unwrap_err();
        assert!(refused.as_db_error().unwrap().message().contains("only ever appended"), "{refused:?}");
    }
}

#[tokio::test]
async fn names_of_nodes_are_checked() {
    let schema = PostgresSchema::empty().await;
    for node in ["", "a\0b", "a\nb", &"a".repeat(201)] {
        let options = PostgresOptions { node: node.to_owned(), ..schema.options.clone() };
        assert!(matches!(postgres(&options), Err(PostgresError::NodeName(_))), "{node:?}");
    }
    // Without tables, the reason says what to do.
    let refused = start(&schema.stores(), "time_now").await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable { why, .. } if why.contains("do not exist")),
        "{refused:?}"
    );
    assert!(schema.stores().audit.check().await.unwrap_err().contains("Migrate the database"));
}
