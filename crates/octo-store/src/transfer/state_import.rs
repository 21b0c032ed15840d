//! All records of a state, as they arrive in a new directory.

use super::StatePlace;
use super::copy_error::{CopyError, CopyResult, OfPort};
use super::credential_copy::{CredentialImport, target_keyring};
use super::memory_copy::MemoryImport;
use super::result_copy::ResultImport;
use super::staging::{self, NewDatabase};
use super::state_databases::StateDatabases;
use super::{api_copy, audit_copy, credential_copy, lease_copy, listing_copy, pin_copy, run_copy};
use crate::database::{AUDIT_DATABASE, DatabaseSpec};
use crate::memory::rebuild_index;
use crate::{api_store, lease_store, listing_store, memory, pin_store, run_store};
use octo_ports::credentials::CredentialSet;
use octo_ports::transfer::{ChainCheck, TransferError, TransferRecord};
use octo_ports::{Keyring, Port};
use std::path::PathBuf;

pub(super) struct StateImport {
    place: StatePlace,
    part: PathBuf,
    credential_part: PathBuf,
    last_token: i64,
    audit: NewDatabase,
    chains: ChainCheck,
    results: ResultImport,
    pins: NewDatabase,
    listings: NewDatabase,
    apis: NewDatabase,
    api_keyring: Option<Keyring>,
    runs: NewDatabase,
    credentials: CredentialImport,
    memory: NewDatabase,
    memories: MemoryImport,
    is_installed: bool,
}

/// What a target has before a copy.
struct TargetState {
    /// The last fencing token that was issued.
    last_token: i64,
    of_machine: CredentialSet,
}

/// Checks that no one uses the directory and that it has no records but credentials of the machine.
fn check_target(place: &StatePlace) -> Result<TargetState, TransferError> {
    staging::complete_install(&place.dir).of_port(Port::Leases)?;
    let target = StateDatabases::open(place)?;
    let mut kinds = target.kinds().of_port(Port::Leases)?;
    let credentials =
        credential_copy::credentials_of_machine(target.credentials.as_ref(), place.is_of_machine);
    match credentials.of_port(Port::Credentials)? {
        Ok(of_machine) if kinds.is_empty() => {
            let last_token = lease_copy::last_token(&target).of_port(Port::Leases)?;
            Ok(TargetState { last_token, of_machine })
        }
        other => {
            kinds.extend(other.err());
            kinds.sort();
            Err(TransferError::NotEmpty(kinds))
        }
    }
}

impl StateImport {
    pub(super) fn begin(place: StatePlace) -> Result<Self, TransferError> {
        let TargetState { last_token, of_machine } = check_target(&place)?;
        let part = staging::create_part(&place.dir).of_port(Port::Audit)?;
        let credential_part = match place.credential_dir == place.dir {
            true => part.clone(),
            false => staging::create_part(&place.credential_dir).of_port(Port::Credentials)?,
        };
        let new = |spec: &'static DatabaseSpec| NewDatabase::new(&part, spec);
        Ok(Self {
            last_token,
            audit: new(&AUDIT_DATABASE),
            chains: ChainCheck::default(),
            results: ResultImport::new(&part),
            pins: new(&pin_store::DATABASE),
            listings: new(&listing_store::DATABASE),
            apis: new(&api_store::DATABASE),
            api_keyring: None,
            runs: new(&run_store::DATABASE),
            credentials: CredentialImport::new(&credential_part, of_machine),
            memory: new(&memory::DATABASE),
            memories: MemoryImport::default(),
            is_installed: false,
            place,
            part,
            credential_part,
        })
    }

    pub(super) fn add(&mut self, record: TransferRecord) -> Result<(), TransferError> {
        let port = record.port();
        match port {
            Port::Credentials => self.credentials.add(&self.place, &self.credential_part, record),
            Port::Memory => self.add_to_memory(&record),
            _ => self.add_other(record),
        }
        .of_port(port)
    }

