//! APIs that callers have loaded.

use super::StatePlace;
use super::copy_error::CopyResult;
use crate::api_store::api_from_row;
use crate::seal::open_keyring;
use octo_model::{Principal, Secret};
use octo_ports::Keyring;
use octo_ports::apis::{open_api, seal_api};
use octo_ports::transfer::{ApiRow, RecordSender, TransferRecord};
use rusqlite::Connection;

pub(super) fn export(conn: &Connection, place: &StatePlace, to: &RecordSender) -> CopyResult<()> {
    let mut statement = conn.prepare(
        "SELECT name, revision, settings, secret, tenant, subject, text FROM apis ORDER BY tenant, subject, name",
    )?;
    let (mut rows, mut keyring) = (statement.query(())?, None);
    while let Some(row) = rows.next()? {
        let (sealed, owner) = (api_from_row(row)?, Principal { tenant: row.get(4)?, subject: row.get(5)? });
        let api = match (&sealed.secret, &mut keyring) {
            (None, _) => sealed,
            (Some(_), Some(keyring)) => open_api(keyring, &owner, sealed)?,
            (Some(_), unknown) => {
                let opened = open_keyring(&place.dir, &place.options.seal_keys)?;
                open_api(unknown.insert(opened), &owner, sealed)?
            }
        };
        to.blocking_send(TransferRecord::Api(ApiRow { owner, api, document: row.get(6)? }))?;
    }
    Ok(())
}

pub(super) fn import(conn: &Connection, keyring: &Keyring, row: ApiRow) -> CopyResult<()> {
    let ApiRow { owner, api, document } = row;
    let api = seal_api(&keyring.current, &owner, api)?;
    let secret = api.secret.as_ref().map(Secret::bytes);
    conn.prepare_cached(
        "INSERT INTO apis (tenant, subject, name, revision, settings, secret, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((owner.tenant, owner.subject, api.name, api.revision, api.settings, secret, document))?;
    Ok(())
}
