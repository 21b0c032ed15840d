//! Logins that wait for a person, and whose turn it is to renew a credential.

use super::{Fault, ledger};
use crate::seal::Seal;
use crate::spills;
use octo_grants::Secret;
use octo_grants::credentials::{Claim, Owner, Slot, Waiting, may_wait};
use octo_model::Principal;
use rusqlite::{Connection, OptionalExtension, Row};
use std::time::Duration;

/// However long a turn was asked for, and however the clock was set meanwhile.
const LONGEST_TURN: Duration = Duration::from_secs(300);

/// One statement, so that of two processes one has it.
pub(super) fn claim(conn: &Connection, slot: &Slot, holder: &str, time: Duration) -> Result<Claim, Fault> {
    let now = spills::now();
    let until = now.saturating_add(micros(time.min(LONGEST_TURN)));
    let mut claim = conn.prepare_cached(
        "INSERT INTO leases (slot, holder, until) VALUES (?1, ?2, ?3)
         ON CONFLICT (slot) DO UPDATE SET holder = ?2, until = ?3
         WHERE holder = ?2 OR until <= ?4 OR until > ?5",
    )?;
    let far = now.saturating_add(micros(LONGEST_TURN));
    let changed = claim.execute((ledger::name(slot), holder, until, now, far))?;
    Ok(if changed > 0 { Claim::Ours } else { Claim::Taken })
}

pub(super) fn release(conn: &Connection, slot: &Slot, holder: &str) -> Result<(), Fault> {
    let mut release = conn.prepare_cached("DELETE FROM leases WHERE slot = ?1 AND holder = ?2")?;
    release.execute((ledger::name(slot), holder))?;
    Ok(())
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn wait(conn: &Connection, seal: &Seal, waiting: &Waiting, now: i64) -> Result<(), Fault> {
    conn.execute("DELETE FROM logins WHERE expires <= ?1", (now,))?;
    let count: i64 = conn.query_row("SELECT count(*) FROM logins", (), |row| row.get(0))?;
    if !may_wait(usize::try_from(count).unwrap_or(usize::MAX)) {
        return Err(Fault::Full);
    }
    let [kind, tenant, subject] = waiting.owner.parts();
    let sealed = seal.close(waiting.secret.expose(), &bound(waiting, &waiting.expires.to_string()));
    conn.execute(
        "INSERT OR REPLACE INTO logins (id, kind, tenant, subject, server, expires, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (&waiting.id, kind, tenant, subject, &waiting.server, waiting.expires, sealed.ok_or(Fault::Sealed)?),
    )?;
    Ok(())
}

/// Gone with the first who asks, whether it can be used or not.
pub(super) fn take(conn: &Connection, seal: &Seal, id: &str, now: i64) -> Result<Option<Waiting>, Fault> {
    let mut take = conn.prepare_cached(
        "DELETE FROM logins WHERE id = ?1 RETURNING id, kind, tenant, subject, server, expires, secret",
    )?;
    let taken = take.query_row((id,), read).optional()?;
    opened(seal, taken, now)
}

pub(super) fn waits(
    conn: &Connection,
    seal: &Seal,
    owner: &Owner,
    server: &str,
    now: i64,
) -> Result<Option<Waiting>, Fault> {
    let mut find = conn.prepare_cached(
        "SELECT id, kind, tenant, subject, server, expires, secret FROM logins
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4",
    )?;
    let [kind, tenant, subject] = owner.parts();
    let found = find.query_row((kind, tenant, subject, server), read).optional()?;
    opened(seal, found, now)
}

/// A login as it stands in the file, and what is sealed of it.
fn read(row: &Row<'_>) -> rusqlite::Result<(Waiting, Vec<u8>)> {
    let owner = match row.get::<_, String>(1)?.as_str() {
        "shared" => Owner::Shared,
        _ => Owner::Person(Principal { tenant: row.get(2)?, subject: row.get(3)? }),
    };
    let (id, server, expires) = (row.get(0)?, row.get(4)?, row.get(5)?);
    Ok((Waiting { id, owner, server, expires, secret: Secret::default() }, row.get(6)?))
}

fn opened(seal: &Seal, found: Option<(Waiting, Vec<u8>)>, now: i64) -> Result<Option<Waiting>, Fault> {
    let Some((waiting, sealed)) = found.filter(|(waiting, _)| waiting.expires > now) else {
        return Ok(None);
    };
    let plain = seal.unseal(&sealed, &bound(&waiting, &waiting.expires.to_string()));
    Ok(Some(Waiting { secret: Secret::new(plain.ok_or(Fault::Changed)?), ..waiting }))
}

fn bound<'a>(waiting: &'a Waiting, expires: &'a str) -> [&'a str; 7] {
    let [kind, tenant, subject] = waiting.owner.parts();
    ["login", &waiting.id, kind, tenant, subject, &waiting.server, expires]
}

/// Logins that cannot be opened are forgotten: they are begun again in a minute.
pub(super) fn reseal(conn: &Connection, from: &Seal, to: &Seal) -> Result<(), Fault> {
    let mut every = conn.prepare("SELECT id, kind, tenant, subject, server, expires, secret FROM logins")?;
    let found: Vec<(Waiting, Vec<u8>)> = every.query_map((), read)?.collect::<Result<_, _>>()?;
    for (waiting, sealed) in found {
        let expires = waiting.expires.to_string();
        let bound = bound(&waiting, &expires);
        let anew = from.unseal(&sealed, &bound).and_then(|plain| to.close(&plain, &bound));
        match anew {
            Some(anew) => conn.execute("UPDATE logins SET secret = ?2 WHERE id = ?1", (&waiting.id, anew))?,
            None => conn.execute("DELETE FROM logins WHERE id = ?1", (&waiting.id,))?,
        };
    }
    Ok(())
}
