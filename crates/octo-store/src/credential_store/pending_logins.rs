//! Logins that wait for a person, and whose turn it is to renew a credential.

use super::{CredentialError, revision_list};
use crate::result_files;
use crate::seal::Seal;
use octo_grants::Secret;
use octo_grants::credentials::{LeaseClaim, Owner, PendingLogin, Slot, can_add_pending};
use octo_model::Principal;
use rusqlite::{Connection, OptionalExtension, Row};
use std::time::Duration;

/// However long a turn was asked for, and however the clock was set meanwhile.
const MAX_LEASE_DURATION: Duration = Duration::from_secs(300);

/// One statement, so that of two processes one has it.
pub(super) fn acquire_lease(
    conn: &Connection,
    slot: &Slot,
    holder: &str,
    time: Duration,
) -> Result<LeaseClaim, CredentialError> {
    let now = result_files::now_micros();
    let until = now.saturating_add(micros(time.min(MAX_LEASE_DURATION)));
    let mut claim = conn.prepare_cached(
        "INSERT INTO leases (slot, holder, until) VALUES (?1, ?2, ?3)
         ON CONFLICT (slot) DO UPDATE SET holder = ?2, until = ?3
         WHERE holder = ?2 OR until <= ?4 OR until > ?5",
    )?;
    let far = now.saturating_add(micros(MAX_LEASE_DURATION));
    let changed = claim.execute((revision_list::slot_fingerprint(slot), holder, until, now, far))?;
    Ok(if changed > 0 { LeaseClaim::Acquired } else { LeaseClaim::Held })
}

pub(super) fn release_lease(conn: &Connection, slot: &Slot, holder: &str) -> Result<(), CredentialError> {
    let mut release = conn.prepare_cached("DELETE FROM leases WHERE slot = ?1 AND holder = ?2")?;
    release.execute((revision_list::slot_fingerprint(slot), holder))?;
    Ok(())
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn put_pending(
    conn: &Connection,
    seal: &Seal,
    waiting: &PendingLogin,
    now: i64,
) -> Result<(), CredentialError> {
    conn.execute("DELETE FROM logins WHERE expires <= ?1", (now,))?;
    let count: i64 = conn.query_row("SELECT count(*) FROM logins", (), |row| row.get(0))?;
    if !can_add_pending(usize::try_from(count).unwrap_or(usize::MAX)) {
        return Err(CredentialError::Full);
    }
    let [kind, tenant, subject] = waiting.owner.parts();
    let sealed = seal.seal(waiting.secret.expose(), &bound(waiting, &waiting.expires.to_string()));
    conn.execute(
        "INSERT OR REPLACE INTO logins (id, kind, tenant, subject, server, expires, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            &waiting.id,
            kind,
            tenant,
            subject,
            &waiting.server,
            waiting.expires,
            sealed.ok_or(CredentialError::WrongKey)?,
        ),
    )?;
    Ok(())
}

/// Gone with the first who asks, whether it can be used or not.
pub(super) fn take_pending(
    conn: &Connection,
    seal: &Seal,
    id: &str,
    now: i64,
) -> Result<Option<PendingLogin>, CredentialError> {
    let mut take = conn.prepare_cached(
        "DELETE FROM logins WHERE id = ?1 RETURNING id, kind, tenant, subject, server, expires, secret",
    )?;
    let taken = take.query_row((id,), pending_from_row).optional()?;
    unseal(seal, taken, now)
}

pub(super) fn find_pending(
    conn: &Connection,
    seal: &Seal,
    owner: &Owner,
    server: &str,
    now: i64,
) -> Result<Option<PendingLogin>, CredentialError> {
    let mut find = conn.prepare_cached(
        "SELECT id, kind, tenant, subject, server, expires, secret FROM logins
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4",
    )?;
    let [kind, tenant, subject] = owner.parts();
    let found = find.query_row((kind, tenant, subject, server), pending_from_row).optional()?;
    unseal(seal, found, now)
}

/// A login as it stands in the file, and what is sealed of it.
fn pending_from_row(row: &Row<'_>) -> rusqlite::Result<(PendingLogin, Vec<u8>)> {
    let owner = match row.get::<_, String>(1)?.as_str() {
        "shared" => Owner::Shared,
        _ => Owner::Person(Principal { tenant: row.get(2)?, subject: row.get(3)? }),
    };
    let (id, server, expires) = (row.get(0)?, row.get(4)?, row.get(5)?);
    Ok((PendingLogin { id, owner, server, expires, secret: Secret::default() }, row.get(6)?))
}

fn unseal(
    seal: &Seal,
    found: Option<(PendingLogin, Vec<u8>)>,
    now: i64,
) -> Result<Option<PendingLogin>, CredentialError> {
    let Some((waiting, sealed)) = found.filter(|(waiting, _)| waiting.expires > now) else {
        return Ok(None);
    };
    let plain = seal.unseal(&sealed, &bound(&waiting, &waiting.expires.to_string()));
    Ok(Some(PendingLogin { secret: Secret::new(plain.ok_or(CredentialError::Tampered)?), ..waiting }))
}

fn bound<'a>(waiting: &'a PendingLogin, expires: &'a str) -> [&'a str; 7] {
    let [kind, tenant, subject] = waiting.owner.parts();
    ["login", &waiting.id, kind, tenant, subject, &waiting.server, expires]
}

/// Logins that cannot be opened are forgotten: they are begun again in a minute.
pub(super) fn reseal(conn: &Connection, from: &Seal, to: &Seal) -> Result<(), CredentialError> {
    let mut every = conn.prepare("SELECT id, kind, tenant, subject, server, expires, secret FROM logins")?;
    let found: Vec<(PendingLogin, Vec<u8>)> =
        every.query_map((), pending_from_row)?.collect::<Result<_, _>>()?;
    for (waiting, sealed) in found {
        let expires = waiting.expires.to_string();
        let bound = bound(&waiting, &expires);
        let anew = from.unseal(&sealed, &bound).and_then(|plain| to.seal(&plain, &bound));
        match anew {
            Some(anew) => conn.execute("UPDATE logins SET secret = ?2 WHERE id = ?1", (&waiting.id, anew))?,
            None => conn.execute("DELETE FROM logins WHERE id = ?1", (&waiting.id,))?,
        };
    }
    Ok(())
}
