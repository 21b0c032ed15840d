//! Stored results: an index of their owners, and their bytes in chunks.

use crate::PostgresOptions;
use crate::database::Database;
use crate::interval::Interval;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::{BoxFuture, CallId, Caller, Json, Principal};
use octo_ports::random_id::{RESULT_PREFIX, is_id, new_id};
use octo_ports::result_quota::{ResultsByOwner, choose_evicted};
use octo_ports::{Limit, Port, ResultStore, StoreError, StoreResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const CHUNK_BYTES: usize = 1 << 20;
/// Chunks per statement.
const CHUNKS_AT_ONCE: usize = 8;
/// How often this process removes expired and surplus results.
const EVICTION_INTERVAL: Duration = Duration::from_secs(60);
/// Results of this part of the quota, stored by this process, make it check sooner.
const EVICTION_SHARE: u64 = 64;

pub(crate) struct PostgresResultStore {
    database: Arc<Database>,
    ttl_micros: i64,
    quota_bytes: u64,
    eviction: Interval,
    /// Bytes stored by this process since the last check.
    unchecked_bytes: AtomicU64,
}

impl PostgresResultStore {
    pub(crate) fn new(database: Arc<Database>, options: &PostgresOptions) -> Self {
        Self {
            database,
            ttl_micros: i64::try_from(options.result_ttl.as_micros()).unwrap_or(i64::MAX),
            quota_bytes: options.result_quota_bytes,
            eviction: Interval::new(EVICTION_INTERVAL),
            unchecked_bytes: AtomicU64::new(0),
        }
    }

    async fn insert(&self, owner: &Principal, call: CallId, whole: &Json) -> StoreResult<String> {
        let handle = new_id(RESULT_PREFIX)?;
        let insert = "INSERT INTO results (handle, tenant, subject, call, size, created)
                      VALUES ($1, $2, $3, $4, $5, now_micros())";
        let put = "INSERT INTO result_chunks (handle, tenant, number, bytes)
                   SELECT $1, $2, $3 + at, bytes FROM unnest($4::bytea[]) WITH ORDINALITY AS chunk (bytes, at)";
        let size = i64::try_from(whole.bytes().len()).unwrap_or(i64::MAX);
        let mut change = self.database.begin(Port::Results, Scope::Tenant(&owner.tenant)).await?;
        let row: [&dyn Value; 5] = [&handle, &owner.tenant, &owner.subject, &call.to_string(), &size];
        change.execute(insert, &row).await?;
        let mut stored: i64 = 0;
        for part in whole.bytes().chunks(CHUNK_BYTES * CHUNKS_AT_ONCE) {
            let chunks: Vec<&[u8]> = part.chunks(CHUNK_BYTES).collect();
            change.execute(put, &[&handle, &owner.tenant, &stored, &chunks]).await?;
            stored = stored.saturating_add_unsigned(chunks.len() as u64);
        }
        change.commit().await?;
        Ok(handle)
    }

    fn is_eviction_due(&self, stored: u64) -> bool {
        let unchecked = self.unchecked_bytes.fetch_add(stored, Ordering::Relaxed).saturating_add(stored);
        let is_due = self.eviction.is_due() || unchecked > self.quota_bytes / EVICTION_SHARE;
        if is_due {
            self.unchecked_bytes.store(0, Ordering::Relaxed);
        }
        is_due
    }

    /// Removes expired and surplus results; returns their handles.
    async fn evict(&self) -> StoreResult<Vec<String>> {
        let expired = "DELETE FROM results WHERE handle IN (
                SELECT handle FROM results WHERE created <= now_micros() - $1 FOR UPDATE SKIP LOCKED
             )";
        self.write(expired, &[&self.ttl_micros]).await?;
        let quota = i64::try_from(self.quota_bytes).unwrap_or(i64::MAX);
        let total = "SELECT FROM results HAVING sum(size) > $1";
        if self.read(total, &[&quota]).await?.is_empty() {
            return Ok(Vec::new());
        }
        let mut owners = ResultsByOwner::new();
        for row in self.read("SELECT handle, tenant, subject, size FROM results ORDER BY number", &[]).await?
        {
            let owner = Principal { tenant: row.get(1), subject: row.get(2) };
            let size = row.get::<_, i64>(3).max(0).cast_unsigned();
            owners.entry(owner).or_default().push_back((row.get(0), size));
        }
        let evicted = choose_evicted(owners, self.quota_bytes);
        let remove = "DELETE FROM results WHERE handle IN (
                SELECT handle FROM results WHERE handle = ANY ($1) FOR UPDATE SKIP LOCKED
             )";
        self.write(remove, &[&evicted]).await?;
        Ok(evicted)
    }

    async fn read(&self, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<tokio_postgres::Row>> {
        self.database.read(Port::Results, Scope::AllTenants, sql, values).await
    }

    async fn write(&self, sql: &str, values: &[&dyn Value]) -> StoreResult<()> {
        self.database.write(Port::Results, Scope::AllTenants, sql, values).await.map(drop)
    }
}

impl ResultStore for PostgresResultStore {
    fn store<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async move {
            let size = whole.bytes().len() as u64;
            if size > self.quota_bytes {
                return Err(StoreError::Full(Limit::ResultBytes));
            }
            let handle = self.insert(&caller.principal, call, &whole).await?;
            if self.is_eviction_due(size) {
                match self.evict().await {
                    Ok(evicted) if evicted.contains(&handle) => {
                        return Err(StoreError::Full(Limit::ResultShare));
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "old stored results could not be removed"),
                }
            }
            Ok(handle)
        })
    }

    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async move {
            let (owner, unknown) = (&caller.principal, StoreError::NotFound(Port::Results));
            if !is_id(RESULT_PREFIX, handle) {
                return Err(unknown);
            }
            let load = "SELECT bytes, size FROM results JOIN result_chunks USING (handle)
                 WHERE handle = $1 AND results.tenant = $2 AND subject = $3 AND created > now_micros() - $4
                 ORDER BY result_chunks.number";
            let values: [&dyn Value; 4] = [&handle, &owner.tenant, &owner.subject, &self.ttl_micros];
            let scope = Scope::Tenant(&owner.tenant);
            let rows = self.database.read(Port::Results, scope, load, &values).await?;
            let Some(first) = rows.first() else { return Err(unknown) };
            let mut bytes = Vec::with_capacity(usize::try_from(first.get::<_, i64>(1)).unwrap_or(0));
            for row in rows {
                bytes.extend_from_slice(row.get(0));
            }
            Json::parse(bytes).map_err(|fault| {
                StoreError::corrupt(Port::Results, format!("the stored result {handle}: {fault}"))
            })
        })
    }
}
