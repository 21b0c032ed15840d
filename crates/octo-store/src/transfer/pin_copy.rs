//! Pinned and held definitions of servers.

use super::copy_error::CopyResult;
use octo_ports::transfer::{PinRow, PinServerRow, RecordSender, SeenPinRow, TransferRecord};
use rusqlite::{Connection, Row};

pub(super) fn export(conn: &Connection, to: &RecordSender) -> CopyResult<()> {
    export_servers(conn, to)?;
    let mut statement =
        conn.prepare("SELECT server, what, key, hash, text FROM pins ORDER BY server, what, key")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        to.blocking_send(TransferRecord::Pin(pin_from_row(row)?))?;
    }
    let mut statement =
        conn.prepare("SELECT server, what, key, hash, text, since, pending FROM seen ORDER BY rowid")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let seen = SeenPinRow { pin: pin_from_row(row)?, since: row.get(5)?, is_pending: row.get(6)? };
        to.blocking_send(TransferRecord::SeenPin(seen))?;
    }
    Ok(())
}

/// Also those that have definitions alone.
fn export_servers(conn: &Connection, to: &RecordSender) -> CopyResult<()> {
    let mut statement = conn.prepare(
        "SELECT server, identity, revision FROM (
            SELECT server, identity, revision, 0 AS part, rowid AS number FROM servers
            UNION ALL
            SELECT server, '', 0, 1, 0 FROM (SELECT server FROM pins UNION SELECT server FROM seen)
            WHERE server NOT IN (SELECT server FROM servers)
         ) ORDER BY part, number, server",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let server = PinServerRow { server: row.get(0)?, identity: row.get(1)?, revision: row.get(2)? };
        to.blocking_send(TransferRecord::PinServer(server))?;
    }
    Ok(())
}

fn pin_from_row(row: &Row<'_>) -> rusqlite::Result<PinRow> {
    let (server, kind, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(PinRow { server, kind, key, hash: row.get(3)?, text: row.get(4)? })
}

pub(super) fn import_server(conn: &Connection, row: &PinServerRow) -> CopyResult<()> {
    conn.prepare_cached("INSERT INTO servers (server, identity, revision) VALUES (?1, ?2, ?3)")?
        .execute((&row.server, &row.identity, row.revision))?;
    Ok(())
}

/// The time of a pin is not part of the state: nothing reads it.
pub(super) fn import_pin(conn: &Connection, row: &PinRow) -> CopyResult<()> {
    conn.prepare_cached(
        "INSERT INTO pins (server, what, key, hash, text, since) VALUES (?1, ?2, ?3, ?4, ?5, 0)",
    )?
    .execute((&row.server, &row.kind, &row.key, &row.hash, &row.text))?;
    Ok(())
}

pub(super) fn import_seen(conn: &Connection, row: &SeenPinRow) -> CopyResult<()> {
    let SeenPinRow { pin, since, is_pending } = row;
    conn.prepare_cached(
        "INSERT INTO seen (server, what, key, hash, text, since, pending) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((&pin.server, &pin.kind, &pin.key, &pin.hash, &pin.text, since, is_pending))?;
    Ok(())
}
