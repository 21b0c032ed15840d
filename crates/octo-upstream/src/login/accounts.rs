//! With whose login a server is spoken to: everybody's one, or each caller's own.

use super::account::Account;
use super::settings::{Auth, KeyPlace, LoginSpec, Whose};
use super::shelf::{Settled, Shelf};
use octo_grants::credentials::Owner;
use octo_model::Caller;
use std::sync::Arc;
use tokio::sync::broadcast;

/// The logins at one server.
#[derive(Clone)]
pub struct Accounts(Held);

#[derive(Clone)]
enum Held {
    One(Arc<Account>),
    Each { shelf: Arc<Shelf>, spec: Arc<LoginSpec> },
}

/// One login for whoever uses the server. Only a hub of one person may give a person's away like this.
impl From<Arc<Account>> for Accounts {
    fn from(one: Arc<Account>) -> Self {
        Self(Held::One(one))
    }
}

impl Accounts {
    pub(super) fn new(shelf: Arc<Shelf>, spec: Arc<LoginSpec>) -> Self {
        match spec.whose {
            Whose::Shared => Arc::new(Account::new(shelf, spec, Owner::Shared)).into(),
            Whose::Person => Self(Held::Each { shelf, spec }),
        }
    }

    pub(crate) fn is_per_person(&self) -> bool {
        matches!(self.0, Held::Each { .. })
    }

    /// The login of all, where they have one in common.
    pub(crate) fn everybodys(&self) -> Option<Arc<Account>> {
        match &self.0 {
            Held::One(one) => Some(one.clone()),
            Held::Each { .. } => None,
        }
    }

    /// The login of this caller, and of nobody else where each has their own.
    pub(crate) fn of(&self, caller: &Caller) -> Arc<Account> {
        match &self.0 {
            Held::One(one) => one.clone(),
            Held::Each { shelf, spec } => {
                Arc::new(Account::new(shelf.clone(), spec.clone(), Owner::from(caller)))
            }
        }
    }

    fn parts(&self) -> (&Shelf, &LoginSpec) {
        match &self.0 {
            Held::One(one) => one.parts(),
            Held::Each { shelf, spec } => (shelf, spec),
        }
    }

    /// Whether the server is a program that cannot be started without a key.
    pub(crate) fn is_variable(&self) -> bool {
        matches!(self.parts().1.auth, Auth::Key(KeyPlace::Environment(_)))
    }

    /// Logins that begin or end in this process, at this server and others.
    pub(crate) fn news(&self) -> broadcast::Receiver<Settled> {
        self.parts().0.news.subscribe()
    }

    /// Whether this is about a login at this server.
    pub(crate) fn concerns(&self, news: &Settled) -> bool {
        self.parts().1.server == news.server
    }
}