    fn add_other(&mut self, record: TransferRecord) -> CopyResult<()> {
        match record {
            TransferRecord::LeaseToken(token) => {
                self.last_token = self.last_token.max(token.cast_signed());
                Ok(())
            }
            TransferRecord::ChainStart(start) => {
                audit_copy::start(self.audit.conn()?, &mut self.chains, &start)
            }
            TransferRecord::ChainRecord(record) => {
                audit_copy::import(self.audit.conn()?, &mut self.chains, &record)
            }
            TransferRecord::ChainEnd(head) => Ok(self.chains.end(head).map(drop)?),
            TransferRecord::Result(row) => self.results.start(self.audit.conn()?, row),
            TransferRecord::ResultChunk(chunk) => self.results.add(self.audit.conn()?, &chunk),
            TransferRecord::PinServer(row) => pin_copy::import_server(self.pins.conn()?, &row),
            TransferRecord::Pin(row) => pin_copy::import_pin(self.pins.conn()?, &row),
            TransferRecord::SeenPin(row) => pin_copy::import_seen(self.pins.conn()?, &row),
            TransferRecord::Listing(row) => listing_copy::import(self.listings.conn()?, &row),
            TransferRecord::Api(row) => {
                let keys = &self.place.options.seal_keys;
                let keyring = match &mut self.api_keyring {
                    Some(keyring) => keyring,
                    unknown => unknown.insert(target_keyring(&self.place.dir, &self.part, keys)?),
                };
                api_copy::import(self.apis.conn()?, keyring, row)
            }
            TransferRecord::Run(row) => {
                self.last_token = self.last_token.max(row.fence);
                run_copy::import_run(self.runs.conn()?, &row)
            }
            TransferRecord::Step(row) => run_copy::import_step(self.runs.conn()?, &row),
            _ => Ok(()),
        }
    }

    fn add_to_memory(&mut self, record: &TransferRecord) -> CopyResult<()> {
        let (conn, memories) = (self.memory.conn()?, &mut self.memories);
        match record {
            TransferRecord::MemoryOwner(row) => memories.start(conn, row),
            TransferRecord::Kind(row) => memories.kind(conn, row),
            TransferRecord::Entity(row) => memories.entity(conn, row),
            TransferRecord::FormerKind(row) => memories.former_kind(conn, row),
            TransferRecord::Fact(row) => memories.fact(conn, row),
            TransferRecord::Link(row) => memories.link(conn, row),
            _ => Ok(()),
        }
    }

    /// Puts the new state in its place.
    pub(super) fn finish(mut self) -> Result<(), TransferError> {
        self.write_files().of_port(Port::Audit)?;
        // Someone may have come meanwhile.
        let target = check_target(&self.place)?;
        if target.of_machine.revisions.as_ref() != self.credentials.revisions_of_machine() {
            return Err(TransferError::InUse("it has changed credentials meanwhile".to_owned()));
        }
        staging::install(&self.place.dir, &self.place.credential_dir).of_port(Port::Audit)?;
        self.is_installed = true;
        Ok(())
    }

    fn write_files(&mut self) -> CopyResult<()> {
        if self.memory.is_used() {
            rebuild_index(self.memory.conn()?)?;
        }
        let mut lease_dirs = vec![&self.part, &self.credential_part];
        lease_dirs.dedup();
        for dir in lease_dirs {
            let mut leases = NewDatabase::new(dir, &lease_store::DATABASE);
            lease_copy::import(leases.conn()?, self.last_token)?;
            leases.finish()?;
        }
        let databases = [
            &mut self.audit,
            &mut self.pins,
            &mut self.listings,
            &mut self.apis,
            &mut self.runs,
            &mut self.memory,
        ];
        self.credentials.finish()?;
        databases.into_iter().try_for_each(|database| database.finish()).map_err(CopyError::from)
    }
}

impl Drop for StateImport {
    /// Removes what was not installed.
    fn drop(&mut self) {
        if self.is_installed {
            return;
        }
        for dir in [&self.place.dir, &self.place.credential_dir] {
            if let Err(error) = staging::remove_part(dir) {
                tracing::warn!(%error, "the files of an unfinished copy could not be removed");
            }
        }
    }
}
