//! The chains of the audit log.

use super::copy_error::CopyResult;
use crate::audit::audit_chains;
use crate::audit::audit_prune::{chain_start, set_pruned};
use octo_ports::transfer::{ChainCheck, ChainRecord, ChainStart, RecordSender, TransferRecord};
use rusqlite::Connection;

pub(super) fn export(conn: &Connection, to: &RecordSender) -> CopyResult<()> {
    for chain in audit_chains::names(conn)? {
        let Some((_, head)) = audit_chains::ends(conn, &chain)? else { continue };
        let pruned = chain_start(conn, &chain)?;
        to.blocking_send(TransferRecord::ChainStart(ChainStart { chain: chain.clone(), pruned }))?;
        let sql = format!("SELECT seq, hash, record FROM {} ORDER BY seq", audit_chains::rows(&chain));
        let mut statement = conn.prepare(&sql)?;
        let mut rows = statement.query([&chain])?;
        while let Some(row) = rows.next()? {
            let record = ChainRecord { seq: row.get(0)?, hash: row.get(1)?, bytes: row.get(2)? };
            to.blocking_send(TransferRecord::ChainRecord(record))?;
        }
        to.blocking_send(TransferRecord::ChainEnd(head))?;
    }
    Ok(())
}

pub(super) fn start(conn: &Connection, check: &mut ChainCheck, start: &ChainStart) -> CopyResult<()> {
    check.start(start)?;
    if let Some(pruned) = start.pruned {
        set_pruned(conn, &start.chain, pruned.seq.cast_signed())?;
    }
    Ok(())
}

pub(super) fn import(conn: &Connection, check: &mut ChainCheck, record: &ChainRecord) -> CopyResult<()> {
    check.record(record)?;
    let mut insert = conn.prepare_cached(audit_chains::insert_sql(check.chain()))?;
    insert.execute((check.chain(), record.seq, &record.hash, &record.bytes))?;
    Ok(())
}
