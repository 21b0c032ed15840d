//! Verification of all chains.

use super::audit_reader::hash_of;
use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use octo_ports::audit_format::chain_verifier::{anchors_of, verify_missing_chains};
use octo_ports::audit_format::{BrokenChain, ChainVerifier};
use octo_ports::{Anchor, ChainAnchor, Port, StoreError, StoreResult, Verified};
use tokio_postgres::Row;

/// Rows per query.
const ROWS_PER_PAGE: i64 = 10_000;

/// Names of chains, also of those whose end is missing.
pub(crate) const CHAINS: &str = "WITH RECURSIVE found (chain) AS (
        SELECT min(chain) FROM audit
        UNION ALL
        SELECT (SELECT min(chain) FROM audit WHERE audit.chain > found.chain) FROM found WHERE chain IS NOT NULL
    )
    SELECT chain FROM found WHERE chain IS NOT NULL
    UNION
    SELECT chain FROM audit_chains WHERE seq > 0
    ORDER BY 1";

pub(crate) const HEAD: &str = "SELECT seq, hash, pruned_seq, pruned_hash FROM audit_chains WHERE chain = $1";

/// Times are compared as well, so that no second row with the same number is passed over.
const ROWS: &str = "SELECT seq, at, hash, record FROM audit
    WHERE chain = $1 AND (seq, at) > ($2, $3) ORDER BY seq, at LIMIT $4";

pub(crate) fn corrupt(broken: BrokenChain) -> StoreError {
    StoreError::corrupt(Port::AuditReader, broken)
}

/// Verifies all chains, each up to its end. No snapshot lasts for long: it would keep the server from cleaning up after
/// the writers.
pub(super) async fn verify(database: &Database, anchors: &[ChainAnchor]) -> StoreResult<Vec<Verified>> {
    let chains = database.read(Port::AuditReader, Scope::AllTenants, CHAINS, &[]).await?;
    if chains.is_empty() && anchors.is_empty() {
        return Err(StoreError::NotFound(Port::AuditReader));
    }
    let is_known = |chain: &str| chains.iter().any(|row| row.get::<_, &str>(0) == chain);
    verify_missing_chains(anchors, is_known).map_err(corrupt)?;
    let mut verified = Vec::new();
    for row in &chains {
        verified.push(verify_chain(database, row.get(0), anchors).await?);
    }
    Ok(verified)
}

/// The state of a chain, and its next rows.
struct ChainPage {
    head: Anchor,
    pruned: Option<Anchor>,
    rows: Vec<Row>,
}

impl ChainPage {
    async fn read(database: &Database, chain: &str, after: (i64, i64)) -> StoreResult<Self> {
        let mut snapshot = database.begin_snapshot(Port::AuditReader).await?;
        let Some(row) = snapshot.query_opt(HEAD, &[&chain]).await? else {
            let reason = "the end of the chain is missing".to_owned();
            return Err(corrupt(BrokenChain { chain: chain.to_owned(), seq: 0, reason }));
        };
        let values: [&dyn Value; 4] = [&chain, &after.0, &after.1, &ROWS_PER_PAGE];
        let rows = snapshot.query(ROWS, &values).await?;
        snapshot.commit().await?;
        let anchor = |seq: i64, hash| Anchor { seq: seq.cast_unsigned(), hash: hash_of(hash) };
        let pruned = Some(anchor(row.get(2), row.get(3))).filter(|pruned| pruned.seq > 0);
        Ok(Self { head: anchor(row.get(0), row.get(1)), pruned, rows })
    }
}

async fn verify_chain(database: &Database, chain: &str, anchors: &[ChainAnchor]) -> StoreResult<Verified> {
    let start = |pruned| ChainVerifier::new(chain, pruned, anchors_of(chain, anchors)).map_err(corrupt);
    let mut verifier = start(None)?;
    // Starts below 1: without pruning, there must be no rows.
    let mut last = (i64::MIN, i64::MIN);
    loop {
        let page = ChainPage::read(database, chain, last).await?;
        if let Some(pruned) = page.pruned.filter(|pruned| pruned.seq > verifier.position().seq) {
            verifier = start(Some(pruned))?;
            last = (pruned.seq.cast_signed(), i64::MAX);
            continue;
        }
        for row in &page.rows {
            verifier.verify(row.get(0), row.get(2), row.get(3)).map_err(corrupt)?;
        }
        match page.rows.last() {
            Some(row) if page.rows.len() as i64 == ROWS_PER_PAGE => last = (row.get(0), row.get(1)),
            _ => {
                check_end(&verifier, page.head).map_err(corrupt)?;
                return verifier.finish().map_err(corrupt);
            }
        }
    }
}

/// Compares the last record with the end of the chain.
fn check_end(verifier: &ChainVerifier, head: Anchor) -> Result<(), BrokenChain> {
    let last = verifier.position();
    if last.seq < head.seq {
        let why = format!("it and all later records are missing; the chain ends with record {}", head.seq);
        return Err(verifier.broken(last.seq + 1, why));
    }
    if last.seq > head.seq {
        return Err(verifier.broken(head.seq + 1, "it follows the end of the chain"));
    }
    if last.hash != head.hash {
        return Err(verifier.broken(last.seq, "it does not match the end of the chain"));
    }
    Ok(())
}
