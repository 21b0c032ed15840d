//! Session pool. A session is reset before another call uses it.

use super::db_session::Session;
use super::dsn::Login;
use super::lease::Lease;
use super::{auth, server_error};
use octo_model::ToolError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum age of a session, so that changed privileges take effect.
const MAX_SESSION_AGE: Duration = Duration::from_secs(600);

/// Roles besides superusers that a transaction does not confine.
const PRIVILEGED_ROLE_QUERY: &str = "SELECT r.rolname FROM pg_catalog.pg_roles r WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER') \
     AND (r.rolsuper OR r.rolreplication OR r.rolname IN ('pg_execute_server_program', 'pg_read_server_files', \
     'pg_write_server_files', 'pg_signal_backend')) ORDER BY r.rolsuper DESC, r.rolname LIMIT 1";

/// Makes text output independent of the server's settings.
const SESSION_SETTINGS: &str = "SET datestyle = 'ISO'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'hex'; \
     SET extra_float_digits = 3; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; \
     SET idle_in_transaction_session_timeout = '60s'";

/// Purpose of a pool's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolMode {
    Reads,
    Writes,
}

/// Sessions of one login.
#[derive(Clone)]
pub struct Pool(pub(super) Arc<PoolState>);

pub(super) struct PoolState {
    pub name: String,
    pub login: Login,
    mode: PoolMode,
    superuser: bool,
    max_message_bytes: usize,
    idle: Mutex<Vec<Session>>,
    pub permits: Arc<Semaphore>,
    size: usize,
}

impl Pool {
    pub(super) fn new(
        name: &str,
        login: Login,
        purpose: PoolMode,
        size: usize,
        superuser: bool,
        longest: usize,
    ) -> Self {
        Self(Arc::new(PoolState {
            name: name.to_owned(),
            login,
            mode: purpose,
            superuser,
            max_message_bytes: longest,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(size)),
            size,
        }))
    }

    /// Returns a reset session or a new one. Waits for a free one for at most `patience`.
    pub async fn acquire(&self, patience: Duration) -> Result<Lease, ToolError> {
        let shared = &self.0;
        let turn = tokio::time::timeout(patience, Arc::clone(&shared.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = turn else {
            return Err(ToolError::unavailable(format!(
                "All {} sessions of the database `{}` are busy.",
                shared.size, shared.name
            ))
            .hint("Try again when other statements have completed.")
            .retry_after(server_error::RETRY_DELAY));
        };
        let session = match shared.idle_session() {
            Some(session) => session,
            None => shared.open_session().await?,
        };
        Ok(Lease::new(session, permit, Arc::clone(shared)))
    }

    /// Number of open sessions, idle or not.
    pub fn open_count(&self) -> usize {
        self.0.idle().len() + self.0.size - self.0.permits.available_permits()
    }
}

impl PoolState {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_session(&self) -> Option<Session> {
        let mut idle = self.idle();
        while let Some(session) = idle.pop() {
            if session.opened_at.elapsed() < MAX_SESSION_AGE && session.is_usable() {
                return Some(session);
            }
        }
        None
    }

    async fn open_session(&self) -> Result<Session, ToolError> {
        let mut session = auth::open(&self.name, &self.login, self.max_message_bytes).await?;
        let reaching = self.run_statements(&mut session, &[PRIVILEGED_ROLE_QUERY]).await?;
        if let (Some(role), false) = (reaching.first().and_then(|row| row.first()), self.superuser) {
            let role = if role == &self.login.user {
                "is a superuser or may replicate"
            } else {
                "has too many privileges"
            };
            session.close().await;
            return Err(ToolError::denied(format!(
                "The role of the database `{}` {role}: a statement could access files, programs or \
                 other sessions of the server, which no transaction can roll back.",
                self.name
            ))
            .hint(
                "Ask the operator for a role with minimal privileges, such as CREATE ROLE reader LOGIN and \
                 GRANT pg_read_all_data TO reader, or to accept this one in the settings.",
            ));
        }
        let settings = self.settings();
        self.run_statements(&mut session, &[&settings]).await?;
        Ok(session)
    }

    async fn run_statements(
        &self,
        session: &mut Session,
        statements: &[&str],
    ) -> Result<Vec<Vec<String>>, ToolError> {
        match tokio::time::timeout(self.login.connect_timeout, session.run(statements)).await {
            Ok(Ok(Ok(rows))) => Ok(rows),
            Ok(Ok(Err(said))) => Err(server_error::login_error(&self.name, &said)),
            Ok(Err(error)) => Err(server_error::connection_error(&self.name, error)),
            Err(_) => Err(server_error::connection_error(&self.name, "timed out")),
        }
    }

    /// Sessions that may write retain their role's default for read-only transactions.
    fn settings(&self) -> String {
        match self.mode {
            PoolMode::Reads => format!("{SESSION_SETTINGS}; SET default_transaction_read_only = on"),
            PoolMode::Writes => SESSION_SETTINGS.to_owned(),
        }
    }

    /// Returns a session to the pool after discarding all state that a statement can leave. Closes it if that fails.
    pub async fn restore(&self, mut session: Session) {
        if session.opened_at.elapsed() < MAX_SESSION_AGE
            && self.run_statements(&mut session, &["ROLLBACK", "DISCARD ALL", &self.settings()]).await.is_ok()
        {
            self.idle().push(session);
        } else {
            session.close().await;
        }
    }
}
