//! Records of the fleet as rows.

use crate::database::Database;
use crate::transaction::Scope;
use octo_model::BoxFuture;
use octo_ports::{Changes, FleetRecords, Port, StoreError, StoreResult};
use std::sync::Arc;

pub(crate) struct PostgresFleetRecordStore(pub(crate) Arc<Database>);

impl PostgresFleetRecordStore {
    /// Inserts a row, or makes of another one what `conflict` says, and returns the value. Wakes all hubs.
    async fn write(&self, name: &str, value: &str, conflict: &str) -> StoreResult<String> {
        let write = format!(
            "WITH written AS (
                INSERT INTO fleet_records (name, value) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET value = {conflict}
                RETURNING value
             )
             SELECT value, pg_notify($3, $4) FROM written"
        );
        let (channel, payload) = self.0.notice(Port::FleetRecords);
        let rows = self
            .0
            .write(Port::FleetRecords, Scope::AllTenants, &write, &[&name, &value, &channel, &payload])
            .await?;
        self.0.notify(Port::FleetRecords);
        rows.first().map(|row| row.get(0)).ok_or_else(|| StoreError::internal("no row was written"))
    }
}

impl FleetRecords for PostgresFleetRecordStore {
    fn changes(&self) -> Changes {
        self.0.changes(Port::FleetRecords)
    }

    fn with_prefix<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, StoreResult<Vec<(String, String)>>> {
        Box::pin(async move {
            let find = "SELECT name, value FROM fleet_records WHERE starts_with(name, $1) ORDER BY name";
            let rows = self.0.read(Port::FleetRecords, Scope::AllTenants, find, &[&prefix]).await?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }

    fn add<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(self.write(name, value, "fleet_records.value"))
    }

    fn put<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move { self.write(name, value, "excluded.value").await.map(drop) })
    }
}
