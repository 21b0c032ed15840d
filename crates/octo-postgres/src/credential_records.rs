//! Credentials and pending logins as rows. Their secrets are sealed before they get here.

pub(crate) mod credential_rows;
pub(crate) mod pending_logins;

use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::{BoxFuture, Principal};
use octo_ports::credentials::{CredentialChange, CredentialRecords, CredentialSet, SealedRevisions};
use octo_ports::{Changes, Owner, PendingLogin, Port, StoreResult};
use std::sync::Arc;
use tokio_postgres::Row;

pub(crate) struct PostgresCredentialRecords(pub(crate) Arc<Database>);

/// What is shared belongs to no tenant.
fn owner_scope(owner: &Owner) -> Scope<'_> {
    match owner {
        Owner::Shared => Scope::AllTenants,
        Owner::Person(principal) => Scope::Tenant(&principal.tenant),
    }
}

/// The owner in three columns, starting at this index.
fn owner_from_row(row: &Row, first: usize) -> Owner {
    match row.get(first) {
        "shared" => Owner::Shared,
        _ => Owner::Person(Principal { tenant: row.get(first + 1), subject: row.get(first + 2) }),
    }
}

impl PostgresCredentialRecords {
    /// A statement with one snapshot, so that all records are of the same moment.
    async fn read(&self, scope: Scope<'_>, sql: &str, values: &[&dyn Value]) -> StoreResult<CredentialSet> {
        let rows = self.0.read(Port::Credentials, scope, sql, values).await?;
        credential_rows::set_from_rows(rows)
    }

    async fn write(
        &self,
        before: Option<SealedRevisions>,
        after: SealedRevisions,
        change: CredentialChange,
    ) -> StoreResult<bool> {
        let scope = match &change {
            CredentialChange::Put(kept) => owner_scope(&kept.slot.owner),
            CredentialChange::Remove(slot) => owner_scope(&slot.owner),
            CredentialChange::Replace { .. } => Scope::AllTenants,
        };
        let mut transaction = self.0.begin(Port::Credentials, scope).await?;
        if !credential_rows::exchange_revisions(&mut transaction, before.as_ref(), &after).await? {
            return Ok(false);
        }
        match &change {
            CredentialChange::Put(kept) => credential_rows::put(&mut transaction, kept).await?,
            CredentialChange::Remove(slot) => credential_rows::remove(&mut transaction, slot).await?,
            CredentialChange::Replace { credentials, logins } => {
                credential_rows::replace(&mut transaction, credentials).await?;
                pending_logins::replace(&mut transaction, logins).await?;
            }
        }
        transaction.announce(Port::Credentials);
        transaction.commit().await?;
        Ok(true)
    }
}

impl CredentialRecords for PostgresCredentialRecords {
    fn changes(&self) -> Changes {
        self.0.changes(Port::Credentials)
    }

    fn revisions(&self) -> BoxFuture<'_, StoreResult<Option<SealedRevisions>>> {
        Box::pin(async { Ok(self.read(Scope::AllTenants, credential_rows::REVISIONS, &[]).await?.revisions) })
    }

    fn load<'a>(&'a self, owner: &'a Owner, server: &'a str) -> BoxFuture<'a, StoreResult<CredentialSet>> {
        Box::pin(async move {
            let ([kind, tenant, subject], load) = (owner.parts(), credential_rows::load_sql());
            self.read(owner_scope(owner), &load, &[&kind, &tenant, &subject, &server]).await
        })
    }

    fn load_all(&self) -> BoxFuture<'_, StoreResult<CredentialSet>> {
        Box::pin(async { self.read(Scope::AllTenants, &credential_rows::load_all_sql(), &[]).await })
    }

    fn write<'a>(
        &'a self,
        before: Option<SealedRevisions>,
        after: SealedRevisions,
        change: CredentialChange,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.write(before, after, change))
    }

    fn put_pending(&self, login: PendingLogin, now: i64) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async move {
            // Those of all tenants are counted, and removed once expired.
            let mut transaction = self.0.begin(Port::Credentials, Scope::AllTenants).await?;
            pending_logins::put(&mut transaction, &login, now).await?;
            transaction.announce(Port::Credentials);
            transaction.commit().await
        })
    }

    fn take_pending<'a>(&'a self, id: &'a str) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        Box::pin(async move {
            // Its owner is not known before.
            let mut transaction = self.0.begin(Port::Credentials, Scope::AllTenants).await?;
            let login = pending_logins::take(&mut transaction, id).await?;
            if login.is_some() {
                transaction.announce(Port::Credentials);
            }
            transaction.commit().await?;
            Ok(login)
        })
    }

    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        Box::pin(async move {
            let [kind, tenant, subject] = owner.parts();
            let values: [&dyn Value; 4] = [&kind, &tenant, &subject, &server];
            let scope = owner_scope(owner);
            let rows = self.0.read(Port::Credentials, scope, pending_logins::FIND, &values).await?;
            Ok(rows.first().map(pending_logins::login_from_row))
        })
    }
}
