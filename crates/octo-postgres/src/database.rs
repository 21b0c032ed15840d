//! A database: sessions, the schema, and notifications of changes.

use crate::change_listener::ChangeListener;
use crate::connector::Connector;
use crate::pool::{Pool, PooledSession};
use crate::transaction::{Prelude, Scope, Transaction};
use crate::value::Value;
use crate::{PostgresError, PostgresOptions, migrations};
use octo_ports::{Changes, ConnectionUse, Port, StoreResult};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio_postgres::Row;

/// Connects when it is first used.
pub(crate) struct Database {
    schema: Arc<str>,
    pool: Arc<Pool>,
    listener: Arc<ChangeListener>,
    /// Version of the tables, once it is known to be usable.
    version: OnceCell<i64>,
}

impl Database {
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, PostgresError> {
        let connector = Arc::new(Connector::new(options)?);
        let pool = Arc::new(Pool::new(Arc::clone(&connector), options.max_connections));
        let schema: Arc<str> = options.schema.as_str().into();
        let listener = Arc::new(ChangeListener::new(connector, Arc::clone(&pool), &schema));
        Ok(Self { schema, pool, listener, version: OnceCell::new() })
    }

    pub(crate) fn changes(&self, port: Port) -> Changes {
        self.listener.subscribe(port)
    }

    /// Wakes those who wait for changes of this port in this process.
    pub(crate) fn notify(&self, port: Port) {
        self.listener.notify(port);
    }

    /// The channel and payload of `pg_notify` for changes of this port.
    pub(crate) fn notice(&self, port: Port) -> (String, &'static str) {
        self.listener.notice(port)
    }

    /// Checks that the tables exist and can be written, and returns their version.
    pub(crate) async fn check(&self) -> Result<i64, PostgresError> {
        let session = self.session().await?;
        // Fails on a standby.
        session.client.query_typed("SELECT pg_current_xact_id()::text", &[]).await?;
        Ok(self.version.get().copied().unwrap_or_default())
    }

    pub(crate) fn connections(&self) -> ConnectionUse {
        self.pool.connections()
    }

    pub(crate) async fn begin(&self, port: Port, scope: Scope<'_>) -> StoreResult<Transaction> {
        self.try_begin(port, scope).await.map_err(|error| error.into_store_error(port))
    }

    /// A transaction on all tenants that sees the tables as they are at its first statement.
    pub(crate) async fn begin_snapshot(&self, port: Port) -> StoreResult<Transaction> {
        let session = self.session().await.map_err(|error| error.into_store_error(port))?;
        let prelude = Prelude::new(&self.schema, Scope::AllTenants).read_only_snapshot();
        Ok(Transaction::new(session, prelude, port, Arc::clone(&self.listener)))
    }

    /// A transaction that reads or writes the rows of all tenants, for a copy. A reader sees them as they are at its first
    /// statement.
    pub(crate) async fn begin_copy(&self, is_reader: bool) -> StoreResult<Transaction> {
        let port = Port::Leases;
        let session = self.session().await.map_err(|error| error.into_store_error(port))?;
        let prelude = Prelude::new(&self.schema, Scope::AllTenants).for_copy();
        let prelude = if is_reader { prelude.read_only_snapshot() } else { prelude };
        Ok(Transaction::new(session, prelude, port, Arc::clone(&self.listener)))
    }

    async fn try_begin(&self, port: Port, scope: Scope<'_>) -> Result<Transaction, PostgresError> {
        let (session, slot) = match scope {
            Scope::Tenant(tenant) => {
                let (session, slot) = self.pool.tenant_session(tenant).await?;
                self.check_version(&session).await?;
                (session, Some(slot))
            }
            Scope::AllTenants => (self.session().await?, None),
        };
        let prelude = Prelude::new(&self.schema, scope);
        Ok(Transaction::new(session, prelude, port, Arc::clone(&self.listener)).with_slot(slot))
    }

    async fn session(&self) -> Result<PooledSession, PostgresError> {
        let session = self.pool.session().await?;
        self.check_version(&session).await?;
        Ok(session)
    }

    async fn check_version(&self, session: &PooledSession) -> Result<(), PostgresError> {
        self.version.get_or_try_init(|| migrations::check(&session.client, &self.schema)).await.map(drop)
    }

    /// A statement without effect, in a transaction of its own.
    pub(crate) async fn read(
        &self,
        port: Port,
        scope: Scope<'_>,
        sql: &str,
        values: &[&dyn Value],
    ) -> StoreResult<Vec<Row>> {
        let answer = match self.try_write(port, scope, sql, values).await {
            // The session was lost while it was idle.
            Err(PostgresError::Disconnected(_)) => self.try_write(port, scope, sql, values).await,
            answer => answer,
        };
        answer.map_err(|error| error.into_store_error(port))
    }

    /// A statement in a transaction of its own. If the connection is lost meanwhile, it may have been committed.
    pub(crate) async fn write(
        &self,
        port: Port,
        scope: Scope<'_>,
        sql: &str,
        values: &[&dyn Value],
    ) -> StoreResult<Vec<Row>> {
        self.try_write(port, scope, sql, values).await.map_err(|error| error.into_store_error(port))
    }

    async fn try_write(
        &self,
        port: Port,
        scope: Scope<'_>,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, PostgresError> {
        self.try_begin(port, scope).await?.query_and_commit(sql, values).await
    }
}
