//! Credentials on their way from one backend to another, whose keys differ.

use super::credential_store::{seal_credential, seal_login, unseal_credential, unseal_login, wrong_key};
use super::revision_list::RevisionList;
use super::{CredentialSet, PendingLogin, SealedRevisions, StoredCredential, tampered};
use crate::StoreResult;
use crate::seal::{Keyring, Seal};
use crate::transfer::TransferRecord;

/// Opens all records, in a stable order. Fails if one was tampered with; logins that cannot be opened are left out, as
/// no one can end them.
pub fn open_credentials(sealed: &CredentialSet, keyring: &Keyring) -> StoreResult<Vec<TransferRecord>> {
    let Some(revisions) = &sealed.revisions else {
        return if sealed.credentials.is_empty() { Ok(Vec::new()) } else { Err(tampered()) };
    };
    for seal in std::iter::once(&keyring.current).chain(&keyring.previous) {
        let Some(list) = RevisionList::unseal(revisions, seal)? else { continue };
        if list.count() != sealed.credentials.len() {
            return Err(tampered());
        }
        let open = |sealed| unseal_credential(seal, &list, sealed);
        let mut credentials: Vec<StoredCredential> =
            sealed.credentials.iter().map(open).collect::<StoreResult<_>>()?;
        credentials.sort_by(|one, other| {
            let key = |stored: &StoredCredential| {
                let [kind, tenant, subject] = stored.slot.owner.parts().map(str::to_owned);
                [kind, tenant, subject, stored.slot.server.clone(), stored.slot.issuer.clone()]
            };
            key(one).cmp(&key(other))
        });
        let mut logins: Vec<PendingLogin> =
            sealed.logins.iter().filter_map(|login| unseal_login(seal, login)).collect();
        logins.sort_by(|one, other| one.id.cmp(&other.id));
        let credentials = credentials.into_iter().map(TransferRecord::Credential);
        let logins = logins.into_iter().map(TransferRecord::PendingLogin);
        let last = TransferRecord::CredentialRevision(list.revision);
        return Ok(credentials.chain(logins).chain([last]).collect());
    }
    Err(wrong_key())
}

/// Seals records with the key of their new backend.
pub struct CredentialSealer {
    seal: Seal,
    list: RevisionList,
}

impl CredentialSealer {
    pub fn new(seal: Seal) -> Self {
        Self { seal, list: RevisionList::default() }
    }

    pub fn credential(&mut self, clear: StoredCredential) -> StoreResult<StoredCredential> {
        self.list.insert(&clear.slot, clear.revision);
        seal_credential(&self.seal, clear)
    }

    pub fn login(&self, clear: PendingLogin) -> StoreResult<PendingLogin> {
        seal_login(&self.seal, clear)
    }

    /// The list of all credentials, as of the last change.
    pub fn revisions(&mut self, revision: u64) -> StoreResult<SealedRevisions> {
        self.list.revision = revision;
        self.list.seal(&self.seal)
    }
}
