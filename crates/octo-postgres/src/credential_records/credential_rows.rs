//! The rows of credentials, and the list of their revisions.

use super::owner_from_row;
use crate::transaction::Transaction;
use crate::value::Value;
use octo_model::Secret;
use octo_ports::credentials::{CredentialSet, SealedRevisions, check_credential_count};
use octo_ports::{PendingLogin, Port, Slot, StoreError, StoreResult, StoredCredential};
use tokio_postgres::Row;

/// Records of all kinds have the same columns, so that one statement reads them.
pub(super) const REVISIONS: &str = "
    SELECT 'revisions', NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea, revision, sealed
    FROM credential_revisions";
const CREDENTIALS: &str = "
    SELECT 'credential', kind, tenant, subject, server, issuer, revision, secret FROM credentials";
const LOGINS: &str = "
    SELECT 'login', kind, tenant, subject, server, convert_to(id, 'UTF8'), expires, secret FROM pending_logins";

pub(super) fn load_sql() -> String {
    format!(
        "{REVISIONS} UNION ALL {CREDENTIALS}
         WHERE kind = $1 AND tenant = $2 AND subject = $3 AND server = $4"
    )
}

pub(crate) fn load_all_sql() -> String {
    format!("{REVISIONS} UNION ALL {CREDENTIALS} UNION ALL {LOGINS}")
}

pub(crate) fn set_from_rows(rows: Vec<Row>) -> StoreResult<CredentialSet> {
    let mut set = CredentialSet::default();
    for row in &rows {
        let (number, secret) = (row.get::<_, i64>(6), Secret::from_bytes(row.get(7)));
        let name = |row: &Row| {
            let name = String::from_utf8(row.get(5));
            name.map_err(|error| StoreError::corrupt(Port::Credentials, error))
        };
        match row.get(0) {
            "revisions" => {
                set.revisions = Some(SealedRevisions { revision: number.cast_unsigned(), sealed: secret });
            }
            "credential" => {
                let slot = Slot { owner: owner_from_row(row, 1), server: row.get(4), issuer: name(row)? };
                let revision = number.cast_unsigned();
                set.credentials.push(StoredCredential { slot, revision, secret });
            }
            _ => {
                let (owner, server) = (owner_from_row(row, 1), row.get(4));
                set.logins.push(PendingLogin { id: name(row)?, owner, server, expires: number, secret });
            }
        }
    }
    Ok(set)
}

/// Replaces the list, and locks it for the transaction. `false` if it is no longer `before`: a concurrent change is
/// waited for.
pub(crate) async fn exchange_revisions(
    transaction: &mut Transaction,
    before: Option<&SealedRevisions>,
    after: &SealedRevisions,
) -> StoreResult<bool> {
    let (revision, sealed) = (after.revision.cast_signed(), after.sealed.bytes());
    let changed = match before {
        Some(before) => {
            let exchange = "UPDATE credential_revisions SET revision = $1, sealed = $2
                            WHERE revision = $3 AND sealed = $4";
            let (old, old_sealed) = (before.revision.cast_signed(), before.sealed.bytes());
            transaction.execute(exchange, &[&revision, &sealed, &old, &old_sealed]).await?
        }
        None => {
            let insert =
                "INSERT INTO credential_revisions (revision, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            transaction.execute(insert, &[&revision, &sealed]).await?
        }
    };
    Ok(changed > 0)
}

pub(super) async fn put(transaction: &mut Transaction, kept: &StoredCredential) -> StoreResult<()> {
    let [kind, tenant, subject] = kept.slot.owner.parts();
    let (server, issuer) = (kept.slot.server.as_str(), kept.slot.issuer.as_bytes());
    let put = "WITH put AS (
            INSERT INTO credentials (kind, tenant, subject, server, issuer, revision, secret)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (kind, tenant, subject, server, issuer_digest)
            DO UPDATE SET revision = excluded.revision, secret = excluded.secret
        )
        SELECT count(*) FROM credentials
        WHERE kind = $1 AND tenant = $2 AND subject = $3 AND (server <> $4 OR issuer <> $5)";
    let (revision, secret) = (kept.revision.cast_signed(), kept.secret.bytes());
    let values: [&dyn Value; 7] = [&kind, &tenant, &subject, &server, &issuer, &revision, &secret];
    let others = transaction.query_opt(put, &values).await?.map_or(0, |row| row.get::<_, i64>(0));
    check_credential_count(usize::try_from(others).unwrap_or(usize::MAX))
}

pub(super) async fn remove(transaction: &mut Transaction, slot: &Slot) -> StoreResult<()> {
    let [kind, tenant, subject] = slot.owner.parts();
    let (server, issuer) = (slot.server.as_str(), slot.issuer.as_bytes());
    let remove = "DELETE FROM credentials WHERE kind = $1 AND tenant = $2 AND subject = $3 AND server = $4
                  AND issuer_digest = sha256($5) AND issuer = $5";
    transaction.execute(remove, &[&kind, &tenant, &subject, &server, &issuer]).await.map(drop)
}

pub(super) async fn replace(transaction: &mut Transaction, all: &[StoredCredential]) -> StoreResult<()> {
    transaction.execute("DELETE FROM credentials", &[]).await?;
    insert(transaction, all).await
}

pub(crate) async fn insert(transaction: &mut Transaction, all: &[StoredCredential]) -> StoreResult<()> {
    let mut owners: [Vec<&str>; 3] = Default::default();
    for kept in all {
        for (column, part) in owners.iter_mut().zip(kept.slot.owner.parts()) {
            column.push(part);
        }
    }
    let [kinds, tenants, subjects] = owners;
    let servers: Vec<&str> = all.iter().map(|kept| kept.slot.server.as_str()).collect();
    let issuers: Vec<&[u8]> = all.iter().map(|kept| kept.slot.issuer.as_bytes()).collect();
    let revisions: Vec<i64> = all.iter().map(|kept| kept.revision.cast_signed()).collect();
    let secrets: Vec<&[u8]> = all.iter().map(|kept| kept.secret.bytes()).collect();
    let insert = "INSERT INTO credentials (kind, tenant, subject, server, issuer, revision, secret)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::int8[], $7::bytea[])";
    let values: [&dyn Value; 7] = [&kinds, &tenants, &subjects, &servers, &issuers, &revisions, &secrets];
    transaction.execute(insert, &values).await.map(drop)
}
