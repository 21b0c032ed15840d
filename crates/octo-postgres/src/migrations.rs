//! Versions of the tables. A migration is never changed once it was released: a new one follows it.

use crate::audit_store::audit_partitions::{self, Month};
use crate::audit_store::now_micros;
use crate::connector::Connector;
use crate::options::Schema;
use crate::value::{Value, typed};
use crate::{PostgresError, PostgresOptions};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

struct Migration {
    sql: &'static [&'static str],
    /// The oldest version of the tables that a hub may know and still use these. Older hubs go on during a rolling
    /// upgrade if it does not exceed theirs.
    compatible: i64,
}

/// In order, from version 1.
const MIGRATIONS: &[Migration] = &[
    Migration {
        sql: &[
            include_str!("migrations/v1/functions.sql"),
            include_str!("migrations/v1/apis.sql"),
            include_str!("migrations/v1/audit.sql"),
            include_str!("migrations/v1/credentials.sql"),
            include_str!("migrations/v1/leases.sql"),
            include_str!("migrations/v1/listings.sql"),
            include_str!("migrations/v1/memory.sql"),
            include_str!("migrations/v1/pins.sql"),
            include_str!("migrations/v1/results.sql"),
            include_str!("migrations/v1/runs.sql"),
        ],
        compatible: 1,
    },
    Migration {
        sql: &[include_str!("migrations/v2/rate_buckets.sql"), include_str!("migrations/v2/sessions.sql")],
        compatible: 1,
    },
    Migration { sql: &[include_str!("migrations/v3/audit_append.sql")], compatible: 1 },
    Migration { sql: &[include_str!("migrations/v4/fleet_records.sql")], compatible: 1 },
];

const CURRENT_VERSION: i64 = MIGRATIONS.len() as i64;

/// Result of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// Version before; 0 for new tables.
    pub from: i64,
    pub to: i64,
}

/// Creates or upgrades the tables. Several processes may do so at once; each version is applied once, in one
/// transaction.
pub async fn migrate(options: &PostgresOptions) -> Result<Migrated, PostgresError> {
    let session = Connector::new(options)?.open(|_| {}).await?;
    let client = &session.client;
    let mut from = None;
    loop {
        client.batch_execute("BEGIN").await?;
        let version = next_version(client, &options.schema).await?;
        let from = *from.get_or_insert(version);
        let Some(migration) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version))
        else {
            audit_partitions::create(client, &Month::ahead_of(now_micros())).await?;
            client.batch_execute("COMMIT").await?;
            return Ok(Migrated { from, to: version });
        };
        for sql in migration.sql {
            client.batch_execute(sql).await?;
        }
        let values: [&dyn Value; 2] = [&(version + 1), &migration.compatible];
        let record = "INSERT INTO schema_versions (version, compatible) VALUES ($1, $2)";
        client.execute_typed(record, &typed(&values)).await?;
        client.batch_execute("COMMIT").await?;
    }
}

/// Locks the schema, which is created if need be, for the transaction, and returns the version of its tables.
async fn next_version(client: &Client, schema: &Schema) -> Result<i64, PostgresError> {
    let name = schema.as_str();
    let values: [&dyn Value; 1] = [&name];
    client
        .query_typed("SELECT pg_advisory_xact_lock(hashtextextended('octoprox ' || $1, 0))", &typed(&values))
        .await?;
    // `IF NOT EXISTS` would require the right to create schemas even if it exists.
    let known = client.query_typed("SELECT FROM pg_namespace WHERE nspname = $1", &typed(&values)).await?;
    if known.is_empty() {
        client.batch_execute(&format!("CREATE SCHEMA \"{name}\"")).await?;
    }
    client.query_typed("SELECT set_config('search_path', $1, true)", &typed(&values)).await?;
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS schema_versions (
                version int8 PRIMARY KEY,
                compatible int8 NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT now()
            )",
        )
        .await?;
    let versions = client.query_typed("SELECT coalesce(max(version), 0) FROM schema_versions", &[]).await?;
    Ok(versions.first().map_or(0, |row| row.get(0)))
}

/// Checks that this version of octoprox can use the tables, and returns their version.
pub(crate) async fn check(client: &Client, schema: &str) -> Result<i64, PostgresError> {
    let versions = format!(
        "SELECT coalesce(max(version), 0), coalesce(max(compatible), 0) FROM \"{schema}\".schema_versions"
    );
    let missing = || PostgresError::NotMigrated { schema: schema.to_owned() };
    let rows = match client.query_typed(&versions, &[]).await {
        Err(error) if is_undefined(error.code()) => return Err(missing()),
        answer => answer?,
    };
    let (version, compatible) =
        rows.first().map_or((0, 0), |row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
    if version < CURRENT_VERSION {
        return Err(missing());
    }
    if compatible > CURRENT_VERSION {
        return Err(PostgresError::Newer { schema: schema.to_owned() });
    }
    Ok(version)
}

fn is_undefined(state: Option<&SqlState>) -> bool {
    state.is_some_and(|state| [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(state))
}
