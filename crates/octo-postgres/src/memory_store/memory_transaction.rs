//! A change of one memory. It begins with a lock of the owner's row, so that the hubs change a memory one after the
//! other, and each one sees what the others did.

use super::change_statement::ChangeStatement;
use super::owner_locks::OwnerLock;
use crate::database::Database;
use crate::transaction::{Scope, Transaction};
use crate::value::Value;
use octo_ports::memory::MemoryCaller;
use octo_ports::{Limit, Port, StoreError, StoreResult};
use tokio_postgres::Row;

/// Current time in microseconds.
const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::int8";

pub(super) struct MemoryOwner {
    pub(super) id: i64,
    pub(super) tenant: String,
    pub(super) call: String,
    /// Of this change. Increases strictly within a memory.
    pub(super) timestamp: i64,
    pub(super) last_entity: i64,
    bytes: i64,
}

pub(super) struct MemoryTransaction {
    pub(super) owner: MemoryOwner,
    transaction: Transaction,
    quota: i64,
    /// Released after the transaction.
    _lock: OwnerLock,
}

impl MemoryTransaction {
    pub(super) async fn begin(
        database: &Database,
        asker: &MemoryCaller,
        quota: u64,
        lock: OwnerLock,
    ) -> StoreResult<Self> {
        let (tenant, subject) = (asker.principal.tenant.as_str(), asker.principal.subject.as_str());
        let mut transaction = database.begin(Port::Memory, Scope::Tenant(tenant)).await?;
        let lock_owner = format!(
            "INSERT INTO memory_owners AS o (tenant, subject, last_change) VALUES ($1, $2, {CLOCK})
             ON CONFLICT (tenant, subject) DO UPDATE
             SET last_change = greatest(o.last_change + 1, excluded.last_change)
             RETURNING id, bytes, last_entity, last_change"
        );
        let row = transaction.query_opt(&lock_owner, &[&tenant, &subject]).await?;
        let row = row.ok_or_else(|| StoreError::internal("the memory's owner has disappeared"))?;
        let owner = MemoryOwner {
            id: row.get(0),
            tenant: tenant.to_owned(),
            call: asker.call.to_string(),
            bytes: row.get(1),
            last_entity: row.get(2),
            timestamp: row.get(3),
        };
        Ok(Self { owner, transaction, quota: i64::try_from(quota).unwrap_or(i64::MAX), _lock: lock })
    }

    /// `$1` is the owner; the given values follow.
    pub(super) async fn query(&mut self, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        let mut all: Vec<&dyn Value> = vec![&self.owner.id];
        all.extend(values);
        self.transaction.query(sql, &all).await
    }

    /// Makes the changes, by which the memory grows by so many bytes. A change that shrinks it is never refused.
    pub(super) async fn commit(mut self, changes: ChangeStatement, grown: i64) -> StoreResult<()> {
        let bytes = self.owner.bytes.saturating_add(grown);
        if grown > 0 && bytes > self.quota {
            return Err(StoreError::Full(Limit::MemoryBytes(self.quota)));
        }
        let (sql, values) = changes.finish(bytes, self.owner.last_entity);
        let values: Vec<&dyn Value> = values.iter().map(|value| -> &dyn Value { &**value }).collect();
        self.transaction.execute(&sql, &values).await?;
        self.transaction.commit().await
    }
}
