//! Sends rows, a few at a time, so that the memory in use does not depend on their number.

use super::lease_copy;
use crate::database::Database;
use crate::transaction::Transaction;
use crate::value::Value;
use octo_ports::transfer::{RecordSender, TransferError, TransferRecord};
use octo_ports::{Port, StoreResult};
use tokio_postgres::Row;

/// Rows per page.
pub(super) const SMALL_ROWS: u32 = 1_000;
/// Of rows that may have megabytes.
pub(super) const LARGE_ROWS: u32 = 8;

pub(super) struct StateExport<'a> {
    pub(super) transaction: Transaction,
    pub(super) to: &'a RecordSender,
}

impl<'a> StateExport<'a> {
    /// Refuses if a hub works.
    pub(super) async fn begin(database: &Database, to: &'a RecordSender) -> Result<Self, TransferError> {
        let mut transaction = database.begin_copy(true).await?;
        lease_copy::check_unused(&mut transaction).await?;
        Ok(Self { transaction, to })
    }

    pub(super) fn set_port(&mut self, port: Port) {
        self.transaction.set_port(port);
    }

    /// Sends the records of all rows that a statement selects.
    pub(super) async fn send<R: IntoIterator<Item = TransferRecord>>(
        &mut self,
        select: &str,
        values: &[&dyn Value],
        rows_per_page: u32,
        mut records: impl FnMut(&Row) -> StoreResult<R>,
    ) -> Result<(), TransferError> {
        let declare = format!("DECLARE pages NO SCROLL CURSOR FOR {select}");
        self.transaction.execute(&declare, values).await?;
        let fetch = format!("FETCH {rows_per_page} FROM pages");
        loop {
            let page = self.transaction.query(&fetch, &[]).await?;
            if page.is_empty() {
                break;
            }
            for row in &page {
                for record in records(row)? {
                    self.to.send(record).await?;
                }
            }
        }
        self.transaction.execute("CLOSE pages", &[]).await?;
        Ok(())
    }

    pub(super) async fn finish(self) -> StoreResult<()> {
        self.transaction.commit().await
    }
}
