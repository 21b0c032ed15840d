//! Credentials with which the hub logs in to the servers behind it, and logins that wait for a person.

use crate::{Limit, StoreError, StoreResult};
use octo_model::{BoxFuture, Caller, Principal, Secret};
use std::sync::Arc;

/// More than any answer of an authorization server needs.
pub const MAX_SECRET_BYTES: usize = 256 << 10;
/// Credentials of one owner.
pub const MAX_CREDENTIALS_PER_OWNER: usize = 1024;
/// Logins that wait at the same time, of all owners.
const MAX_PENDING_LOGINS: usize = 4096;

/// Whose a credential is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Everybody's who may use the server.
    Shared,
    Person(Principal),
}

impl Owner {
    /// Three texts that no two owners have in common.
    pub fn parts(&self) -> [&str; 3] {
        match self {
            Self::Shared => ["shared", "", ""],
            Self::Person(Principal { tenant, subject }) => ["person", tenant, subject],
        }
    }
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        Self::Person(caller.principal.clone())
    }
}

/// The one place where a credential is kept. The issuer is part of it, so that what one authorization server gave is never
/// shown to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    pub owner: Owner,
    pub server: String,
    pub issuer: String,
}

impl Slot {
    pub fn new(owner: Owner, server: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self { owner, server: server.into(), issuer: issuer.into() }
    }
}

/// A credential as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCredential {
    pub slot: Slot,
    /// Grows with every change of any credential, and never comes back.
    pub revision: u64,
    pub secret: Secret,
}

/// A login that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLogin {
    /// Nobody can guess it; not the `state` itself.
    pub id: String,
    pub owner: Owner,
    pub server: String,
    /// Seconds since 1970.
    pub expires: i64,
    pub secret: Secret,
}

/// What keeps them: the hub's store. Acknowledged means durable, also over a loss of power.
pub trait CredentialStore: Send + Sync {
    /// What an owner has for a server, the newest first.
    fn all<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Vec<StoredCredential>>>;
    fn find<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, StoreResult<Option<StoredCredential>>>;
    /// Where there are credentials, of all owners.
    fn slots(&self) -> BoxFuture<'_, StoreResult<Vec<Slot>>>;
    /// Keeps a secret and says its revision. With `over`, only in place of exactly that revision; else it is a conflict.
    fn put<'a>(
        &'a self,
        slot: &'a Slot,
        secret: Secret,
        over: Option<u64>,
    ) -> BoxFuture<'a, StoreResult<u64>>;
    /// Forgets a credential; `false` when there was none.
    fn remove<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, StoreResult<bool>>;
    /// Keeps a login in place of an earlier one of the same owner for the same server.
    fn put_pending<'a>(&'a self, waiting: PendingLogin, now: i64) -> BoxFuture<'a, StoreResult<()>>;
    /// Takes a login away: the second one to ask finds nothing.
    fn take_pending<'a>(&'a self, id: &'a str, now: i64) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>>;
    /// The login of an owner for a server, which goes on waiting.
    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
        now: i64,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>>;
}

/// Where credentials are kept.
pub type Credentials = Arc<dyn CredentialStore>;

/// Every backend refuses a secret that is too long.
pub fn check_secret(secret: &Secret) -> StoreResult<()> {
    if secret.bytes().len() <= MAX_SECRET_BYTES { Ok(()) } else { Err(StoreError::Full(Limit::SecretBytes)) }
}

/// Whether an owner may have another credential.
pub fn check_credential_count(owned: usize) -> StoreResult<()> {
    if owned < MAX_CREDENTIALS_PER_OWNER { Ok(()) } else { Err(StoreError::Full(Limit::Credentials)) }
}

/// Whether another login may wait.
pub fn check_pending_count(waiting: usize) -> StoreResult<()> {
    if waiting < MAX_PENDING_LOGINS { Ok(()) } else { Err(StoreError::Full(Limit::PendingLogins)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed_and_owners_are_never_mistaken() {
        let slot = Slot::new(Owner::Shared, "notion", "i");
        let kept = StoredCredential { slot, revision: 1, secret: Secret::new("s3cret") };
        assert!(!format!("{kept:?}").contains("s3cret"));
        let nobody = Owner::Person(Principal::new("", ""));
        assert_ne!(nobody.parts(), Owner::Shared.parts());
    }
}
