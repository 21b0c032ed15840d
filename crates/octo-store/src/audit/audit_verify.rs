//! Verification of the hash chains.

use crate::audit::audit_chains;
use crate::audit::audit_prune::chain_start;
use crate::{SqliteError, database};
use octo_ports::audit_format::ChainVerifier;
use octo_ports::audit_format::chain_verifier::{anchors_of, verify_missing_chains};
use octo_ports::{Anchor, ChainAnchor, Verified};
use rusqlite::{Connection, Row};
use std::path::Path;

/// Rows per query, so that a long verification does not block writers.
const ROWS_PER_BATCH: i64 = 10_000;

/// Verifies the log's own chain in order and reports the first record that is changed, missing, moved or inserted.
/// Truncation at the end is detected with `anchors`, earlier heads.
#[cfg(test)]
pub(crate) fn verify(dir: &Path, anchors: impl IntoIterator<Item = Anchor>) -> Result<Verified, SqliteError> {
    let conn = database::read_audit(dir)?;
    verify_chain(&*conn.unchecked_transaction()?, audit_chains::OWN, anchors)
}

/// Verifies all chains, in one snapshot of the file: records that are pruned meanwhile are still visible.
pub(crate) fn verify_all(dir: &Path, anchors: &[ChainAnchor]) -> Result<Vec<Verified>, SqliteError> {
    let conn = database::read_audit(dir)?;
    let conn = conn.unchecked_transaction()?;
    // Damage is reported by the verification.
    let names = audit_chains::names(&conn).unwrap_or_else(|_| vec![audit_chains::OWN.to_owned()]);
    verify_missing_chains(anchors, |chain| names.iter().any(|name| name == chain))?;
    names.iter().map(|chain| verify_chain(&conn, chain, anchors_of(chain, anchors))).collect()
}

fn verify_chain(
    conn: &Connection,
    chain: &str,
    anchors: impl IntoIterator<Item = Anchor>,
) -> Result<Verified, SqliteError> {
    // Damage is reported by the verification.
    let pruned = chain_start(conn, chain).unwrap_or_default();
    let mut verifier = ChainVerifier::new(chain, pruned, anchors)?;
    // Starts below 1: there must be no rows.
    let mut after = i64::MIN;
    while let Some(last) = verify_batch(&mut verifier, conn, chain, after)? {
        after = last;
    }
    Ok(verifier.finish()?)
}

/// Checks the next rows and returns the number of the last one.
fn verify_batch(
    verifier: &mut ChainVerifier,
    conn: &Connection,
    chain: &str,
    after: i64,
) -> Result<Option<i64>, SqliteError> {
    let sql = format!(
        "SELECT seq, hash, record FROM {} AND seq > ?2 ORDER BY seq LIMIT ?3",
        audit_chains::rows(chain)
    );
    let mut statement = conn.prepare_cached(&sql).map_err(|error| damaged(verifier, error))?;
    let mut rows =
        statement.query((chain, after, ROWS_PER_BATCH)).map_err(|error| damaged(verifier, error))?;
    let mut last = None;
    while let Some(row) = rows.next().map_err(|error| damaged(verifier, error))? {
        last = Some(verify_row(verifier, row)?);
    }
    Ok(last)
}

fn verify_row(verifier: &mut ChainVerifier, row: &Row<'_>) -> Result<i64, SqliteError> {
    let seq = row.get(0)?;
    let bytes = |at| row.get_ref(at).ok().and_then(|value| value.as_bytes().ok()).unwrap_or_default();
    verifier.verify(seq, bytes(1), bytes(2))?;
    Ok(seq)
}

/// Damaged pages count as a broken chain, too; only a lock or an I/O error leaves it undecided.
fn damaged(verifier: &ChainVerifier, error: rusqlite::Error) -> SqliteError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            verifier.broken(verifier.position().seq + 1, format!("the file is damaged ({error})")).into()
        }
        _ => error.into(),
    }
}
