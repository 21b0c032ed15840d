//! The chains of the audit log.

use super::state_export::{SMALL_ROWS, StateExport};
use crate::audit_store::audit_partitions::{self, Month, MonthValues};
use crate::audit_store::audit_reader::hash_of;
use crate::audit_store::audit_verify::{CHAINS, HEAD, corrupt};
use crate::audit_store::group_rows::{months, time};
use crate::database::Database;
use crate::transaction::{Scope, Transaction};
use crate::value::Value;
use octo_ports::audit_format::BrokenChain;
use octo_ports::transfer::{ChainCheck, ChainRecord, ChainStart, TransferError, TransferRecord};
use octo_ports::{Anchor, Port, StoreResult};
use std::collections::BTreeSet;

/// Sends the chain of this node first, without its name. Returns the ends of all chains.
pub(super) async fn export(
    export: &mut StateExport<'_>,
    node: &str,
) -> Result<Vec<(String, i64)>, TransferError> {
    export.set_port(Port::AuditReader);
    let rows = export.transaction.query(CHAINS, &[]).await?;
    let mut chains: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    chains.sort_by_key(|chain| chain != node);
    let mut heads = Vec::new();
    for chain in chains {
        let name = if chain == node { String::new() } else { chain.clone() };
        heads.push((export_chain(export, &chain, name).await?, chain));
    }
    heads.sort_by(|one, other| one.1.cmp(&other.1));
    Ok(heads.into_iter().map(|(seq, chain)| (chain, seq)).collect())
}

/// Returns the number of its last record.
async fn export_chain(export: &mut StateExport<'_>, chain: &str, name: String) -> Result<i64, TransferError> {
    let Some(row) = export.transaction.query_opt(HEAD, &[&chain]).await? else {
        let reason = "the end of the chain is missing".to_owned();
        return Err(corrupt(BrokenChain { chain: chain.to_owned(), seq: 0, reason }).into());
    };
    let anchor = |seq: i64, hash| Anchor { seq: seq.cast_unsigned(), hash: hash_of(hash) };
    let (head, pruned) = (anchor(row.get(0), row.get(1)), anchor(row.get(2), row.get(3)));
    let pruned = Some(pruned).filter(|pruned| pruned.seq > 0);
    export.to.send(TransferRecord::ChainStart(ChainStart { chain: name, pruned })).await?;
    // Rows of pruned records may still be there.
    let first = pruned.map_or(i64::MIN, |pruned| pruned.seq.cast_signed() + 1);
    let rows = "SELECT seq, hash, record FROM audit WHERE chain = $1 AND seq >= $2 ORDER BY seq, at";
    let record = |row: &tokio_postgres::Row| {
        let record = ChainRecord { seq: row.get(0), hash: row.get(1), bytes: row.get(2) };
        Ok([TransferRecord::ChainRecord(record)])
    };
    export.send(rows, &[&chain, &first], SMALL_ROWS, record).await?;
    export.to.send(TransferRecord::ChainEnd(head)).await?;
    Ok(head.seq.cast_signed())
}

/// Refuses if a hub has recorded calls since.
pub(super) async fn check_unchanged(
    database: &Database,
    heads: &[(String, i64)],
) -> Result<(), TransferError> {
    let find = "SELECT chain, seq FROM audit_chains WHERE seq > 0 ORDER BY chain";
    let rows = database.read(Port::AuditReader, Scope::AllTenants, find, &[]).await?;
    let changed = rows.iter().find(|row| !heads.contains(&(row.get(0), row.get(1))));
    match changed {
        Some(row) => {
            Err(TransferError::InUse(format!("`{}` has recorded calls meanwhile", row.get::<_, &str>(0))))
        }
        None => Ok(()),
    }
}

/// Chains as they arrive. That without a name gets the name of this node.
pub(super) struct AuditImport {
    node: String,
    check: ChainCheck,
    months: BTreeSet<Month>,
    chains: BTreeSet<String>,
}

impl AuditImport {
    pub(super) fn new(node: &str) -> Self {
        let (months, chains) = (BTreeSet::new(), BTreeSet::new());
        Self { node: node.to_owned(), check: ChainCheck::default(), months, chains }
    }

    fn name(&self) -> &str {
        if self.check.chain().is_empty() { &self.node } else { self.check.chain() }
    }

    pub(super) fn start(&mut self, start: ChainStart) -> Result<(), TransferError> {
        self.check.start(&start)?;
        let name = self.name().to_owned();
        match self.chains.insert(name.clone()) {
            true => Ok(()),
            false => Err(TransferError::ChainName(name)),
        }
    }

    pub(super) async fn add(
        &mut self,
        transaction: &mut Transaction,
        records: &[ChainRecord],
    ) -> StoreResult<()> {
        records.iter().try_for_each(|record| self.check.record(record))?;
        let needed = months(records.iter().map(|record| record.bytes.as_slice()));
        let missing: Vec<Month> = needed.difference(&self.months).copied().collect();
        if !missing.is_empty() {
            transaction.query(audit_partitions::CREATE, &MonthValues::new(&missing).as_values()).await?;
            self.months.extend(missing);
        }
        let seqs: Vec<i64> = records.iter().map(|record| record.seq).collect();
        let times: Vec<i64> = records.iter().map(|record| time(&record.bytes)).collect();
        let hashes: Vec<&[u8]> = records.iter().map(|record| record.hash.as_slice()).collect();
        let bytes: Vec<&[u8]> = records.iter().map(|record| record.bytes.as_slice()).collect();
        let insert = "INSERT INTO audit (chain, seq, at, hash, record)
            SELECT $1, * FROM unnest($2::int8[], $3::int8[], $4::bytea[], $5::bytea[])";
        let name = self.name();
        let values: [&dyn Value; 5] = [&name, &seqs, &times, &hashes, &bytes];
        transaction.execute(insert, &values).await.map(drop)
    }

    pub(super) async fn end(&mut self, transaction: &mut Transaction, head: Anchor) -> StoreResult<()> {
        let chain = self.check.end(head)?;
        let pruned = chain.pruned.unwrap_or_default();
        let (seq, pruned_seq) = (head.seq.cast_signed(), pruned.seq.cast_signed());
        let (hash, pruned_hash) = (head.hash.0.as_slice(), pruned.hash.0.as_slice());
        let insert = "INSERT INTO audit_chains
                (chain, seq, hash, pruned_seq, pruned_hash, prune_seq, removed_seq)
            VALUES ($1, $2, $3, $4, $5, $6, $4)";
        let name = self.name();
        let values: [&dyn Value; 6] = [&name, &seq, &hash, &pruned_seq, &pruned_hash, &chain.prune_seq];
        transaction.execute(insert, &values).await.map(drop)
    }
}
