//! Pool of sessions.

use crate::PostgresError;
use crate::connector::{Connector, Session};
use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Object, PoolError, RecycleError, RecycleResult};
use metrics::Histogram;
use octo_ports::ConnectionUse;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an operation waits for a session.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) type PooledSession = Object<SessionManager>;

pub(crate) struct Pool {
    sessions: managed::Pool<SessionManager>,
    wait_seconds: Histogram,
}

pub(crate) struct SessionManager(Arc<Connector>);

impl managed::Manager for SessionManager {
    type Type = Session;
    type Error = PostgresError;

    async fn create(&self) -> Result<Session, PostgresError> {
        self.0.open(|_| {}).await
    }

    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<PostgresError> {
        if session.client.is_closed() { Err(RecycleError::message("closed")) } else { Ok(()) }
    }
}

/// Closes a session whose server is gone, and all that are idle: they are likely to be of the same server.
pub(crate) fn discard(session: PooledSession) {
    if let Some(pool) = PooledSession::pool(&session) {
        pool.retain(|_, _| false);
    }
    drop(PooledSession::take(session));
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, max_connections: usize) -> Self {
        let pool = managed::Pool::builder(SessionManager(connector))
            .max_size(max_connections.max(1))
            .wait_timeout(Some(WAIT_TIMEOUT))
            .runtime(Runtime::Tokio1)
            .build();
        // A builder with a runtime and timeouts cannot fail.
        let sessions = pool.unwrap_or_else(|error| unreachable!("{error}"));
        Self { sessions, wait_seconds: metrics::histogram!("octoprox_database_wait_seconds") }
    }

    pub(crate) async fn session(&self) -> Result<PooledSession, PostgresError> {
        let started = Instant::now();
        let session = self.sessions.get().await;
        self.wait_seconds.record(started.elapsed().as_secs_f64());
        session.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => PostgresError::Exhausted,
            other => PostgresError::Disconnected(other.to_string()),
        })
    }

    pub(crate) fn connections(&self) -> ConnectionUse {
        let status = self.sessions.status();
        let (idle, waiting) = (status.available, status.waiting);
        ConnectionUse { in_use: status.size.saturating_sub(idle), idle, waiting }
    }
}
