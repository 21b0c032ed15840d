//! Verification of the hash chain.

use crate::audit::audit_prune::chain_start;
use crate::audit::hash_chain::ChainHasher;
use crate::{BrokenChain, SqliteError, database};
use octo_ports::{Anchor, Hash, Verified};
use rusqlite::{Connection, Row};
use std::path::Path;

/// Rows per query, so that a long verification does not block writers.
const ROWS_PER_BATCH: i64 = 10_000;

/// Verifies the chain in order and reports the first record that is changed, missing, moved or inserted.
/// Truncation at the end is detected with an `anchor`, an earlier head.
pub(crate) fn verify(dir: &Path, anchor: Option<Anchor>) -> Result<Verified, SqliteError> {
    let conn = database::read_audit(dir)?;
    // One snapshot of the file: records that are pruned meanwhile are still visible.
    let conn = conn.unchecked_transaction()?;
    // Damage is reported by the verification.
    let pruned = chain_start(&conn).unwrap_or_default();
    let at = pruned.unwrap_or_default();
    if let (Some(anchor), Some(pruned)) = (anchor, pruned)
        && (anchor.seq < pruned.seq || (anchor.seq == pruned.seq && anchor.hash != pruned.hash))
    {
        let why = "it was pruned, so the anchor cannot be verified";
        return Err(BrokenChain { seq: anchor.seq, reason: why.to_owned() }.into());
    }
    let mut walk = ChainVerifier { at, pruned, link: ChainHasher::default(), anchor };
    // Starts below 1: there must be no rows.
    let mut after = i64::MIN;
    while let Some(last) = walk.verify_batch(&conn, after)? {
        after = last;
    }
    walk.finish()
}

struct ChainVerifier {
    at: Anchor,
    pruned: Option<Anchor>,
    link: ChainHasher,
    anchor: Option<Anchor>,
}

impl ChainVerifier {
    /// Checks the next rows and returns the number of the last one.
    fn verify_batch(&mut self, conn: &Connection, after: i64) -> Result<Option<i64>, SqliteError> {
        let mut statement = conn
            .prepare_cached("SELECT seq, hash, record FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2")
            .map_err(|error| self.damaged(error))?;
        let mut rows = statement.query((after, ROWS_PER_BATCH)).map_err(|error| self.damaged(error))?;
        let mut last = None;
        while let Some(row) = rows.next().map_err(|error| self.damaged(error))? {
            last = Some(self.verify_row(row)?);
        }
        Ok(last)
    }

    /// Damaged pages count as a broken chain, too; only a lock or an I/O error leaves it undecided.
    fn damaged(&self, error: rusqlite::Error) -> SqliteError {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                self.broken(self.at.seq + 1, format!("the file is damaged ({error})"))
            }
            _ => error.into(),
        }
    }

    fn broken(&self, seq: u64, why: impl Into<String>) -> SqliteError {
        BrokenChain { seq, reason: why.into() }.into()
    }

    fn verify_row(&mut self, row: &Row<'_>) -> Result<i64, SqliteError> {
        let expected = self.at.seq + 1;
        let seq: i64 = row.get(0)?;
        if seq < 1 {
            return Err(self.broken(0, format!("record {seq} precedes the first")));
        }
        if seq.cast_unsigned() != expected {
            return Err(self.broken(expected, format!("it is missing; the next one is {seq}")));
        }
        let bytes = |at| row.get_ref(at).ok().and_then(|value| value.as_bytes().ok()).unwrap_or_default();
        let hash = self.link.hash(self.at.hash, bytes(2));
        if Hash::from_bytes(bytes(1)) != Some(hash) {
            return Err(self.broken(expected, "its hash does not match it and the record before"));
        }
        self.at = Anchor { seq: expected, hash };
        match self.anchor {
            Some(anchor) if anchor.seq == expected && anchor.hash != hash => {
                Err(self.broken(expected, "it does not match the anchor"))
            }
            _ => Ok(seq),
        }
    }

    fn finish(self) -> Result<Verified, SqliteError> {
        match self.anchor {
            Some(anchor) if anchor.seq > self.at.seq => Err(self.broken(
                self.at.seq + 1,
                format!("it and all later records are missing; the anchor is record {}", anchor.seq),
            )),
            Some(Anchor { seq: 0, hash }) if hash != Hash::default() => {
                Err(self.broken(0, "no chain starts with the anchor's hash"))
            }
            _ => {
                let before = self.pruned.map_or(0, |pruned| pruned.seq);
                Ok(Verified { records: self.at.seq - before, head: self.at, pruned: self.pruned })
            }
        }
    }
}
