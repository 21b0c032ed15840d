//! The rows of credentials.

use super::revision_list::RevisionList;
use super::{tampered, wrong_key};
use crate::lazy_database::WorkResult;
use crate::seal::Seal;
use octo_model::Principal;
use octo_model::Secret;
use octo_ports::{Owner, Port, Slot, StoreError, StoredCredential, credentials};
use rusqlite::{Connection, OptionalExtension, Row};

pub(super) fn all(
    conn: &Connection,
    seal: &Seal,
    ledger: &RevisionList,
    owner: &Owner,
    server: &str,
) -> WorkResult<Vec<StoredCredential>> {
    let mut all = conn.prepare_cached(
        "SELECT issuer, revision, secret FROM credentials
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4 ORDER BY revision DESC",
    )?;
    let [kind, tenant, subject] = owner.parts();
    let rows = all.query_map((kind, tenant, subject, server), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
    })?;
    let mut found = Vec::new();
    for row in rows {
        let (issuer, revision, sealed) = row?;
        let slot = Slot::new(owner.clone(), server, issuer);
        found.push(unseal_row(seal, ledger, slot, revision, sealed)?);
    }
    Ok(found)
}

pub(super) fn find(
    conn: &Connection,
    seal: &Seal,
    ledger: &RevisionList,
    slot: &Slot,
) -> WorkResult<Option<StoredCredential>> {
    match find_row(conn, slot)? {
        Some((revision, sealed)) => unseal_row(seal, ledger, slot.clone(), revision, sealed).map(Some),
        None if ledger.revision_of(slot).is_some() => Err(tampered()),
        None => Ok(None),
    }
}

/// The slots of all rows. Whether a row is genuine is checked when it is opened.
pub(super) fn slots(conn: &Connection) -> WorkResult<Vec<Slot>> {
    let mut every = conn.prepare_cached("SELECT kind, tenant, subject, server, issuer FROM credentials")?;
    let slots = every.query_map((), |row| slot_from_row(row, 0))?;
    Ok(slots.collect::<Result<_, _>>()?)
}

/// The slot in five columns, starting at this index.
fn slot_from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Slot> {
    let text = |at: usize| row.get::<_, String>(first + at);
    let owner = match text(0)?.as_str() {
        "shared" => Owner::Shared,
        _ => Owner::Person(Principal { tenant: text(1)?, subject: text(2)? }),
    };
    Ok(Slot::new(owner, text(3)?, text(4)?))
}

fn find_row(conn: &Connection, slot: &Slot) -> WorkResult<Option<(i64, Vec<u8>)>> {
    let mut find = conn.prepare_cached(
        "SELECT revision, secret FROM credentials
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4 AND issuer = ?5",
    )?;
    let [kind, tenant, subject] = slot.owner.parts();
    let values = (kind, tenant, subject, &slot.server, &slot.issuer);
    Ok(find.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

fn unseal_row(
    seal: &Seal,
    ledger: &RevisionList,
    slot: Slot,
    revision: i64,
    sealed: Vec<u8>,
) -> WorkResult<StoredCredential> {
    let known = revision.cast_unsigned();
    if ledger.revision_of(&slot) != Some(known) {
        return Err(tampered());
    }
    let secret = unseal(seal, &slot, revision, &sealed)?;
    Ok(StoredCredential { slot, revision: known, secret: Secret::new(secret) })
}

fn unseal(seal: &Seal, slot: &Slot, revision: i64, sealed: &[u8]) -> WorkResult<String> {
    let [kind, tenant, subject] = slot.owner.parts();
    let bound = [kind, tenant, subject, &slot.server, &slot.issuer, &revision.to_string()];
    seal.unseal(sealed, &bound).ok_or_else(tampered)
}

fn seal_row(seal: &Seal, slot: &Slot, revision: i64, plain: &str) -> WorkResult<Vec<u8>> {
    let [kind, tenant, subject] = slot.owner.parts();
    let bound = [kind, tenant, subject, &slot.server, &slot.issuer, &revision.to_string()];
    seal.seal(plain, &bound).ok_or_else(wrong_key)
}

pub(super) fn put(
    conn: &Connection,
    seal: &Seal,
    ledger: &mut RevisionList,
    slot: &Slot,
    secret: &Secret,
    over: Option<u64>,
) -> WorkResult<u64> {
    let present = ledger.revision_of(slot);
    if over.is_some() && over != present {
        return Err(StoreError::Conflict(Port::Credentials).into());
    }
    let [kind, tenant, subject] = slot.owner.parts();
    if present.is_none() {
        let mut count = conn.prepare_cached(
            "SELECT count(*) FROM credentials WHERE kind = ?1 AND tenant = ?2 AND subject = ?3",
        )?;
        let owned: i64 = count.query_row((kind, tenant, subject), |row| row.get(0))?;
        credentials::check_credential_count(usize::try_from(owned).unwrap_or(usize::MAX))?;
    }
    let known = ledger.advance(slot);
    let revision = known.cast_signed();
    let sealed = seal_row(seal, slot, revision, secret.expose())?;
    let mut put = conn.prepare_cached(
        "INSERT OR REPLACE INTO credentials (kind, tenant, subject, server, issuer, revision, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    put.execute((kind, tenant, subject, &slot.server, &slot.issuer, revision, sealed))?;
    Ok(known)
}

pub(super) fn remove(conn: &Connection, ledger: &mut RevisionList, slot: &Slot) -> WorkResult<bool> {
    let mut remove = conn.prepare_cached(
        "DELETE FROM credentials
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4 AND issuer = ?5",
    )?;
    let [kind, tenant, subject] = slot.owner.parts();
    remove.execute((kind, tenant, subject, &slot.server, &slot.issuer))?;
    Ok(ledger.forget(slot))
}

/// Reseals every row with another key. Fails on a row that was tampered with, so that it is not made valid.
pub(super) fn reseal(conn: &Connection, ledger: &RevisionList, from: &Seal, to: &Seal) -> WorkResult<()> {
    let mut every = conn
        .prepare("SELECT rowid, kind, tenant, subject, server, issuer, revision, secret FROM credentials")?;
    let mut rows = every.query(())?;
    let mut anew = Vec::new();
    while let Some(row) = rows.next()? {
        let slot = slot_from_row(row, 1)?;
        let revision: i64 = row.get(6)?;
        let kept = unseal_row(from, ledger, slot, revision, row.get(7)?)?;
        anew.push((row.get::<_, i64>(0)?, seal_row(to, &kept.slot, revision, kept.secret.expose())?));
    }
    drop(rows);
    for (id, sealed) in anew {
        conn.execute("UPDATE credentials SET secret = ?2 WHERE rowid = ?1", (id, sealed))?;
    }
    Ok(())
}
