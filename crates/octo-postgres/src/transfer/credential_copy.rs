//! Credentials and pending logins.

use super::state_export::StateExport;
use crate::credential_records::{credential_rows, pending_logins};
use crate::transaction::Transaction;
use octo_ports::credentials::{CredentialSealer, open_credentials};
use octo_ports::transfer::{TransferError, TransferRecord};
use octo_ports::{Keyring, Port, Seal, StoreResult, StoredCredential};

pub(super) async fn export(export: &mut StateExport<'_>, keyring: &Keyring) -> Result<(), TransferError> {
    export.set_port(Port::Credentials);
    let rows = export.transaction.query(&credential_rows::load_all_sql(), &[]).await?;
    for record in open_credentials(&credential_rows::set_from_rows(rows)?, keyring)? {
        export.to.send(record).await?;
    }
    Ok(())
}

pub(super) struct CredentialImport(CredentialSealer);

impl CredentialImport {
    pub(super) fn new(seal: Seal) -> Self {
        Self(CredentialSealer::new(seal))
    }

    pub(super) async fn add(
        &mut self,
        transaction: &mut Transaction,
        batch: Vec<TransferRecord>,
    ) -> StoreResult<()> {
        let mut credentials: Vec<StoredCredential> = Vec::new();
        for record in batch {
            match record {
                TransferRecord::Credential(clear) => credentials.push(self.0.credential(clear)?),
                TransferRecord::PendingLogin(clear) => {
                    pending_logins::insert(transaction, &self.0.login(clear)?).await?;
                }
                TransferRecord::CredentialRevision(revision) => {
                    let list = self.0.revisions(revision)?;
                    credential_rows::exchange_revisions(transaction, None, &list).await?;
                }
                _ => {}
            }
        }
        credential_rows::insert(transaction, &credentials).await
    }
}
