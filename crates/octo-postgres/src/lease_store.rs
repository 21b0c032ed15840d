//! Leases as rows. The clock is that of the database, and tokens come from one sequence, drawn while the row is
//! locked.

pub(crate) mod fleet_record_store;

use crate::database::Database;
use crate::interval::Interval;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::BoxFuture;
use octo_ports::leases::MAX_LEASE_DURATION;
use octo_ports::{Changes, Lease, Leases, Port, StoreResult};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// A lease that ends later than this was acquired with a wrong clock.
const LATEST: &str = "clock_timestamp() + interval '300 s'";
/// Whether a row is held.
pub(crate) const HELD: &str =
    "until > clock_timestamp() AND until <= clock_timestamp() + interval '300 s' AND holder IS NOT NULL";
/// How often this process removes what was released long ago.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct PostgresLeaseStore {
    database: Arc<Database>,
    /// Name of this process.
    holder: Arc<str>,
    cleanup: Arc<Interval>,
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.min(MAX_LEASE_DURATION).as_micros()).unwrap_or(i64::MAX)
}

impl PostgresLeaseStore {
    pub(crate) fn new(database: Arc<Database>, node: &str) -> Self {
        let holder = format!("{node} {}", std::process::id()).into();
        Self { database, holder, cleanup: Arc::new(Interval::new(CLEANUP_INTERVAL)) }
    }

    /// Whether the lease with this name is held; both are expressions.
    pub(crate) fn is_held(name: &str) -> String {
        format!("EXISTS (SELECT FROM leases WHERE leases.name = {name} AND {HELD})")
    }

    async fn write(&self, sql: &str, values: &[&dyn Value]) -> StoreResult<Option<Row>> {
        let rows = self.database.write(Port::Leases, Scope::AllTenants, sql, values).await?;
        Ok(rows.into_iter().next())
    }
}

impl Leases for PostgresLeaseStore {
    fn changes(&self) -> Changes {
        self.database.changes(Port::Leases)
    }

    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration) -> BoxFuture<'a, StoreResult<Option<Lease>>> {
        Box::pin(async move {
            let acquire = format!(
                "WITH acquired AS (
                    INSERT INTO leases (name, holder, until, token)
                    VALUES ($1, $2, clock_timestamp() + $3 * interval '1 us', nextval('lease_tokens'))
                    ON CONFLICT (name) DO UPDATE SET
                        holder = $2,
                        until = clock_timestamp() + $3 * interval '1 us',
                        token = nextval('lease_tokens')
                    WHERE leases.until <= clock_timestamp() OR leases.until > {LATEST}
                    RETURNING token
                 )
                 SELECT token, pg_notify($4, $5) FROM acquired"
            );
            let (channel, payload) = self.database.notice(Port::Leases);
            let values: [&dyn Value; 5] = [&name, &&*self.holder, &micros(ttl), &channel, &payload];
            let Some(row) = self.write(&acquire, &values).await? else { return Ok(None) };
            self.database.notify(Port::Leases);
            Ok(Some(Lease { name: name.to_owned(), token: row.get::<_, i64>(0).cast_unsigned() }))
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let renew = "UPDATE leases SET until = clock_timestamp() + $3 * interval '1 us'
                         WHERE name = $1 AND token = $2 AND holder IS NOT NULL RETURNING token";
            let renewed = self.write(renew, &[&lease.name, &lease.token.cast_signed(), &micros(ttl)]).await?;
            Ok(renewed.is_some())
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let release = "WITH released AS (
                    UPDATE leases SET holder = NULL, until = clock_timestamp()
                    WHERE name = $1 AND token = $2 AND holder IS NOT NULL RETURNING name
                 )
                 SELECT pg_notify($3, $4) FROM released";
            let (channel, payload) = self.database.notice(Port::Leases);
            let values: [&dyn Value; 4] = [&lease.name, &lease.token.cast_signed(), &channel, &payload];
            if self.write(release, &values).await?.is_some() {
                self.database.notify(Port::Leases);
            }
            if self.cleanup.is_due() {
                let cleanup = "DELETE FROM leases WHERE until < clock_timestamp() - interval '1 day'";
                self.write(cleanup, &[]).await?;
            }
            Ok(())
        })
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        Box::pin(async move {
            let find = format!("SELECT holder FROM leases WHERE name = $1 AND {HELD}");
            let rows = self.database.read(Port::Leases, Scope::AllTenants, &find, &[&name]).await?;
            Ok(rows.first().map(|row| row.get(0)))
        })
    }
}
