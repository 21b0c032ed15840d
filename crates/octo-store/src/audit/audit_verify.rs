//! Verification of the hash chain.

use crate::audit::audit_prune::chain_start;
use crate::{SqliteError, database};
use octo_ports::audit_format::ChainVerifier;
use octo_ports::{Anchor, Verified};
use rusqlite::{Connection, Row};
use std::path::Path;

/// Rows per query, so that a long verification does not block writers.
const ROWS_PER_BATCH: i64 = 10_000;

/// Verifies the chain in order and reports the first record that is changed, missing, moved or inserted.
/// Truncation at the end is detected with `anchors`, earlier heads.
pub(crate) fn verify(dir: &Path, anchors: impl IntoIterator<Item = Anchor>) -> Result<Verified, SqliteError> {
    let conn = database::read_audit(dir)?;
    // One snapshot of the file: records that are pruned meanwhile are still visible.
    let conn = conn.unchecked_transaction()?;
    // Damage is reported by the verification.
    let pruned = chain_start(&conn).unwrap_or_default();
    let mut verifier = ChainVerifier::new("", pruned, anchors)?;
    // Starts below 1: there must be no rows.
    let mut after = i64::MIN;
    while let Some(last) = verify_batch(&mut verifier, &conn, after)? {
        after = last;
    }
    Ok(verifier.finish()?)
}

/// Checks the next rows and returns the number of the last one.
fn verify_batch(
    verifier: &mut ChainVerifier,
    conn: &Connection,
    after: i64,
) -> Result<Option<i64>, SqliteError> {
    let mut statement = conn
        .prepare_cached("SELECT seq, hash, record FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2")
        .map_err(|error| damaged(verifier, error))?;
    let mut rows = statement.query((after, ROWS_PER_BATCH)).map_err(|error| damaged(verifier, error))?;
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
