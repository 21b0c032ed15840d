//! The revision of each credential, in one sealed list. A single row cannot be restored, and removed
//! credentials stay removed.

use super::{tampered, wrong_key};
use crate::lazy_database::WorkResult;
use crate::seal::{Seal, fingerprint};
use octo_ports::Slot;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

pub(super) struct RevisionList {
    /// Of the last change. Each change has its own, so that no two rows are ever identical.
    pub(super) revision: u64,
    revisions: BTreeMap<String, u64>,
}

/// Digest of a slot, for comparison.
fn slot_fingerprint(slot: &Slot) -> String {
    let [kind, tenant, subject] = slot.owner.parts();
    fingerprint(&[kind, tenant, subject, &slot.server, &slot.issuer])
}

impl RevisionList {
    /// `None` if it is sealed with another key.
    pub(super) fn load(conn: &Connection, seal: &Seal) -> WorkResult<Option<Self>> {
        let mut load = conn.prepare_cached("SELECT revision, marks FROM ledger")?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
        let Some((revision, sealed)) = load.query_row((), row).optional()? else {
            return Self::create(conn, seal).map(Some);
        };
        let Some(text) = seal.unseal(&sealed, &["ledger", &revision.to_string()]) else { return Ok(None) };
        let marks = text.lines().map(parse_line).collect::<Option<_>>().ok_or_else(tampered)?;
        Ok(Some(Self { revision: revision.cast_unsigned(), revisions: marks }))
    }

    /// The list of a new file. A file that has rows must have a list already.
    fn create(conn: &Connection, seal: &Seal) -> WorkResult<Self> {
        let rows: i64 = conn.query_row("SELECT count(*) FROM credentials", (), |row| row.get(0))?;
        if rows > 0 {
            return Err(tampered());
        }
        let ledger = Self { revision: 0, revisions: BTreeMap::new() };
        ledger.save(conn, seal)?;
        Ok(ledger)
    }

    pub(super) fn save(&self, conn: &Connection, seal: &Seal) -> WorkResult<()> {
        let revision = self.revision.cast_signed();
        let lines: Vec<String> = self.revisions.iter().map(|(slot, at)| format!("{slot} {at}")).collect();
        let sealed =
            seal.seal(&lines.join("\n"), &["ledger", &revision.to_string()]).ok_or_else(wrong_key)?;
        conn.execute(
            "INSERT OR REPLACE INTO ledger (one, revision, marks) VALUES (1, ?1, ?2)",
            (revision, sealed),
        )?;
        Ok(())
    }

    pub(super) fn revision_of(&self, slot: &Slot) -> Option<u64> {
        self.revisions.get(&slot_fingerprint(slot)).copied()
    }

    /// A new revision for this slot.
    pub(super) fn advance(&mut self, slot: &Slot) -> u64 {
        self.revision += 1;
        self.revisions.insert(slot_fingerprint(slot), self.revision);
        self.revision
    }

    pub(super) fn forget(&mut self, slot: &Slot) -> bool {
        let known = self.revisions.remove(&slot_fingerprint(slot)).is_some();
        self.revision += u64::from(known);
        known
    }
}

fn parse_line(line: &str) -> Option<(String, u64)> {
    let (slot, revision) = line.split_once(' ')?;
    Some((slot.to_owned(), revision.parse().ok()?))
}
