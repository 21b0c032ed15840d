//! Records can be read by the writing process and by others at the same time.

use super::{calls, closing, opening, store};
use crate::SqliteError;
use crate::audit::audit_reader::AuditConnection;
use crate::audit::audit_verify::verify;
use octo_ports::{AuditCursor, AuditLog, AuditRecord, RecordKind};
use std::sync::Arc;

#[tokio::test]
async fn a_call_is_two_records() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let reader = store.reader().unwrap();
    assert_eq!(reader.tail(10).unwrap(), []);
    let call = opening("time_now");
    let id = call.id;
    store.open(call).await.unwrap();
    let running = reader.tail(10).unwrap();
    assert_eq!((running.len(), running[0].kind, running[0].outcome.as_deref()), (1, RecordKind::Open, None));
    store.close(closing(id));
    store.flush().await.unwrap();

    let [open, close] = &reader.tail(10).unwrap()[..] else { panic!("not two records") };
    assert_eq!(
        (open.seq, open.call.clone(), close.seq, close.call.clone()),
        (1, id.to_string(), 2, id.to_string())
    );
    let shown = serde_json::to_value(open).unwrap();
    assert_eq!(shown["kind"], "open");
    assert_eq!(shown["frontend"], "cli");
    assert_eq!(shown["method"], "tools/call");
    assert_eq!(shown["name"], "time_now");
    assert_eq!(shown["arguments"], "5e".repeat(32));
    assert!(shown["at"].as_str().unwrap().ends_with('Z') && shown.get("outcome").is_none());
    let shown = serde_json::to_value(close).unwrap();
    assert_eq!(
        (&shown["outcome"], &shown["millis"], &shown["bytes"]),
        (&"ok".into(), &1.5.into(), &42.into())
    );
    assert_eq!(close.hash, reader.head().unwrap().hash.to_string());
}

#[tokio::test]
async fn the_tail_can_be_followed() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(AuditConnection::open(dir.path()), Err(SqliteError::Missing { .. })));
    let store = store(dir.path());
    calls(&store, 10).await;
    store.flush().await.unwrap();
    let reader = AuditConnection::open(dir.path()).unwrap();
    let cursor = |seq| {
        let mut cursor = AuditCursor::default();
        cursor.advance("", seq);
        cursor
    };
    let seqs = |records: Vec<AuditRecord>| records.iter().map(|record| record.seq).collect::<Vec<_>>();
    assert_eq!(seqs(reader.tail(3).unwrap()), [18, 19, 20]);
    assert_eq!(seqs(reader.after(&cursor(17)).unwrap()), [18, 19, 20]);
    assert!(reader.after(&cursor(20)).unwrap().is_empty());
    calls(&store, 1).await;
    store.flush().await.unwrap();
    assert_eq!(seqs(reader.after(&cursor(20)).unwrap()), [21, 22]);
}

#[tokio::test]
async fn dropping_the_store_writes_what_is_queued() {
    let dir = tempfile::tempdir().unwrap();
    calls(&store(dir.path()), 1).await;
    assert_eq!(AuditConnection::open(dir.path()).unwrap().tail(9).unwrap().len(), 2);
}

#[tokio::test]
async fn the_end_of_a_call_is_written_without_another_call() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    calls(&store, 1).await;
    let reader = store.reader().unwrap();
    let written = async {
        while reader.head().unwrap().seq < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), written).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_share_few_commits() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(store(dir.path()));
    let running: Vec<_> = (0..1000)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { calls(&store, 1).await })
        })
        .collect();
    for call in running {
        call.await.unwrap();
    }
    let commits = store.commits();
    assert!((1..200).contains(&commits), "{commits} commits");
    drop(store);
    assert_eq!(verify(dir.path(), None).unwrap().records, 2000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_file_make_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [Arc::new(store(dir.path())), Arc::new(store(dir.path()))];
    let running: Vec<_> = stores
        .iter()
        .cycle()
        .take(8)
        .map(|store| {
            let store = Arc::clone(store);
            tokio::spawn(async move { calls(&store, 50).await })
        })
        .collect();
    for calls in running {
        calls.await.unwrap();
    }
    drop(stores);
    assert_eq!(verify(dir.path(), None).unwrap().records, 2 * 8 * 50);
}
