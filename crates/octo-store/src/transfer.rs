//! Copying all state of a directory from and to another backend.

mod api_copy;
mod audit_copy;
mod copy_error;
mod credential_copy;
mod lease_copy;
mod listing_copy;
mod memory_copy;
mod pin_copy;
mod result_copy;
mod run_copy;
mod staging;
mod state_databases;
mod state_import;
#[cfg(test)]
mod tests;

pub(crate) use staging::complete_install;

pub use credential_copy::SlotFilter;

use crate::Options;
use copy_error::{CopyResult, OfPort};
use octo_ports::transfer::{RecordReceiver, RecordSender, TransferCounts, TransferError};
use octo_ports::{Port, StoreError};
use state_databases::StateDatabases;
use state_import::StateImport;
use std::path::{Path, PathBuf};

/// Sends all records of a directory. No other process may use it meanwhile.
pub async fn export_state(
    dir: &Path,
    options: &Options,
    is_of_machine: SlotFilter,
    to: RecordSender,
) -> Result<(), TransferError> {
    let place = StatePlace::new(dir, options, is_of_machine);
    let exported = tokio::task::spawn_blocking(move || export(&place, &to).map(|()| to));
    exported.await.map_err(StoreError::internal)??.finish().await
}

/// Stores all records in a directory, which has none but credentials of the machine. Until all have arrived, it stays as it is.
pub async fn import_state(
    dir: &Path,
    options: &Options,
    is_of_machine: SlotFilter,
    mut from: RecordReceiver,
) -> Result<TransferCounts, TransferError> {
    let place = StatePlace::new(dir, options, is_of_machine);
    let import = move || {
        let mut import = StateImport::begin(place)?;
        while let Some(record) = from.blocking_next()? {
            import.add(record)?;
        }
        import.finish()?;
        Ok(from.into_counts())
    };
    tokio::task::spawn_blocking(import).await.map_err(StoreError::internal)?
}

/// The directories of a state, and its keys.
struct StatePlace {
    dir: PathBuf,
    credential_dir: PathBuf,
    options: Options,
    is_of_machine: SlotFilter,
}

impl StatePlace {
    fn new(dir: &Path, options: &Options, is_of_machine: SlotFilter) -> Self {
        let credential_dir = options.credential_dir.clone().unwrap_or_else(|| dir.to_owned());
        Self { dir: dir.to_owned(), credential_dir, options: options.clone(), is_of_machine }
    }
}

/// Blocks.
fn export(place: &StatePlace, to: &RecordSender) -> Result<(), TransferError> {
    complete_install(&place.dir).of_port(Port::Leases)?;
    let mut source = StateDatabases::open(place)?;
    lease_copy::export(&mut source, to).of_port(Port::Leases)?;
    with(&mut source.audit, |conn| audit_copy::export(conn, to)).of_port(Port::AuditReader)?;
    with(&mut source.audit, |conn| result_copy::export(conn, &place.dir, to)).of_port(Port::Results)?;
    with(&mut source.pins, |conn| pin_copy::export(conn, to)).of_port(Port::Pins)?;
    with(&mut source.listings, |conn| listing_copy::export(conn, to)).of_port(Port::Listings)?;
    with(&mut source.apis, |conn| api_copy::export(conn, place, to)).of_port(Port::Apis)?;
    with(&mut source.runs, |conn| run_copy::export(conn, to)).of_port(Port::Runs)?;
    with(&mut source.credentials, |conn| credential_copy::export(conn, place, to))
        .of_port(Port::Credentials)?;
    with(&mut source.memory, |conn| memory_copy::export(conn, to)).of_port(Port::Memory)
}

/// Reads a database in one transaction, if there is one.
fn with(
    database: &mut Option<rusqlite::Connection>,
    work: impl FnOnce(&rusqlite::Connection) -> CopyResult<()>,
) -> CopyResult<()> {
    match database {
        Some(conn) => work(&*conn.transaction()?),
        None => Ok(()),
    }
}
