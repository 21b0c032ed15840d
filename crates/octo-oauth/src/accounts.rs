//! Selects the login for a server: a shared one, or one per caller.

use crate::account::Account;
use crate::login_registry::{LoginEvent, LoginRegistry};
use crate::login_spec::{Auth, KeyPlacement, LoginSharing, LoginSpec};
use octo_model::Caller;
use octo_ports::{Changes, Owner};
use std::sync::Arc;
use tokio::sync::broadcast;

/// Logins at one server.
#[derive(Clone)]
pub struct Accounts(AccountsKind);

#[derive(Clone)]
enum AccountsKind {
    Shared(Arc<Account>),
    PerCaller { registry: Arc<LoginRegistry>, spec: Arc<LoginSpec> },
}

/// One login for all callers of the server. A personal login may be shared like this only in a single-user hub.
impl From<Arc<Account>> for Accounts {
    fn from(one: Arc<Account>) -> Self {
        Self(AccountsKind::Shared(one))
    }
}

impl Accounts {
    pub(crate) fn new(registry: Arc<LoginRegistry>, spec: Arc<LoginSpec>) -> Self {
        match spec.sharing {
            LoginSharing::Shared => Arc::new(Account::new(registry, spec, Owner::Shared)).into(),
            LoginSharing::PerCaller => Self(AccountsKind::PerCaller { registry, spec }),
        }
    }

    pub fn is_per_person(&self) -> bool {
        matches!(self.0, AccountsKind::PerCaller { .. })
    }

    /// The shared login, if there is one.
    pub fn shared(&self) -> Option<Arc<Account>> {
        match &self.0 {
            AccountsKind::Shared(one) => Some(one.clone()),
            AccountsKind::PerCaller { .. } => None,
        }
    }

    /// Login of this caller; the shared one only if logins are shared.
    pub fn for_caller(&self, caller: &Caller) -> Arc<Account> {
        match &self.0 {
            AccountsKind::Shared(one) => one.clone(),
            AccountsKind::PerCaller { registry, spec } => {
                Arc::new(Account::new(registry.clone(), spec.clone(), Owner::from(caller)))
            }
        }
    }

    fn parts(&self) -> (&LoginRegistry, &LoginSpec) {
        match &self.0 {
            AccountsKind::Shared(one) => one.parts(),
            AccountsKind::PerCaller { registry, spec } => (registry, spec),
        }
    }

    /// Whether the server is a program that needs a key to start.
    pub fn needs_env_key(&self) -> bool {
        matches!(self.parts().1.auth, Auth::Key(KeyPlacement::Environment(_)))
    }

    /// Logins and logouts in this process, at this server and others.
    pub fn login_events(&self) -> broadcast::Receiver<LoginEvent> {
        self.parts().0.events.subscribe()
    }

    /// Changes of stored logins, also by other processes.
    pub fn changes(&self) -> Changes {
        self.parts().0.store.changes()
    }

    /// Whether an event is about this server.
    pub fn concerns(&self, news: &LoginEvent) -> bool {
        self.parts().1.server == news.server
    }
}
