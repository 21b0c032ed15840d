//! All ports together: what a backend provides to the hub and the command line.

use crate::{
    Apis, AuditLog, AuditReader, Credentials, FleetRecords, HealthCheck, Leases, Listings, Memory, Pins,
    RateBuckets, ResultStore, Runs, Sessions, in_memory,
};
use std::sync::Arc;

#[derive(Clone)]
pub struct Stores {
    pub audit: Arc<dyn AuditLog>,
    pub audit_reader: Arc<dyn AuditReader>,
    pub results: Arc<dyn ResultStore>,
    pub pins: Arc<dyn Pins>,
    pub runs: Arc<dyn Runs>,
    pub credentials: Credentials,
    pub listings: Listings,
    pub apis: Apis,
    pub memory: Memory,
    pub leases: Arc<dyn Leases>,
    /// `None` if no other hub shares the backend.
    pub rate_buckets: Option<Arc<dyn RateBuckets>>,
    /// `None` if no other hub shares the backend.
    pub sessions: Option<Sessions>,
    /// `None` if no other hub shares the backend.
    pub fleet_records: Option<Arc<dyn FleetRecords>>,
    pub health: Arc<dyn HealthCheck>,
}

impl Stores {
    /// In-memory stores, for the lifetime of the process.
    pub fn in_memory() -> Self {
        let (audit, leases) = (in_memory::audit(), in_memory::leases());
        Self {
            audit: audit.clone(),
            audit_reader: audit,
            results: in_memory::results(),
            pins: in_memory::pins(),
            runs: in_memory::runs(&leases),
            credentials: in_memory::credentials(),
            listings: in_memory::listings(),
            apis: in_memory::apis(),
            memory: in_memory::memory(),
            sessions: Some(in_memory::sessions(&leases)),
            leases,
            rate_buckets: None,
            fleet_records: None,
            health: Arc::new(in_memory::InMemoryHealth),
        }
    }
}
