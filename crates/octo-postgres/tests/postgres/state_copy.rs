//! Copies of all state, from SQLite to PostgreSQL and back.

mod copied_chains;
mod copied_memories;
mod refusals;
mod round_trip;
mod used_state;

use crate::postgres_schema::PostgresSchema;
use octo_ports::transfer::{RecordReceiver, TransferCounts, TransferError, TransferRecord, transfer};
use octo_ports::{Slot, Stores};
use octo_postgres::PostgresOptions;
use octo_store::{Options, sqlite};
use std::path::Path;
use std::time::{Duration, Instant};

/// For connections of stores that were dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Credentials that stay on their machine.
fn is_of_machine(slot: &Slot) -> bool {
    slot.server.starts_with("secret:")
}

fn state(dir: &Path) -> Stores {
    sqlite(dir, Options::default()).unwrap()
}

/// Repeats what is refused while stores that were dropped have open connections.
async fn when_unused<T>(work: impl AsyncFn() -> Result<T, TransferError>) -> Result<T, TransferError> {
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    loop {
        match work().await {
            Err(TransferError::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

async fn to_postgres(dir: &Path, database: &PostgresOptions) -> Result<TransferCounts, TransferError> {
    let options = Options::default();
    when_unused(async || {
        transfer(
            |to| octo_store::export_state(dir, &options, is_of_machine, to),
            |from| octo_postgres::import_state(database, from),
        )
        .await
    })
    .await
}

async fn to_sqlite(database: &PostgresOptions, dir: &Path) -> Result<TransferCounts, TransferError> {
    let options = Options::default();
    when_unused(async || {
        transfer(
            |to| octo_postgres::export_state(database, to),
            |from| octo_store::import_state(dir, &options, is_of_machine, from),
        )
        .await
    })
    .await
}

async fn collect(mut from: RecordReceiver) -> Result<Vec<TransferRecord>, TransferError> {
    let mut records = Vec::new();
    while let Some(record) = from.next().await? {
        records.push(record);
    }
    Ok(records)
}

/// All records of a directory.
async fn sqlite_records(dir: &Path) -> Vec<TransferRecord> {
    let options = Options::default();
    let export =
        async || transfer(|to| octo_store::export_state(dir, &options, is_of_machine, to), collect).await;
    when_unused(export).await.unwrap()
}

/// All records of a database.
async fn postgres_records(schema: &PostgresSchema) -> Vec<TransferRecord> {
    let export = async || transfer(|to| octo_postgres::export_state(&schema.options, to), collect).await;
    when_unused(export).await.unwrap()
}

/// Compares streams, and names the first difference.
fn assert_same(one: &[TransferRecord], other: &[TransferRecord]) {
    if let Some((left, right)) = one.iter().zip(other).find(|(left, right)| left != right) {
        panic!("{left:?}\n{right:?}");
    }
    assert_eq!(one.len(), other.len());
}
