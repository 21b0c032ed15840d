//! Readiness checks beyond sources: disk, audit log and logins.

use crate::remedy_text::lost_login_text;
use octo_model::Caller;
use octo_oauth::LostLogin;
use octo_ports::AuditLog;
use octo_toolkit::BoxFuture;
use octo_web::{Check, CheckState, ReadinessProbe};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tools_servers::Servers;

/// Minimum interval between disk checks, since the endpoint is public.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A disk that does not respond in time is not ready.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

pub struct HubProbe {
    audit: Arc<dyn AuditLog>,
    servers: Servers,
    last: Mutex<Option<(Instant, Check)>>,
}

impl HubProbe {
    pub fn new(audit: Arc<dyn AuditLog>, servers: Servers) -> Self {
        Self { audit, servers, last: Mutex::default() }
    }

    async fn check_audit(&self) -> Check {
        let mut last = self.last.lock().await;
        if let Some((at, check)) = &*last
            && at.elapsed() < CHECK_INTERVAL
        {
            return check.clone();
        }
        let why = match tokio::time::timeout(CHECK_TIMEOUT, self.audit.check()).await {
            Ok(checked) => checked.err(),
            Err(_) => Some("the disk does not respond".to_owned()),
        };
        let state = if why.is_none() { CheckState::Ok } else { CheckState::Failed };
        let check = Check { name: "audit".to_owned(), state, reason: why };
        *last = Some((Instant::now(), check.clone()));
        check
    }
}

impl ReadinessProbe for HubProbe {
    fn hub_checks(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { vec![self.check_audit().await] })
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
                Check {
                    name: format!("login {}{whose}", login.server),
                    state: CheckState::Degraded,
                    reason: Some(format!("{} Log in again: {}", login.reason, lost_login_text(&login))),
                }
            };
            told.map(check).collect()
        })
    }
}
