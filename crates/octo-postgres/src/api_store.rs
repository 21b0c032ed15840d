//! APIs that callers have loaded. Their credentials are sealed before they get here.

use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::{BoxFuture, Caller, Principal, Secret};
use octo_ports::apis::{MAX_APIS, StoredApi};
use octo_ports::{ApiStore, Limit, Port, StoreError, StoreResult};
use std::sync::Arc;
use tokio_postgres::Row;

pub(crate) struct PostgresApiStore(pub(crate) Arc<Database>);

pub(crate) fn text_from_bytes(bytes: Vec<u8>) -> StoreResult<String> {
    String::from_utf8(bytes).map_err(|error| StoreError::corrupt(Port::Apis, error))
}

/// An API from its name, revision, settings and secret.
pub(crate) fn api_from_row(row: &Row) -> StoreResult<StoredApi> {
    let secret = row.get::<_, Option<Vec<u8>>>(3).map(Secret::from_bytes);
    Ok(StoredApi { name: text_from_bytes(row.get(0))?, revision: row.get(1), settings: row.get(2), secret })
}

impl PostgresApiStore {
    async fn read(&self, owner: &Principal, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        self.0.read(Port::Apis, Scope::Tenant(&owner.tenant), sql, values).await
    }

    async fn write(&self, owner: &Principal, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        self.0.write(Port::Apis, Scope::Tenant(&owner.tenant), sql, values).await
    }

    async fn put(&self, owner: &Principal, api: &StoredApi, text: &str) -> StoreResult<()> {
        let mut transaction = self.0.begin(Port::Apis, Scope::Tenant(&owner.tenant)).await?;
        // The APIs of an owner are counted by one at a time.
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended('apis of ' || $1 || '/' || $2, 0))";
        transaction.query(lock, &[&owner.tenant, &owner.subject]).await?;
        let put = "INSERT INTO apis (tenant, subject, name, revision, settings, secret, document)
            SELECT $1, $2, $3, $4, $5, $6, $7
            WHERE (SELECT count(*) FROM apis WHERE tenant = $1 AND subject = $2 AND name <> $3) < $8
            ON CONFLICT (tenant, subject, name) DO UPDATE SET revision = excluded.revision,
                settings = excluded.settings, secret = excluded.secret, document = excluded.document";
        let (name, secret) = (api.name.as_bytes(), api.secret.as_ref().map(Secret::bytes));
        let (document, limit) = (text.as_bytes(), i64::try_from(MAX_APIS).unwrap_or(i64::MAX));
        let values: [&dyn Value; 8] =
            [&owner.tenant, &owner.subject, &name, &api.revision, &api.settings, &secret, &document, &limit];
        if transaction.execute(put, &values).await? == 0 {
            return Err(StoreError::Full(Limit::Apis));
        }
        transaction.commit().await
    }
}

impl ApiStore for PostgresApiStore {
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move { self.put(&caller.principal, &api, &text).await })
    }

    fn replace_secret<'a>(
        &'a self,
        caller: &'a Caller,
        api: &'a StoredApi,
    ) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let owner = &caller.principal;
            let replace = "UPDATE apis SET secret = $5
                           WHERE tenant = $1 AND subject = $2 AND name = $3 AND revision = $4";
            let (name, secret) = (api.name.as_bytes(), api.secret.as_ref().map(Secret::bytes));
            let values: [&dyn Value; 5] = [&owner.tenant, &owner.subject, &name, &api.revision, &secret];
            self.write(owner, replace, &values).await.map(drop)
        })
    }

    fn find<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<StoredApi>>> {
        Box::pin(async move {
            let (owner, name) = (&caller.principal, name.as_bytes());
            let find = "SELECT name, revision, settings, secret FROM apis
                        WHERE tenant = $1 AND subject = $2 AND name = $3";
            let rows = self.read(owner, find, &[&owner.tenant, &owner.subject, &name]).await?;
            rows.first().map(api_from_row).transpose()
        })
    }

    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<String>>> {
        Box::pin(async move {
            let (owner, name) = (&caller.principal, name.as_bytes());
            let text = "SELECT document FROM apis
                        WHERE tenant = $1 AND subject = $2 AND name = $3 AND revision = $4";
            let rows = self.read(owner, text, &[&owner.tenant, &owner.subject, &name, &revision]).await?;
            rows.first().map(|row| text_from_bytes(row.get(0))).transpose()
        })
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, StoreResult<Vec<StoredApi>>> {
        Box::pin(async move {
            let owner = &caller.principal;
            let list = "SELECT name, revision, settings, NULL::bytea FROM apis
                        WHERE tenant = $1 AND subject = $2 ORDER BY name";
            let rows = self.read(owner, list, &[&owner.tenant, &owner.subject]).await?;
            rows.iter().map(api_from_row).collect()
        })
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let (owner, name) = (&caller.principal, name.as_bytes());
            let remove = "DELETE FROM apis WHERE tenant = $1 AND subject = $2 AND name = $3 RETURNING name";
            let removed = self.write(owner, remove, &[&owner.tenant, &owner.subject, &name]).await?;
            Ok(!removed.is_empty())
        })
    }
}
