//! Token buckets as rows. A slice is leased by one statement, which counts by the clock of the database while the row is
//! locked.

use crate::database::Database;
use crate::interval::Interval;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::BoxFuture;
use octo_ports::rate_buckets::{CALL_PARTS, TERM_DURATION};
use octo_ports::{Port, RateBucket, RateBuckets, ReturnedSlice, Slice, StoreError, StoreResult};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// How often this process removes buckets that are full.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
const TERM_MICROS: i64 = TERM_DURATION.as_micros() as i64;

pub(crate) struct PostgresRateBucketStore {
    database: Arc<Database>,
    cleanup: Interval,
    lease: String,
}

impl PostgresRateBucketStore {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database, cleanup: Interval::new(CLEANUP_INTERVAL), lease: lease_statement() }
    }

    /// Removes full buckets without slices, beside the calls: a row that is missing means the same.
    fn remove_full(&self) {
        let database = Arc::clone(&self.database);
        tokio::spawn(async move {
            let remove = format!(
                "DELETE FROM rate_buckets WHERE (rule, tenant, subject) IN (
                    SELECT rule, tenant, subject FROM rate_buckets
                    WHERE used_at + used / per_minute < now_micros() AND (term + 2) * {TERM_MICROS} < now_micros()
                    FOR UPDATE SKIP LOCKED
                 )"
            );
            if let Err(error) = database.write(Port::RateBuckets, Scope::AllTenants, &remove, &[]).await {
                tracing::warn!(%error, "full buckets of rate limits could not be removed");
            }
        });
    }
}

/// 1 to 3: identity. 4: capacity. 5: calls per minute. 6: wanted. 7 to 9: calls of the slice that is taken back, unused
/// ones, and its term.
///
/// What slices occupy is not regained while they are valid, so time passes in three parts: until the slices of the term
/// before end, until those of the term end, and until now. A crash of the server may lose slices of its last moments: a
/// commit does not wait for the disk.
fn lease_statement() -> String {
    let calls = format!("least($6, $4) * {CALL_PARTS}");
    let regained = |time: &str, used: &str| format!("least({time}, {used} / $5 + 1) * $5");
    let before = regained("greatest(end_before - bucket.used_at, 0)", "bucket.used");
    let (within, after) =
        (regained("end_within - end_before", "used_1"), regained("now - end_within", "used_2"));
    format!(
        "INSERT INTO rate_buckets AS bucket
            (rule, tenant, subject, per_minute, used, used_at, term, leased, leased_before, granted)
         SELECT $1, $2, $3, $5, {calls}, now, now / {TERM_MICROS}, greatest(least($6, $4) - 1, 0), 0, least($6, $4)
         FROM (SELECT now_micros() AS now) AS clock
         ON CONFLICT (rule, tenant, subject) DO UPDATE
         SET (used, used_at, term, leased, leased_before, granted) = (
            SELECT used_4 + calls * {CALL_PARTS}, now, this_term, held - back + greatest(calls - 1, 0),
                held_before - back_before, calls
            FROM (SELECT now_micros() AS now) AS clock
            CROSS JOIN LATERAL (SELECT now / {TERM_MICROS} AS this_term,
                least(now, (bucket.term + 1) * {TERM_MICROS}) AS end_before,
                least(now, (bucket.term + 2) * {TERM_MICROS}) AS end_within) AS times
            CROSS JOIN LATERAL (SELECT
                greatest(bucket.used - {before}, (bucket.leased + bucket.leased_before) * {CALL_PARTS}) AS used_1) AS one
            CROSS JOIN LATERAL (SELECT greatest(used_1 - {within}, bucket.leased * {CALL_PARTS}) AS used_2) AS two
            CROSS JOIN LATERAL (SELECT greatest(used_2 - {after}, 0) AS used_3) AS three
            CROSS JOIN LATERAL (SELECT
                CASE this_term WHEN bucket.term THEN bucket.leased ELSE 0 END AS held,
                CASE this_term WHEN bucket.term THEN bucket.leased_before WHEN bucket.term + 1 THEN bucket.leased
                    ELSE 0 END AS held_before) AS terms
            CROSS JOIN LATERAL (SELECT
                CASE this_term WHEN $9 THEN least(held, $7) ELSE 0 END AS back,
                CASE this_term WHEN $9 + 1 THEN least(held_before, $7) ELSE 0 END AS back_before) AS taken_back
            CROSS JOIN LATERAL (SELECT used_3 - least(back + back_before, $8) * {CALL_PARTS} AS used_4) AS four
            CROSS JOIN LATERAL (SELECT
                least($6, greatest(($4 * {CALL_PARTS} - used_4) / {CALL_PARTS}, 0)) AS calls) AS slice
         )
         RETURNING granted, term, (term + 2) * {TERM_MICROS} - used_at,
            (used + {CALL_PARTS} - $4 * {CALL_PARTS} + $5 - 1) / $5, set_config('synchronous_commit', 'off', true)"
    )
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0).cast_unsigned())
}

impl RateBuckets for PostgresRateBucketStore {
    fn lease<'a>(
        &'a self,
        bucket: &'a RateBucket,
        wanted: u32,
        returned: Option<ReturnedSlice>,
    ) -> BoxFuture<'a, StoreResult<Slice>> {
        Box::pin(async move {
            let (calls, unused, term) = returned.map_or((0, 0, 0), |slice| {
                (i64::from(slice.calls.saturating_sub(1)), i64::from(slice.unused), slice.term)
            });
            let numbers = [bucket.capacity, bucket.per_minute, wanted].map(i64::from);
            let [capacity, per_minute, wanted] = &numbers;
            let (tenant, subject) = (&bucket.principal.tenant, &bucket.principal.subject);
            let values: [&dyn Value; 9] =
                [&bucket.rule, tenant, subject, capacity, per_minute, wanted, &calls, &unused, &term];
            let scope = Scope::Tenant(tenant);
            let rows = self.database.write(Port::RateBuckets, scope, &self.lease, &values).await?;
            if self.cleanup.is_due() {
                self.remove_full();
            }
            let row: &Row = rows.first().ok_or_else(|| StoreError::internal("a bucket without a row"))?;
            Ok(Slice {
                calls: u32::try_from(row.get::<_, i64>(0)).unwrap_or(0),
                term: row.get(1),
                valid_for: duration(row.get(2)),
                retry_after: duration(row.get(3)),
            })
        })
    }
}
