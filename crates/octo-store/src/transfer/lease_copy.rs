//! Fencing tokens. Leases themselves are not copied.

use super::copy_error::CopyResult;
use super::state_databases::StateDatabases;
use octo_ports::transfer::{RecordSender, TransferRecord};
use rusqlite::Connection;

pub(super) fn export(source: &mut StateDatabases, to: &RecordSender) -> CopyResult<()> {
    Ok(to.blocking_send(TransferRecord::LeaseToken(last_token(source)?.cast_unsigned()))?)
}

/// The last token that was issued, or that a run has seen.
pub(super) fn last_token(databases: &StateDatabases) -> CopyResult<i64> {
    let read = |database: &Option<Connection>, sql: &str| match database {
        Some(conn) => conn.query_row(sql, (), |row| row.get::<_, Option<i64>>(0)),
        None => Ok(None),
    };
    let tokens = [
        read(&databases.leases, "SELECT max(last) FROM tokens")?,
        read(&databases.credential_leases, "SELECT max(last) FROM tokens")?,
        read(&databases.runs, "SELECT max(fence) FROM runs")?,
    ];
    Ok(tokens.into_iter().flatten().max().unwrap_or_default())
}

pub(super) fn import(conn: &Connection, last: i64) -> CopyResult<()> {
    conn.execute("UPDATE tokens SET last = max(last, ?1)", [last])?;
    Ok(())
}
