//! The audit log on a real server.

mod chains;
mod faults;
mod speed;
mod tampering;

use octo_model::CallId;
use octo_ports::conformance::call_samples::{closing, opening};
use octo_ports::{AuditCursor, AuditReader, AuditRecord, StoreResult, Stores};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records the start of a call, and returns its id.
pub async fn start(stores: &Stores, name: &str) -> StoreResult<CallId> {
    let opening = opening(name);
    let id = opening.id;
    stores.audit.open(opening).await.map(|()| id)
}

/// Records complete calls in sequence, and returns their ids.
pub async fn calls(stores: &Stores, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for at in 0..count {
        let id = start(stores, &format!("tool_{at}")).await.unwrap();
        stores.audit.close(closing(id));
        ids.push(id.to_string());
    }
    ids
}

/// Records complete calls in this many tasks.
pub async fn concurrent_calls(stores: &Stores, tasks: usize, each: usize) -> Vec<String> {
    let stores = Arc::new(stores.clone());
    let tasks = (0..tasks).map(|_| {
        let stores = Arc::clone(&stores);
        tokio::spawn(async move { calls(&stores, each).await })
    });
    let mut ids = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        ids.extend(task.await.unwrap());
    }
    stores.audit.flush().await.unwrap();
    ids
}

/// All records, read in pages.
pub async fn all_records(reader: &dyn AuditReader) -> Vec<AuditRecord> {
    let (mut cursor, mut records) = (AuditCursor::default(), Vec::new());
    loop {
        let page = reader.after(&cursor).await.unwrap();
        if page.is_empty() {
            return records;
        }
        page.iter().for_each(|record| cursor.advance(&record.chain, record.seq));
        records.extend(page);
    }
}

/// Number of records of each call.
pub fn records_per_call(records: &[AuditRecord]) -> BTreeMap<&str, usize> {
    let mut count = BTreeMap::new();
    for record in records {
        *count.entry(record.call.as_str()).or_default() += 1;
    }
    count
}

pub async fn wait_until<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(20);
    while !check().await {
        assert!(Instant::now() < end, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
