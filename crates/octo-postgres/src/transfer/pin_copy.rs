//! Pinned and held definitions of servers.

use super::state_export::{LARGE_ROWS, SMALL_ROWS, StateExport};
use crate::transaction::Transaction;
use crate::value::Value;
use octo_ports::transfer::{PinRow, PinServerRow, SeenPinRow, TransferError, TransferRecord};
use octo_ports::{Port, StoreError, StoreResult};
use tokio_postgres::Row;

pub(super) async fn export(export: &mut StateExport<'_>) -> Result<(), TransferError> {
    export.set_port(Port::Pins);
    let servers = "SELECT server, identity, revision FROM pin_servers ORDER BY position";
    let server = |row: &Row| {
        let server = PinServerRow { server: row.get(0), identity: row.get(1), revision: row.get(2) };
        Ok([TransferRecord::PinServer(server)])
    };
    export.send(servers, &[], SMALL_ROWS, server).await?;
    let pins = "SELECT server, kind, key, hash, text FROM pins ORDER BY server, kind, key";
    export.send(pins, &[], LARGE_ROWS, |row| Ok([TransferRecord::Pin(pin_from_row(row)?)])).await?;
    let seen = "SELECT server, kind, key, hash, text, since, is_pending FROM seen_pins ORDER BY position";
    let record = |row: &Row| {
        let seen = SeenPinRow { pin: pin_from_row(row)?, since: row.get(5), is_pending: row.get(6) };
        Ok([TransferRecord::SeenPin(seen)])
    };
    export.send(seen, &[], LARGE_ROWS, record).await
}

fn pin_from_row(row: &Row) -> StoreResult<PinRow> {
    let key = String::from_utf8(row.get(2)).map_err(|error| StoreError::corrupt(Port::Pins, error))?;
    Ok(PinRow { server: row.get(0), kind: row.get(1), key, hash: row.get(3), text: row.get(4) })
}

pub(super) async fn import_servers(transaction: &mut Transaction, rows: &[PinServerRow]) -> StoreResult<()> {
    let servers: Vec<&str> = rows.iter().map(|row| row.server.as_str()).collect();
    let identities: Vec<&str> = rows.iter().map(|row| row.identity.as_str()).collect();
    let revisions: Vec<i64> = rows.iter().map(|row| row.revision).collect();
    let insert = "INSERT INTO pin_servers (server, identity, revision)
        SELECT server, identity, revision FROM unnest($1::text[], $2::text[], $3::int8[])
            WITH ORDINALITY AS item (server, identity, revision, number)
        ORDER BY number";
    transaction.execute(insert, &[&servers, &identities, &revisions]).await.map(drop)
}

/// Columns of definitions.
struct DefinitionColumns<'a> {
    servers: Vec<&'a str>,
    kinds: Vec<&'a str>,
    keys: Vec<&'a [u8]>,
    hashes: Vec<&'a str>,
    texts: Vec<&'a str>,
}

impl<'a> DefinitionColumns<'a> {
    fn new(rows: impl Iterator<Item = &'a PinRow> + Clone) -> Self {
        Self {
            servers: rows.clone().map(|row| row.server.as_str()).collect(),
            kinds: rows.clone().map(|row| row.kind.as_str()).collect(),
            keys: rows.clone().map(|row| row.key.as_bytes()).collect(),
            hashes: rows.clone().map(|row| row.hash.as_str()).collect(),
            texts: rows.map(|row| row.text.as_str()).collect(),
        }
    }

    fn values(&self) -> [&dyn Value; 5] {
        [&self.servers, &self.kinds, &self.keys, &self.hashes, &self.texts]
    }
}

pub(super) async fn import_pins(transaction: &mut Transaction, rows: &[PinRow]) -> StoreResult<()> {
    let insert = "INSERT INTO pins (server, kind, key, hash, text)
        SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::text[])";
    transaction.execute(insert, &DefinitionColumns::new(rows.iter()).values()).await.map(drop)
}

pub(super) async fn import_seen(transaction: &mut Transaction, rows: &[SeenPinRow]) -> StoreResult<()> {
    let since: Vec<i64> = rows.iter().map(|row| row.since).collect();
    let is_pending: Vec<bool> = rows.iter().map(|row| row.is_pending).collect();
    let columns = DefinitionColumns::new(rows.iter().map(|row| &row.pin));
    let insert = "INSERT INTO seen_pins (server, kind, key, hash, text, since, is_pending)
        SELECT server, kind, key, hash, text, since, is_pending
        FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::int8[], $7::bool[])
            WITH ORDINALITY AS item (server, kind, key, hash, text, since, is_pending, number)
        ORDER BY number";
    let more: [&dyn Value; 2] = [&since, &is_pending];
    let values = [columns.values().as_slice(), &more].concat();
    transaction.execute(insert, &values).await.map(drop)
}
