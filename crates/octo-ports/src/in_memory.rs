//! In-memory backend, for the lifetime of the process.
#![expect(clippy::disallowed_methods, reason = "a backend dates its own records")]

mod apis;
mod audit;
mod credentials;
mod leases;
mod listings;
mod memory_graph;
mod pins;
mod results;
mod runs;

use crate::{Apis, Credentials, Leases, Listings, Memory, Pins, ResultStore, Runs, StoreResult};
use octo_model::BoxFuture;
use std::sync::Arc;

pub use audit::InMemoryAudit;

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
    Arc::new(credentials::InMemoryCredentials::default())
}

pub fn leases() -> Arc<dyn Leases> {
    Arc::new(leases::InMemoryLeases::default())
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

pub fn results() -> Arc<dyn ResultStore> {
    Arc::new(results::InMemoryResults::default())
}

pub fn runs() -> Arc<dyn Runs> {
    Arc::new(runs::InMemoryRuns::default())
}
