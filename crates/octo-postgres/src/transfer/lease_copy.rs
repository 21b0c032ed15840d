//! Fencing tokens. Leases themselves are not copied.

use super::state_export::StateExport;
use crate::lease_store::HELD;
use crate::transaction::Transaction;
use octo_ports::transfer::{TransferError, TransferRecord};
use octo_ports::{Port, StoreResult};

/// Refuses if a hub holds a lease.
pub(super) async fn check_unused(transaction: &mut Transaction) -> Result<(), TransferError> {
    transaction.set_port(Port::Leases);
    let find = format!("SELECT holder FROM leases WHERE {HELD} ORDER BY until DESC LIMIT 1");
    match transaction.query_opt(&find, &[]).await? {
        Some(row) => Err(TransferError::InUse(format!("`{}` holds a lease", row.get::<_, &str>(0)))),
        None => Ok(()),
    }
}

pub(super) async fn export(export: &mut StateExport<'_>) -> Result<(), TransferError> {
    let last = "SELECT greatest(
            (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM lease_tokens),
            (SELECT max(fence) FROM runs)
        )";
    let row = export.transaction.query_opt(last, &[]).await?;
    let last = row.map_or(0, |row| row.get::<_, i64>(0));
    export.to.send(TransferRecord::LeaseToken(last.cast_unsigned())).await
}

/// Not undone if the transaction is rolled back, which only makes the next token larger.
pub(super) async fn import(transaction: &mut Transaction, last: i64) -> StoreResult<()> {
    transaction.set_port(Port::Leases);
    let set = "SELECT setval('lease_tokens', $1) FROM lease_tokens
               WHERE $1 > CASE WHEN is_called THEN last_value ELSE 0 END";
    transaction.query(set, &[&last]).await.map(drop)
}
