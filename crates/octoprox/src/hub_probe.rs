//! Readiness checks beyond sources: audit log, database, fleet and logins.

use crate::fleet::Fleet;
use crate::remedy_text::lost_login_text;
use octo_model::Caller;
use octo_oauth::LostLogin;
use octo_ports::{AuditLog, HealthCheck};
use octo_toolkit::BoxFuture;
use octo_web::{Check, CheckState, ReadinessProbe};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tools_servers::Servers;

/// Minimum interval between checks, since the endpoint is public.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A disk or a database that does not respond in time is not ready.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

pub struct HubProbe {
    audit: Arc<dyn AuditLog>,
    /// The database that hubs share, if there is one.
    database: Option<Arc<dyn HealthCheck>>,
    fleet: Option<Fleet>,
    servers: Servers,
    last: Mutex<Option<(Instant, Vec<Check>)>>,
}

impl HubProbe {
    pub fn new(
        audit: Arc<dyn AuditLog>,
        database: Option<Arc<dyn HealthCheck>>,
        fleet: Option<Fleet>,
        servers: Servers,
    ) -> Self {
        Self { audit, database, fleet, servers, last: Mutex::default() }
    }

    async fn store_checks(&self) -> Vec<Check> {
        let mut last = self.last.lock().await;
        if let Some((at, checks)) = &*last
            && at.elapsed() < CHECK_INTERVAL
        {
            return checks.clone();
        }
        let (audit, database) = tokio::join!(self.check_audit(), self.check_database());
        let checks: Vec<Check> = [audit].into_iter().chain(database).collect();
        *last = Some((Instant::now(), checks.clone()));
        checks
    }

    async fn check_audit(&self) -> Check {
        match tokio::time::timeout(CHECK_TIMEOUT, self.audit.check()).await {
            Ok(Ok(())) => Check::ok("audit"),
            Ok(Err(why)) => Check::problem("audit", CheckState::Failed, why),
            Err(_) => Check::problem("audit", CheckState::Failed, no_response(self.database.is_some())),
        }
    }

    async fn check_database(&self) -> Option<Check> {
        let database = self.database.as_ref()?;
        Some(match tokio::time::timeout(CHECK_TIMEOUT, database.check_space()).await {
            Ok(Ok(_)) => Check::ok("database"),
            Ok(Err(problem)) => {
                let reason = format!("{}. {}", problem.reason, problem.hint);
                Check::problem("database", CheckState::Failed, reason)
            }
            Err(_) => Check::problem("database", CheckState::Failed, no_response(true)),
        })
    }
}

fn no_response(is_database: bool) -> &'static str {
    if is_database { "the database does not respond" } else { "the disk does not respond" }
}

impl ReadinessProbe for HubProbe {
    fn hub_checks(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async {
            let mut checks = self.store_checks().await;
            checks.extend(self.fleet.iter().flat_map(Fleet::checks));
            checks
        })
    }

    fn caller_checks<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(async move {
            let known = self.servers.all();
            let is_used = |name: &str| {
                known.get(name).is_some_and(|one| one.disabled.is_none() && one.source.is_some())
            };
            let lost = self.servers.logins().lost_logins().await.unwrap_or_default().into_iter();
            let told =
                lost.filter(|login| is_used(&login.server) && (login.concerns(caller) || caller.is_admin()));
            let check = |login: LostLogin| {
                let whose = login.caller().map(|caller| format!(" of {caller}")).unwrap_or_default();
                let reason = format!("{} Log in again: {}", login.reason, lost_login_text(&login));
                Check::problem(format!("login {}{whose}", login.server), CheckState::Degraded, reason)
            };
            told.map(check).collect()
        })
    }
}
