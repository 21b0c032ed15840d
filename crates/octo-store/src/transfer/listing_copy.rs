//! The last listing of each upstream.

use super::copy_error::CopyResult;
use octo_ports::transfer::{ListingRow, RecordSender, TransferRecord};
use rusqlite::Connection;

pub(super) fn export(conn: &Connection, to: &RecordSender) -> CopyResult<()> {
    let mut statement = conn.prepare("SELECT server, mark, text FROM lists ORDER BY server")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let listing = ListingRow { server: row.get(0)?, mark: row.get(1)?, text: row.get(2)? };
        to.blocking_send(TransferRecord::Listing(listing))?;
    }
    Ok(())
}

pub(super) fn import(conn: &Connection, row: &ListingRow) -> CopyResult<()> {
    conn.prepare_cached("INSERT INTO lists (server, mark, text) VALUES (?1, ?2, ?3)")?.execute((
        &row.server,
        &row.mark,
        &row.text,
    ))?;
    Ok(())
}
