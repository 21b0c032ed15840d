//! Copying all state of a database from and to another backend.

mod api_copy;
mod audit_copy;
mod credential_copy;
mod lease_copy;
mod listing_copy;
mod memory_copy;
mod pin_copy;
mod result_copy;
mod run_copy;
mod state_export;
mod state_import;

use crate::database::Database;
use crate::{PostgresError, PostgresOptions};
use octo_ports::transfer::{RecordReceiver, RecordSender, TransferCounts, TransferError};
use octo_ports::{Keyring, Port, StoreError, StoreResult};
use state_export::StateExport;
use state_import::StateImport;

fn unusable(error: PostgresError) -> StoreError {
    error.into_store_error(Port::Leases)
}

fn keyring(options: &PostgresOptions) -> StoreResult<Keyring> {
    let keyring = Keyring::from_secrets(&options.secret, &options.previous_secrets);
    keyring.map_err(|error| unusable(PostgresError::Secret(error)))
}

/// Sends all records, as of one moment. No hub may use the database meanwhile. The chain of this node is sent without
/// its name.
pub async fn export_state(options: &PostgresOptions, to: RecordSender) -> Result<(), TransferError> {
    let (database, keyring) = (Database::new(options).map_err(unusable)?, keyring(options)?);
    let mut export = StateExport::begin(&database, &to).await?;
    lease_copy::export(&mut export).await?;
    let heads = audit_copy::export(&mut export, &options.node).await?;
    result_copy::export(&mut export).await?;
    pin_copy::export(&mut export).await?;
    listing_copy::export(&mut export).await?;
    api_copy::export(&mut export, &keyring).await?;
    run_copy::export(&mut export).await?;
    credential_copy::export(&mut export, &keyring).await?;
    memory_copy::export(&mut export).await?;
    export.finish().await?;
    audit_copy::check_unchanged(&database, &heads).await?;
    to.finish().await
}

/// Stores all records, in one transaction, in a database that has none. The chain without a name becomes that of this
/// node.
pub async fn import_state(
    options: &PostgresOptions,
    mut from: RecordReceiver,
) -> Result<TransferCounts, TransferError> {
    let database = Database::new(options).map_err(unusable)?;
    let seals = (keyring(options)?.current, keyring(options)?.current);
    let mut import = StateImport::begin(&database, &options.node, seals).await?;
    while let Some(record) = from.next().await? {
        import.add(record).await?;
    }
    import.finish().await?;
    Ok(from.into_counts())
}
