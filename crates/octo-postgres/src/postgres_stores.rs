//! All stores of one database.

use crate::api_store::PostgresApiStore;
use crate::audit_store::{PostgresAuditLog, PostgresAuditReader};
use crate::credential_records::PostgresCredentialRecords;
use crate::database::Database;
use crate::lease_store::PostgresLeaseStore;
use crate::lease_store::fleet_record_store::PostgresFleetRecordStore;
use crate::listing_store::PostgresListingStore;
use crate::memory_store::PostgresMemoryStore;
use crate::pin_store::PostgresPinStore;
use crate::postgres_health::PostgresHealth;
use crate::rate_bucket_store::PostgresRateBucketStore;
use crate::result_store::PostgresResultStore;
use crate::run_store::PostgresRunStore;
use crate::session_store::PostgresSessionStore;
use crate::{PostgresError, PostgresOptions};
use octo_model::BoxFuture;
use octo_ports::apis::SealedApiStore;
use octo_ports::{CredentialStore, Keyring, StoreError, StoreResult, Stores};
use std::sync::Arc;

/// The stores of a database, which is connected to on first use. Its tables must exist, see [`crate::migrate`].
pub fn postgres(options: &PostgresOptions) -> Result<Stores, PostgresError> {
    Keyring::from_secrets(&options.secret, &options.previous_secrets).map_err(PostgresError::Secret)?;
    let database = Arc::new(Database::new(options)?);
    let apis = PostgresApiStore(Arc::clone(&database));
    let credentials = PostgresCredentialRecords(Arc::clone(&database));
    let leases = PostgresLeaseStore::new(Arc::clone(&database), &options.node);
    Ok(Stores {
        apis: Arc::new(SealedApiStore::new(Arc::new(apis), keyring_opener(options))),
        credentials: Arc::new(CredentialStore::new(Arc::new(credentials), keyring_opener(options))),
        audit: Arc::new(PostgresAuditLog::new(Arc::clone(&database), options)?),
        audit_reader: Arc::new(PostgresAuditReader::new(Arc::clone(&database))),
        listings: Arc::new(PostgresListingStore(Arc::clone(&database))),
        results: Arc::new(PostgresResultStore::new(Arc::clone(&database), options)),
        runs: Arc::new(PostgresRunStore::new(Arc::clone(&database), leases.clone())),
        memory: Arc::new(PostgresMemoryStore::new(Arc::clone(&database), options.memory_quota_bytes)),
        leases: Arc::new(leases),
        rate_buckets: Some(Arc::new(PostgresRateBucketStore::new(Arc::clone(&database)))),
        sessions: Some(Arc::new(PostgresSessionStore::new(Arc::clone(&database)))),
        fleet_records: Some(Arc::new(PostgresFleetRecordStore(Arc::clone(&database)))),
        health: Arc::new(PostgresHealth(Arc::clone(&database))),
        pins: Arc::new(PostgresPinStore(database)),
    })
}

fn keyring_opener(
    options: &PostgresOptions,
) -> impl Fn() -> BoxFuture<'static, StoreResult<Keyring>> + Send + Sync + 'static {
    let (secret, previous) = (options.secret.clone(), options.previous_secrets.clone());
    move || {
        let keyring = Keyring::from_secrets(&secret, &previous).map_err(StoreError::internal);
        Box::pin(std::future::ready(keyring))
    }
}
