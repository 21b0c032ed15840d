//! The rows of pending logins.

use super::owner_from_row;
use crate::lazy_database::WorkResult;
use octo_model::Secret;
use octo_ports::{Owner, PendingLogin, credentials};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::HashSet;

pub(super) fn put(conn: &Connection, login: &PendingLogin, now: i64) -> WorkResult<()> {
    conn.execute("DELETE FROM logins WHERE expires <= ?1", (now,))?;
    let count: i64 = conn.query_row("SELECT count(*) FROM logins", (), |row| row.get(0))?;
    credentials::check_pending_count(usize::try_from(count).unwrap_or(usize::MAX))?;
    insert(conn, login)
}

pub(crate) fn insert(conn: &Connection, login: &PendingLogin) -> WorkResult<()> {
    let [kind, tenant, subject] = login.owner.parts();
    conn.execute(
        "INSERT OR REPLACE INTO logins (id, kind, tenant, subject, server, expires, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (&login.id, kind, tenant, subject, &login.server, login.expires, login.secret.bytes()),
    )?;
    Ok(())
}

pub(super) fn take(conn: &Connection, id: &str) -> WorkResult<Option<PendingLogin>> {
    let mut take = conn.prepare_cached(
        "DELETE FROM logins WHERE id = ?1 RETURNING id, kind, tenant, subject, server, expires, secret",
    )?;
    Ok(take.query_row((id,), login_from_row).optional()?)
}

pub(super) fn find(conn: &Connection, owner: &Owner, server: &str) -> WorkResult<Option<PendingLogin>> {
    let mut find = conn.prepare_cached(
        "SELECT id, kind, tenant, subject, server, expires, secret FROM logins
         WHERE kind = ?1 AND tenant = ?2 AND subject = ?3 AND server = ?4",
    )?;
    let [kind, tenant, subject] = owner.parts();
    Ok(find.query_row((kind, tenant, subject, server), login_from_row).optional()?)
}

pub(super) fn all(conn: &Connection) -> WorkResult<Vec<PendingLogin>> {
    let mut all = conn.prepare("SELECT id, kind, tenant, subject, server, expires, secret FROM logins")?;
    Ok(all.query_map((), login_from_row)?.collect::<Result<_, _>>()?)
}

/// Without those that were taken meanwhile.
pub(super) fn replace(conn: &Connection, all: &[PendingLogin]) -> WorkResult<()> {
    let mut remove = conn.prepare("DELETE FROM logins RETURNING id")?;
    let known: HashSet<String> =
        remove.query_map((), |row| row.get(0))?.collect::<Result<_, rusqlite::Error>>()?;
    all.iter().filter(|login| known.contains(&login.id)).try_for_each(|login| insert(conn, login))
}

fn login_from_row(row: &Row<'_>) -> rusqlite::Result<PendingLogin> {
    let secret = Secret::from_bytes(row.get(6)?);
    let (id, server, expires) = (row.get(0)?, row.get(4)?, row.get(5)?);
    Ok(PendingLogin { id, owner: owner_from_row(row, 1)?, server, expires, secret })
}
