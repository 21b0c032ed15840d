//! What a backend stores of credentials: sealed records, and the sealed list of their revisions.

use super::{Owner, PendingLogin, Slot, StoredCredential};
use crate::{Changes, StoreResult};
use octo_model::{BoxFuture, Secret};

/// The sealed list of all revisions. No two are equal, not even of the same revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRevisions {
    pub revision: u64,
    pub sealed: Secret,
}

/// Records as they are stored: their secrets are sealed.
#[derive(Debug, Clone, Default)]
pub struct CredentialSet {
    pub revisions: Option<SealedRevisions>,
    pub credentials: Vec<StoredCredential>,
    pub logins: Vec<PendingLogin>,
}

/// A change of credentials.
#[derive(Debug, Clone)]
pub enum CredentialChange {
    Put(StoredCredential),
    Remove(Slot),
    /// Replaces all credentials and pending logins. A login that was taken meanwhile does not come back.
    Replace {
        credentials: Vec<StoredCredential>,
        logins: Vec<PendingLogin>,
    },
}

/// Backend of a [`CredentialStore`](super::CredentialStore). It sees sealed secrets only. Durable once
/// acknowledged, also across a power failure.
pub trait CredentialRecords: Send + Sync {
    /// Changes of credentials and pending logins.
    fn changes(&self) -> Changes;
    fn revisions(&self) -> BoxFuture<'_, StoreResult<Option<SealedRevisions>>>;
    /// The credentials of an owner for a server, and the list of the same moment.
    fn load<'a>(&'a self, owner: &'a Owner, server: &'a str) -> BoxFuture<'a, StoreResult<CredentialSet>>;
    /// Everything, at one moment.
    fn load_all(&self) -> BoxFuture<'_, StoreResult<CredentialSet>>;
    /// Makes a change and stores the list after it, both or neither. `false` if the list is no longer
    /// `before`. Refuses one credential too many.
    fn write<'a>(
        &'a self,
        before: Option<SealedRevisions>,
        after: SealedRevisions,
        change: CredentialChange,
    ) -> BoxFuture<'a, StoreResult<bool>>;
    /// Removes expired logins and stores this one, replacing one of the same owner for the same server.
    /// Refuses one login too many.
    fn put_pending(&self, login: PendingLogin, now: i64) -> BoxFuture<'_, StoreResult<()>>;
    /// Removes and returns a login: a second caller finds nothing.
    fn take_pending<'a>(&'a self, id: &'a str) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>>;
    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>>;
}
