//! Credentials of upstream servers, and pending logins.

mod credential_records;
mod credential_store;
mod credential_transfer;
mod revision_list;

use crate::{Limit, Port, StoreError, StoreResult};
use octo_model::{Caller, Principal, Secret};

pub use credential_records::{CredentialChange, CredentialRecords, CredentialSet, SealedRevisions};
pub use credential_store::{CredentialStore, Credentials};
pub use credential_transfer::{CredentialSealer, open_credentials};

/// More than any response of an authorization server needs.
pub const MAX_SECRET_BYTES: usize = 256 << 10;
/// Maximum credentials per owner.
pub const MAX_CREDENTIALS_PER_OWNER: usize = 1024;
/// Maximum pending logins, of all owners.
const MAX_PENDING_LOGINS: usize = 4096;

/// Owner of a credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Shared by everyone who may use the server.
    Shared,
    Person(Principal),
}

impl Owner {
    /// Three strings that are unique to the owner.
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

/// The location of a credential. It includes the issuer, so that a credential of one authorization server is
/// never sent to another.
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

/// A stored credential. In a backend its secret is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCredential {
    pub slot: Slot,
    /// Increases with every change of any credential, and is never reused.
    pub revision: u64,
    pub secret: Secret,
}

/// A login in progress. In a backend its secret is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLogin {
    /// Unguessable; not the `state` itself.
    pub id: String,
    pub owner: Owner,
    pub server: String,
    /// Seconds since 1970.
    pub expires: i64,
    pub secret: Secret,
}

/// Refuses a secret that is too long.
fn check_secret(secret: &Secret) -> StoreResult<()> {
    if secret.bytes().len() <= MAX_SECRET_BYTES { Ok(()) } else { Err(StoreError::Full(Limit::SecretBytes)) }
}

/// Checks whether an owner may have another credential.
pub fn check_credential_count(owned: usize) -> StoreResult<()> {
    if owned < MAX_CREDENTIALS_PER_OWNER { Ok(()) } else { Err(StoreError::Full(Limit::Credentials)) }
}

/// Checks whether another login may be pending.
pub fn check_pending_count(waiting: usize) -> StoreResult<()> {
    if waiting < MAX_PENDING_LOGINS { Ok(()) } else { Err(StoreError::Full(Limit::PendingLogins)) }
}

/// A program other than a hub has changed a record.
fn tampered() -> StoreError {
    tracing::error!("stored credentials were modified by another program");
    StoreError::corrupt(Port::Credentials, "stored credentials were changed")
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
