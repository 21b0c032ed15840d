//! What `/ready` looks at beside sources: the disk, the audit, and logins at servers.

use octo_model::Caller;
use octo_oauth::LostLogin;
use octo_store::Store;
use octo_toolkit::BoxFuture;
use octo_web::{Check, CheckState, Probe};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tools_servers::Servers;

/// Anybody may ask, so the disk is looked at no more often than this.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A disk that hangs is not ready either.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

pub struct HubProbe {
    store: Arc<Store>,
    servers: Servers,
    last: Mutex<Option<(Instant, Check)>>,
}

impl HubProbe {
    pub fn new(store: Arc<Store>, servers: Servers) -> Self {
        Self { store, servers, last: Mutex::default() }
    }

    async fn audit(&self) -> Check {
        let mut last = self.last.lock().await;
        if let Some((at, check)) = &*last
            && at.elapsed() < CHECK_INTERVAL
        {
            return check.clone();
        }
        let store = Arc::clone(&self.store);
        let looked = tokio::task::spawn_blocking(move || store.check());
        let why = match tokio::time::timeout(CHECK_TIMEOUT, looked).await {
            Ok(Ok(Ok(_))) => None,
            Ok(Ok(Err(error))) => Some(format!("{error}. {}", error.hint())),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the disk does not answer".to_owned()),
        };
        let state = if why.is_none() { CheckState::Ok } else { CheckState::Failed };
        let check = Check { name: "audit".to_owned(), state, why };
        *last = Some((Instant::now(), check.clone()));
        check
    }
}

impl Probe for HubProbe {
    fn own(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { vec![self.audit().await] })
    }

    fn for_caller<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Vec<Check>> {
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
                    why: Some(format!("{} Log in again: {}", login.why, login.remedy())),
                }
            };
            told.map(check).collect()
        })
    }
}
