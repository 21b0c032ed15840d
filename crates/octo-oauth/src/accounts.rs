//! With whose login a server is spoken to: everybody's one, or each caller's own.

use crate::account::Account;
use crate::login_registry::{LoginEvent, LoginRegistry};
use crate::login_spec::{Auth, KeyPlacement, LoginSharing, LoginSpec};
use octo_grants::credentials::Owner;
use octo_model::Caller;
use std::sync::Arc;
use tokio::sync::broadcast;

/// The logins at one server.
#[derive(Clone)]
pub struct Accounts(AccountsKind);

#[derive(Clone)]
enum AccountsKind {
    Shared(Arc<Account>),
    PerCaller { registry: Arc<LoginRegistry>, spec: Arc<LoginSpec> },
}

/// One login for whoever uses the server. Only a hub of one person may give a person's away like this.
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

    /// The login of all, where they have one in common.
    pub fn shared(&self) -> Option<Arc<Account>> {
        match &self.0 {
            AccountsKind::Shared(one) => Some(one.clone()),
            AccountsKind::PerCaller { .. } => None,
        }
    }

    /// The login of this caller, and of nobody else where each has their own.
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

    /// Whether the server is a program that cannot be started without a key.
    pub fn needs_env_key(&self) -> bool {
        matches!(self.parts().1.auth, Auth::Key(KeyPlacement::Environment(_)))
    }

    /// Logins that begin or end in this process, at this server and others.
    pub fn login_events(&self) -> broadcast::Receiver<LoginEvent> {
        self.parts().0.events.subscribe()
    }

    /// Whether this is about a login at this server.
    pub fn concerns(&self, news: &LoginEvent) -> bool {
        self.parts().1.server == news.server
    }
}
