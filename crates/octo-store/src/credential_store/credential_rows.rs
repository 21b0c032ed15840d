//! The rows of credentials, and the list of their revisions.

use super::owner_from_row;
use crate::lazy_database::WorkResult;
use octo_model::Secret;
use octo_ports::credentials::SealedRevisions;
use octo_ports::{Owner, Slot, StoredCredential, credentials};
use rusqlite::{Connection, OptionalExtension, Row};

pub(super) fn revisions(conn: &Connection) -> WorkResult<Option<SealedRevisions>> {
    let mut find = conn.prepare_cached("SELECT revision, marks FROM ledger")?;
    let row = |row: &Row<'_>| {
        let revision = row.get::<_, i64>(0)?.cast_unsigned();
        Ok(SealedRevisions { revision, sealed: Secret::from_bytes(row.get(1)?) })
    };
    Ok(find.query_row((), row).optional()?)
}

pub(crate) fn put_revisions(conn: &Connection, list: &SealedRevisions) -> WorkResult<()> {
    conn.execute(
        "INSERT OR REPLACE INTO ledger (one, revision, marks) VALUES (1, ?1, ?2)",
        (list.revision.cast_signed(), list.sealed.bytes()),
    )?;
    Ok(())
}

pub(super) fn of_owner(conn: &Connection, owner: &Owner, server: &str) -> WorkResult<Vec<StoredCredential>> {
    let mut find = conn.prepare_cached(
        "SELECT kind, tenant, subject, server, issuer, revision, secret FROM credentials
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4",
    )?;
    let [kind, tenant, subject] = owner.parts();
    let rows = find.query_map((kind, tenant, subject, server), credential_from_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn all(conn: &Connection) -> WorkResult<Vec<StoredCredential>> {
    let mut all = conn
        .prepare_cached("SELECT kind, tenant, subject, server, issuer, revision, secret FROM credentials")?;
    Ok(all.query_map((), credential_from_row)?.collect::<Result<_, _>>()?)
}

fn credential_from_row(row: &Row<'_>) -> rusqlite::Result<StoredCredential> {
    let slot = Slot { owner: owner_from_row(row, 0)?, server: row.get(3)?, issuer: row.get(4)? };
    let revision = row.get::<_, i64>(5)?.cast_unsigned();
    Ok(StoredCredential { slot, revision, secret: Secret::from_bytes(row.get(6)?) })
}

pub(super) fn put(conn: &Connection, kept: &StoredCredential) -> WorkResult<()> {
    let mut count = conn.prepare_cached(
        "SELECT count(*) FROM credentials
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND (server <> ?4 OR issuer <> ?5)",
    )?;
    let [kind, tenant, subject] = kept.slot.owner.parts();
    let values = (kind, tenant, subject, &kept.slot.server, &kept.slot.issuer);
    let others: i64 = count.query_row(values, |row| row.get(0))?;
    credentials::check_credential_count(usize::try_from(others).unwrap_or(usize::MAX))?;
    insert(conn, kept)
}

pub(crate) fn insert(conn: &Connection, kept: &StoredCredential) -> WorkResult<()> {
    let mut put = conn.prepare_cached(
        "INSERT OR REPLACE INTO credentials (kind, tenant, subject, server, issuer, revision, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let ([kind, tenant, subject], Slot { server, issuer, .. }) = (kept.slot.owner.parts(), &kept.slot);
    put.execute((kind, tenant, subject, server, issuer, kept.revision.cast_signed(), kept.secret.bytes()))?;
    Ok(())
}

pub(super) fn remove(conn: &Connection, slot: &Slot) -> WorkResult<()> {
    let mut remove = conn.prepare_cached(
        "DELETE FROM credentials
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4 AND issuer = ?5",
    )?;
    let [kind, tenant, subject] = slot.owner.parts();
    remove.execute((kind, tenant, subject, &slot.server, &slot.issuer))?;
    Ok(())
}

pub(super) fn replace(conn: &Connection, all: &[StoredCredential]) -> WorkResult<()> {
    conn.execute("DELETE FROM credentials", ())?;
    all.iter().try_for_each(|kept| insert(conn, kept))
}
