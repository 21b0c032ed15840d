//! In-memory backend, for the lifetime of the process.
#![expect(clippy::disallowed_methods, reason = "a backend dates its own records")]

mod apis;
mod audit;
mod credentials;
mod fleet_records;
mod health_check;
mod leases;
mod listings;
mod memory_graph;
mod pins;
mod rate_buckets;
mod results;
mod runs;
mod session_store;

use crate::{
    Apis, CredentialStore, Credentials, FleetRecords, Keyring, Listings, Memory, Pins, ResultStore, Runs,
    Seal, Sessions, StoreResult,
};
use octo_model::BoxFuture;
use std::sync::Arc;

pub use audit::InMemoryAudit;
pub use credentials::InMemoryCredentials;
pub use health_check::InMemoryHealth;
pub use leases::InMemoryLeases;
pub use rate_buckets::InMemoryRateBuckets;

fn ready<'a, T: Send + 'a>(value: StoreResult<T>) -> BoxFuture<'a, StoreResult<T>> {
    Box::pin(std::future::ready(value))
}

pub fn apis() -> Apis {
    Arc::new(apis::InMemoryApis::default())
}

pub fn audit() -> Arc<InMemoryAudit> {
    Arc::default()
}

pub fn credentials() -> Credentials {
    let keyring = || Seal::random().map(|current| Keyring { current, previous: Vec::new() });
    let records = Arc::new(InMemoryCredentials::default());
    Arc::new(CredentialStore::new(records, move || ready(keyring())))
}

pub fn fleet_records() -> Arc<dyn FleetRecords> {
    Arc::new(fleet_records::InMemoryFleetRecords::default())
}

pub fn leases() -> Arc<InMemoryLeases> {
    Arc::default()
}

pub fn listings() -> Listings {
    Arc::new(listings::InMemoryListings::default())
}

pub fn memory() -> Memory {
    Arc::new(memory_graph::InMemoryMemory::default())
}

pub fn pins() -> Arc<dyn Pins> {
    Arc::new(pins::InMemoryPins::default())
}

pub fn rate_buckets() -> Arc<InMemoryRateBuckets> {
    Arc::default()
}

pub fn results() -> Arc<dyn ResultStore> {
    Arc::new(results::InMemoryResults::default())
}

/// Runs under these leases.
pub fn runs(leases: &Arc<InMemoryLeases>) -> Arc<dyn Runs> {
    Arc::new(runs::InMemoryRuns::new(leases))
}

/// Sessions whose owners hold these leases.
pub fn sessions(leases: &Arc<InMemoryLeases>) -> Sessions {
    Arc::new(session_store::InMemorySessions::new(leases))
}
