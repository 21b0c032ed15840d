//! Pool of sessions.

use crate::PostgresError;
use crate::connector::{Connector, Session};
use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Object, PoolError, RecycleError, RecycleResult, Timeouts};
use metrics::Histogram;
use octo_admission::{FairSlot, FairSlots, QueueLimits, SlotLimits};
use octo_model::Principal;
use octo_ports::ConnectionUse;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an operation waits for a session.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Sessions that are left for the hub's own work, such as leases, health checks and cleanup, if there are enough.
const RESERVED_SESSIONS: usize = 2;
/// One tenant gets four fifths of the others, rounded up.
const TENANT_FACTOR: usize = 4;

pub(crate) type PooledSession = Object<SessionManager>;

pub(crate) struct Pool {
    sessions: managed::Pool<SessionManager>,
    tenant_slots: Arc<FairSlots>,
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
            .runtime(Runtime::Tokio1)
            .build();
        // A builder with a runtime and timeouts cannot fail.
        let sessions = pool.unwrap_or_else(|error| unreachable!("{error}"));
        let tenant_slots = SlotLimits {
            tenant_factor: TENANT_FACTOR,
            caller_factor: TENANT_FACTOR,
            // Each is part of a running call, and waits for a limited time.
            queue: QueueLimits::UNLIMITED,
            ..SlotLimits::new(max_connections.saturating_sub(RESERVED_SESSIONS))
        };
        Self {
            sessions,
            tenant_slots: FairSlots::new("database", tenant_slots),
            wait_seconds: metrics::histogram!("octoprox_database_wait_seconds"),
        }
    }

    /// A session for work of the hub itself.
    pub(crate) async fn session(&self) -> Result<PooledSession, PostgresError> {
        let started = Instant::now();
        let session = self.free_session(started).await;
        self.wait_seconds.record(started.elapsed().as_secs_f64());
        session
    }

    /// A session for work of a tenant, in turn with other tenants.
    pub(crate) async fn tenant_session(
        &self,
        tenant: &str,
    ) -> Result<(PooledSession, FairSlot), PostgresError> {
        let started = Instant::now();
        let session = async {
            let (tenant, deadline) = (Principal::new(tenant, ""), (started + WAIT_TIMEOUT).into());
            let slot = self.tenant_slots.acquire(&tenant, deadline).await;
            let slot = slot.map_err(|_| PostgresError::Exhausted)?;
            Ok((self.free_session(started).await?, slot))
        };
        let session = session.await;
        self.wait_seconds.record(started.elapsed().as_secs_f64());
        session
    }

    /// Waits until [`WAIT_TIMEOUT`] after `started`.
    async fn free_session(&self, started: Instant) -> Result<PooledSession, PostgresError> {
        let wait = Some(WAIT_TIMEOUT.saturating_sub(started.elapsed()));
        let session = self.sessions.timeout_get(&Timeouts { wait, ..Timeouts::default() }).await;
        session.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => PostgresError::Exhausted,
            other => PostgresError::Disconnected(other.to_string()),
        })
    }

    pub(crate) fn connections(&self) -> ConnectionUse {
        let status = self.sessions.status();
        let (idle, waiting) = (status.available, status.waiting + self.tenant_slots.waiting());
        ConnectionUse { in_use: status.size.saturating_sub(idle), idle, waiting }
    }
}
