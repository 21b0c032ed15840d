//! The last listing of each upstream.

use super::state_export::{LARGE_ROWS, StateExport};
use crate::transaction::Transaction;
use octo_ports::transfer::{ListingRow, TransferError, TransferRecord};
use octo_ports::{Port, StoreResult};

pub(super) async fn export(export: &mut StateExport<'_>) -> Result<(), TransferError> {
    export.set_port(Port::Listings);
    let rows = "SELECT server, mark, text FROM listings ORDER BY server";
    let record = |row: &tokio_postgres::Row| {
        let listing = ListingRow { server: row.get(0), mark: row.get(1), text: row.get(2) };
        Ok([TransferRecord::Listing(listing)])
    };
    export.send(rows, &[], LARGE_ROWS, record).await
}

pub(super) async fn import(transaction: &mut Transaction, rows: &[ListingRow]) -> StoreResult<()> {
    let servers: Vec<&str> = rows.iter().map(|row| row.server.as_str()).collect();
    let marks: Vec<&str> = rows.iter().map(|row| row.mark.as_str()).collect();
    let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    let insert = "INSERT INTO listings (server, mark, text)
                  SELECT * FROM unnest($1::text[], $2::text[], $3::text[])";
    transaction.execute(insert, &[&servers, &marks, &texts]).await.map(drop)
}
