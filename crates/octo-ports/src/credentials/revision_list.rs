//! The revision of each credential, in one sealed list. A single record cannot be restored, and removed
//! credentials stay removed.

use super::{SealedRevisions, Slot, tampered};
use crate::StoreResult;
use crate::seal::{Seal, fingerprint};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct RevisionList {
    /// Of the last change. Each change has its own, so that no two records are ever identical.
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
    pub(super) fn unseal(list: &SealedRevisions, seal: &Seal) -> StoreResult<Option<Self>> {
        let bound = ["ledger", &list.revision.to_string()];
        let Some(text) = seal.unseal(&list.sealed, &bound) else { return Ok(None) };
        let revisions = text.expose().lines().map(parse_line).collect::<Option<_>>().ok_or_else(tampered)?;
        Ok(Some(Self { revision: list.revision, revisions }))
    }

    pub(super) fn seal(&self, seal: &Seal) -> StoreResult<SealedRevisions> {
        let lines: Vec<String> = self.revisions.iter().map(|(slot, at)| format!("{slot} {at}")).collect();
        let sealed = seal.seal(&lines.join("\n"), &["ledger", &self.revision.to_string()])?;
        Ok(SealedRevisions { revision: self.revision, sealed })
    }

    pub(super) fn revision_of(&self, slot: &Slot) -> Option<u64> {
        self.revisions.get(&slot_fingerprint(slot)).copied()
    }

    /// Number of credentials.
    pub(super) fn count(&self) -> usize {
        self.revisions.len()
    }

    /// Of a credential from another backend.
    pub(super) fn insert(&mut self, slot: &Slot, revision: u64) {
        self.revisions.insert(slot_fingerprint(slot), revision);
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
