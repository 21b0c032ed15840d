//! The databases of a state, each open for this process alone.

use super::StatePlace;
use super::copy_error::{CopyResult, OfPort};
use crate::database::{AUDIT_DATABASE, DatabaseSpec};
use crate::{api_store, credential_store, lease_store, listing_store, memory, pin_store, run_store};
use octo_ports::Port;
use octo_ports::transfer::{StateKind, TransferError};
use rusqlite::Connection;
use std::path::Path;

/// A database that does not exist has no records.
pub(super) struct StateDatabases {
    pub(super) audit: Option<Connection>,
    pub(super) pins: Option<Connection>,
    pub(super) listings: Option<Connection>,
    pub(super) apis: Option<Connection>,
    pub(super) runs: Option<Connection>,
    pub(super) credentials: Option<Connection>,
    pub(super) memory: Option<Connection>,
    pub(super) leases: Option<Connection>,
    /// Those beside the credentials, if they are elsewhere.
    pub(super) credential_leases: Option<Connection>,
}

impl StateDatabases {
    pub(super) fn open(place: &StatePlace) -> Result<Self, TransferError> {
        let open = |spec: &DatabaseSpec, dir: &Path, port| spec.open_alone(dir).of_port(port);
        let (dir, credential_dir) = (place.dir.as_path(), place.credential_dir.as_path());
        let is_separate = dir != credential_dir;
        let credential_leases = match is_separate {
            true => open(&lease_store::DATABASE, credential_dir, Port::Leases)?,
            false => None,
        };
        Ok(Self {
            audit: open(&AUDIT_DATABASE, dir, Port::Audit)?,
            pins: open(&pin_store::DATABASE, dir, Port::Pins)?,
            listings: open(&listing_store::DATABASE, dir, Port::Listings)?,
            apis: open(&api_store::DATABASE, dir, Port::Apis)?,
            runs: open(&run_store::DATABASE, dir, Port::Runs)?,
            credentials: open(&credential_store::DATABASE, credential_dir, Port::Credentials)?,
            memory: open(&memory::DATABASE, dir, Port::Memory)?,
            leases: open(&lease_store::DATABASE, dir, Port::Leases)?,
            credential_leases,
        })
    }

    /// The kinds of which there are records, without credentials.
    pub(super) fn kinds(&self) -> CopyResult<Vec<StateKind>> {
        let tables = [
            (&self.audit, "audit", StateKind::AuditRecords),
            (&self.audit, "chain_records", StateKind::AuditRecords),
            (&self.audit, "spills", StateKind::Results),
            (&self.pins, "pins", StateKind::Pins),
            (&self.pins, "seen", StateKind::Pins),
            (&self.listings, "lists", StateKind::Listings),
            (&self.apis, "apis", StateKind::Apis),
            (&self.runs, "runs", StateKind::Runs),
            (&self.credentials, "logins", StateKind::PendingLogins),
            (&self.memory, "entities", StateKind::Entities),
        ];
        let mut kinds = Vec::new();
        for (database, table, kind) in tables {
            let Some(conn) = database else { continue };
            if conn.prepare(&format!("SELECT 1 FROM {table} LIMIT 1"))?.exists(())? {
                kinds.push(kind);
            }
        }
        kinds.dedup();
        Ok(kinds)
    }
}
