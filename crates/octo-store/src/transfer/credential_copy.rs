//! Credentials and pending logins. Some credentials belong to the machine: they are not copied, and stay where they are.

use super::StatePlace;
use super::copy_error::CopyResult;
use super::staging::NewDatabase;
use crate::credential_store::{self, credential_set};
use crate::seal::{KEY_FILE, open_keyring};
use crate::{SealKeys, SqliteError};
use octo_ports::credentials::{CredentialSealer, CredentialSet, SealedRevisions, open_credentials};
use octo_ports::transfer::{RecordSender, StateKind, TransferRecord};
use octo_ports::{Keyring, Slot};
use rusqlite::Connection;
use std::path::Path;

/// Whether a credential belongs to the machine.
pub type SlotFilter = fn(&Slot) -> bool;

pub(super) fn export(conn: &Connection, place: &StatePlace, to: &RecordSender) -> CopyResult<()> {
    let sealed = credential_set(conn)?;
    if sealed.revisions.is_none() && sealed.credentials.is_empty() {
        return Ok(());
    }
    let keyring = open_keyring(&place.credential_dir, &place.options.seal_keys)?;
    for record in open_credentials(&sealed, &keyring)? {
        let is_of_machine = match &record {
            TransferRecord::Credential(credential) => (place.is_of_machine)(&credential.slot),
            _ => false,
        };
        if !is_of_machine {
            to.blocking_send(record)?;
        }
    }
    Ok(())
}

/// The credentials in a target, if they are all of the machine.
pub(super) fn credentials_of_machine(
    database: Option<&Connection>,
    is_of_machine: SlotFilter,
) -> CopyResult<Result<CredentialSet, StateKind>> {
    let Some(conn) = database else { return Ok(Ok(CredentialSet::default())) };
    let sealed = credential_set(conn)?;
    Ok(match sealed.credentials.iter().all(|credential| is_of_machine(&credential.slot)) {
        true => Ok(sealed),
        false => Err(StateKind::Credentials),
    })
}

/// The keys of a directory. Its own key, if there must be one and is none yet, is among the new files.
pub(super) fn target_keyring(dir: &Path, part: &Path, keys: &SealKeys) -> Result<Keyring, SqliteError> {
    open_keyring(if dir.join(KEY_FILE).is_file() { dir } else { part }, keys)
}

/// Credentials as they arrive, beside those of the machine.
pub(super) struct CredentialImport {
    database: NewDatabase,
    of_machine: CredentialSet,
    sealer: Option<CredentialSealer>,
    last_revision: u64,
}

impl CredentialImport {
    pub(super) fn new(part: &Path, of_machine: CredentialSet) -> Self {
        let database = NewDatabase::new(part, &credential_store::DATABASE);
        Self { database, of_machine, sealer: None, last_revision: 0 }
    }

    /// The list of the credentials of the machine.
    pub(super) const fn revisions_of_machine(&self) -> Option<&SealedRevisions> {
        self.of_machine.revisions.as_ref()
    }

    pub(super) fn add(&mut self, place: &StatePlace, part: &Path, record: TransferRecord) -> CopyResult<()> {
        if let Some(sealer) = &mut self.sealer {
            return put(&mut self.database, sealer, &mut self.last_revision, record);
        }
        let keyring = target_keyring(&place.credential_dir, part, &place.options.seal_keys)?;
        let of_machine = open_credentials(&self.of_machine, &keyring)?;
        let sealer = self.sealer.insert(CredentialSealer::new(keyring.current));
        for record in of_machine.into_iter().chain([record]) {
            put(&mut self.database, sealer, &mut self.last_revision, record)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), SqliteError> {
        self.database.finish()
    }
}

fn put(
    database: &mut NewDatabase,
    sealer: &mut CredentialSealer,
    last_revision: &mut u64,
    record: TransferRecord,
) -> CopyResult<()> {
    let conn = database.conn()?;
    match record {
        TransferRecord::Credential(clear) => {
            credential_store::insert_credential(conn, &sealer.credential(clear)?)?;
        }
        TransferRecord::PendingLogin(clear) => {
            credential_store::insert_login(conn, &sealer.login(clear)?)?;
        }
        TransferRecord::CredentialRevision(revision) => {
            *last_revision = revision.max(*last_revision);
            credential_store::put_revisions(conn, &sealer.revisions(*last_revision)?)?;
        }
        _ => {}
    }
    Ok(())
}
