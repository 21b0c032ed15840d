//! Pending logins.

use super::{tampered, wrong_key};
use crate::lazy_database::WorkResult;
use crate::seal::Seal;
use octo_model::Principal;
use octo_model::Secret;
use octo_ports::{Owner, PendingLogin, credentials};
use rusqlite::{Connection, OptionalExtension, Row};

pub(super) fn put_pending(
    conn: &Connection,
    seal: &Seal,
    waiting: &PendingLogin,
    now: i64,
) -> WorkResult<()> {
    conn.execute("DELETE FROM logins WHERE expires <= ?1", (now,))?;
    let count: i64 = conn.query_row("SELECT count(*) FROM logins", (), |row| row.get(0))?;
    credentials::check_pending_count(usize::try_from(count).unwrap_or(usize::MAX))?;
    let [kind, tenant, subject] = waiting.owner.parts();
    let sealed = seal.seal(waiting.secret.expose(), &bound(waiting, &waiting.expires.to_string()));
    conn.execute(
        "INSERT OR REPLACE INTO logins (id, kind, tenant, subject, server, expires, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (&waiting.id, kind, tenant, subject, &waiting.server, waiting.expires, sealed.ok_or_else(wrong_key)?),
    )?;
    Ok(())
}

/// Removed by the first request, whether it is usable or not.
pub(super) fn take_pending(
    conn: &Connection,
    seal: &Seal,
    id: &str,
    now: i64,
) -> WorkResult<Option<PendingLogin>> {
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
) -> WorkResult<Option<PendingLogin>> {
    let mut find = conn.prepare_cached(
        "SELECT id, kind, tenant, subject, server, expires, secret FROM logins
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4",
    )?;
    let [kind, tenant, subject] = owner.parts();
    let found = find.query_row((kind, tenant, subject, server), pending_from_row).optional()?;
    unseal(seal, found, now)
}

/// A login as stored, and its sealed secret.
fn pending_from_row(row: &Row<'_>) -> rusqlite::Result<(PendingLogin, Vec<u8>)> {
    let owner = match row.get::<_, String>(1)?.as_str() {
        "shared" => Owner::Shared,
        _ => Owner::Person(Principal { tenant: row.get(2)?, subject: row.get(3)? }),
    };
    let (id, server, expires) = (row.get(0)?, row.get(4)?, row.get(5)?);
    Ok((PendingLogin { id, owner, server, expires, secret: Secret::default() }, row.get(6)?))
}

fn unseal(seal: &Seal, found: Option<(PendingLogin, Vec<u8>)>, now: i64) -> WorkResult<Option<PendingLogin>> {
    let Some((waiting, sealed)) = found.filter(|(waiting, _)| waiting.expires > now) else {
        return Ok(None);
    };
    let plain = seal.unseal(&sealed, &bound(&waiting, &waiting.expires.to_string()));
    Ok(Some(PendingLogin { secret: Secret::new(plain.ok_or_else(tampered)?), ..waiting }))
}

fn bound<'a>(waiting: &'a PendingLogin, expires: &'a str) -> [&'a str; 7] {
    let [kind, tenant, subject] = waiting.owner.parts();
    ["login", &waiting.id, kind, tenant, subject, &waiting.server, expires]
}

/// Logins that cannot be opened are removed: they are quickly started again.
pub(super) fn reseal(conn: &Connection, from: &Seal, to: &Seal) -> WorkResult<()> {
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
