//! All stores of one directory.

use crate::api_store::SqliteApiStore;
use crate::audit::audit_reader::SqliteAuditReader;
use crate::credential_store::credential_store;
use crate::lazy_store::LazyStore;
use crate::lease_store::SqliteLeaseStore;
use crate::listing_store::SqliteListingStore;
use crate::memory::SqliteMemoryStore;
use crate::pin_store::SqlitePinStore;
use crate::run_store::SqliteRunStore;
use crate::seal::keyring_opener;
use crate::store::health::SqliteHealth;
use crate::transfer::complete_install;
use crate::{Options, SqliteError};
use octo_ports::apis::SealedApiStore;
use octo_ports::{Port, Stores};
use std::path::Path;
use std::sync::Arc;

/// The stores of a directory. Several processes may use the same one; directory and databases are created on
/// first use.
pub fn sqlite(dir: &Path, options: Options) -> Result<Stores, SqliteError> {
    complete_install(dir)?;
    let durability = options.durability;
    let credential_dir = options.credential_dir.as_deref().unwrap_or(dir);
    let apis = SealedApiStore::new(
        Arc::new(SqliteApiStore::new(dir, durability)),
        keyring_opener(Port::Apis, dir, options.seal_keys.clone()),
    );
    let credentials = credential_store(credential_dir, options.seal_keys.clone());
    let memory = SqliteMemoryStore::new(dir, durability, options.memory_quota_bytes);
    // Leases are stored with the data that they protect, so that the same processes share both.
    let run_leases = SqliteLeaseStore::new(dir);
    let leases =
        if credential_dir == dir { run_leases.clone() } else { SqliteLeaseStore::new(credential_dir) };
    let open_audit = options.open_audit;
    let store = Arc::new(LazyStore::new(dir, options));
    if open_audit {
        store.open()?;
    }
    Ok(Stores {
        audit: store.clone(),
        audit_reader: Arc::new(SqliteAuditReader::new(dir)),
        results: store,
        pins: Arc::new(SqlitePinStore::new(dir, durability)),
        runs: Arc::new(SqliteRunStore::new(dir, durability, run_leases)),
        credentials: Arc::new(credentials),
        listings: Arc::new(SqliteListingStore::new(dir, durability)),
        apis: Arc::new(apis),
        memory: Arc::new(memory),
        leases: Arc::new(leases),
        rate_buckets: None,
        fleet_records: None,
        sessions: None,
        health: Arc::new(SqliteHealth::new(dir)),
    })
}
