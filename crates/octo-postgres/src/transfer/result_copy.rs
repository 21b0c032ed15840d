//! Stored results.

use super::state_export::{LARGE_ROWS, StateExport};
use crate::transaction::Transaction;
use crate::value::Value;
use octo_model::Principal;
use octo_ports::transfer::{ResultRow, TransferError, TransferRecord};
use octo_ports::{Port, StoreError, StoreResult};
use tokio_postgres::Row;

pub(super) async fn export(export: &mut StateExport<'_>) -> Result<(), TransferError> {
    export.set_port(Port::Results);
    let rows = "SELECT results.handle, results.tenant, subject, call, size, created, bytes
        FROM results JOIN result_chunks USING (handle) ORDER BY results.number, result_chunks.number";
    let mut last = None;
    let records = move |row: &Row| {
        let handle: String = row.get(0);
        let chunk = TransferRecord::ResultChunk(row.get(6));
        if last.as_ref() == Some(&handle) {
            return Ok(vec![chunk]);
        }
        last = Some(handle.clone());
        let owner = Principal { tenant: row.get(1), subject: row.get(2) };
        let (call, size) = (row.get(3), row.get::<_, i64>(4).cast_unsigned());
        Ok(vec![TransferRecord::Result(ResultRow { handle, owner, call, size, created: row.get(5) }), chunk])
    };
    export.send(rows, &[], LARGE_ROWS, records).await
}

/// The result whose bytes arrive.
#[derive(Default)]
pub(super) struct ResultImport {
    current: Option<ResultRow>,
    chunks: i64,
}

impl ResultImport {
    pub(super) async fn start(
        &mut self,
        transaction: &mut Transaction,
        results: Vec<ResultRow>,
    ) -> StoreResult<()> {
        for row in results {
            let insert = "INSERT INTO results (handle, tenant, subject, call, size, created)
                          VALUES ($1, $2, $3, $4, $5, $6)";
            let (owner, size) = (&row.owner, row.size.cast_signed());
            let values: [&dyn Value; 6] =
                [&row.handle, &owner.tenant, &owner.subject, &row.call, &size, &row.created];
            transaction.execute(insert, &values).await?;
            (self.current, self.chunks) = (Some(row), 0);
        }
        Ok(())
    }

    pub(super) async fn add(&mut self, transaction: &mut Transaction, chunks: &[Vec<u8>]) -> StoreResult<()> {
        let row = self.current.as_ref().ok_or_else(|| StoreError::internal("bytes of no result"))?;
        let put = "INSERT INTO result_chunks (handle, tenant, number, bytes)
                   SELECT $1, $2, $3 + at, bytes FROM unnest($4::bytea[]) WITH ORDINALITY AS chunk (bytes, at)";
        let bytes: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        transaction.execute(put, &[&row.handle, &row.owner.tenant, &self.chunks, &bytes]).await?;
        self.chunks = self.chunks.saturating_add_unsigned(chunks.len() as u64);
        Ok(())
    }
}
