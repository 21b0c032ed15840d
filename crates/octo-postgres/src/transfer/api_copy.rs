//! APIs that callers have loaded.

use super::state_export::{LARGE_ROWS, StateExport};
use crate::api_store::{api_from_row, text_from_bytes};
use crate::transaction::Transaction;
use crate::value::Value;
use octo_model::{Principal, Secret};
use octo_ports::apis::{StoredApi, open_api, seal_api};
use octo_ports::transfer::{ApiRow, TransferError, TransferRecord};
use octo_ports::{Keyring, Port, Seal, StoreResult};
use tokio_postgres::Row;

pub(super) async fn export(export: &mut StateExport<'_>, keyring: &Keyring) -> Result<(), TransferError> {
    export.set_port(Port::Apis);
    let rows = "SELECT name, revision, settings, secret, tenant, subject, document FROM apis
                ORDER BY tenant, subject, name";
    let record = |row: &Row| {
        let owner = Principal { tenant: row.get(4), subject: row.get(5) };
        let api = open_api(keyring, &owner, api_from_row(row)?)?;
        Ok([TransferRecord::Api(ApiRow { owner, api, document: text_from_bytes(row.get(6))? })])
    };
    export.send(rows, &[], LARGE_ROWS, record).await
}

pub(super) async fn import(transaction: &mut Transaction, seal: &Seal, rows: Vec<ApiRow>) -> StoreResult<()> {
    for row in rows {
        let ApiRow { owner, api, document } = row;
        let StoredApi { name, revision, settings, secret } = seal_api(seal, &owner, api)?;
        let insert = "INSERT INTO apis (tenant, subject, name, revision, settings, secret, document)
                      VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (name, secret) = (name.as_bytes(), secret.as_ref().map(Secret::bytes));
        let document = document.as_bytes();
        let values: [&dyn Value; 7] =
            [&owner.tenant, &owner.subject, &name, &revision, &settings, &secret, &document];
        transaction.execute(insert, &values).await?;
    }
    Ok(())
}
