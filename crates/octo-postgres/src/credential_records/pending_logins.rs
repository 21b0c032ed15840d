//! The rows of pending logins.

use super::owner_from_row;
use crate::transaction::Transaction;
use crate::value::Value;
use octo_model::Secret;
use octo_ports::credentials::check_pending_count;
use octo_ports::{PendingLogin, StoreResult};
use tokio_postgres::Row;

pub(super) const FIND: &str = "
    SELECT id, kind, tenant, subject, server, expires, secret FROM pending_logins
    WHERE kind = $1 AND tenant = $2 AND subject = $3 AND server = $4";

pub(super) fn login_from_row(row: &Row) -> PendingLogin {
    PendingLogin {
        id: row.get(0),
        owner: owner_from_row(row, 1),
        server: row.get(4),
        expires: row.get(5),
        secret: Secret::from_bytes(row.get(6)),
    }
}

pub(super) async fn put(transaction: &mut Transaction, login: &PendingLogin, now: i64) -> StoreResult<()> {
    // Logins are counted under the lock of the list, as credentials are.
    transaction.execute("SELECT FROM credential_revisions FOR UPDATE", &[]).await?;
    let [kind, tenant, subject] = login.owner.parts();
    // The snapshot still has what is removed.
    let make_room = "WITH removed AS (
            DELETE FROM pending_logins WHERE expires <= $1 OR id = $2
            OR (kind = $3 AND tenant = $4 AND subject = $5 AND server = $6) RETURNING id
        )
        SELECT (SELECT count(*) FROM pending_logins) - (SELECT count(*) FROM removed)";
    let values: [&dyn Value; 6] = [&now, &login.id, &kind, &tenant, &subject, &login.server];
    let others = transaction.query_opt(make_room, &values).await?.map_or(0, |row| row.get::<_, i64>(0));
    check_pending_count(usize::try_from(others).unwrap_or(usize::MAX))?;
    insert(transaction, login).await
}

pub(crate) async fn insert(transaction: &mut Transaction, login: &PendingLogin) -> StoreResult<()> {
    let [kind, tenant, subject] = login.owner.parts();
    let insert = "INSERT INTO pending_logins (id, kind, tenant, subject, server, expires, secret)
                  VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let secret = login.secret.bytes();
    let values: [&dyn Value; 7] =
        [&login.id, &kind, &tenant, &subject, &login.server, &login.expires, &secret];
    transaction.execute(insert, &values).await.map(drop)
}

pub(super) async fn take(transaction: &mut Transaction, id: &str) -> StoreResult<Option<PendingLogin>> {
    let take = "DELETE FROM pending_logins WHERE id = $1
                RETURNING id, kind, tenant, subject, server, expires, secret";
    Ok(transaction.query_opt(take, &[&id]).await?.as_ref().map(login_from_row))
}

/// Replaces secrets, and removes other logins. Those that were taken meanwhile are gone.
pub(super) async fn replace(transaction: &mut Transaction, all: &[PendingLogin]) -> StoreResult<()> {
    let ids: Vec<&str> = all.iter().map(|login| login.id.as_str()).collect();
    let secrets: Vec<&[u8]> = all.iter().map(|login| login.secret.bytes()).collect();
    transaction.execute("DELETE FROM pending_logins WHERE id <> ALL ($1)", &[&ids]).await?;
    let update = "UPDATE pending_logins SET secret = resealed.secret
        FROM unnest($1::text[], $2::bytea[]) AS resealed (id, secret) WHERE pending_logins.id = resealed.id";
    transaction.execute(update, &[&ids, &secrets]).await.map(drop)
}
