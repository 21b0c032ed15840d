//! APIs that callers have loaded, in a separate database.

use crate::Durability;
use crate::database::DatabaseSpec;
use crate::lazy_database::{LazyDatabase, WorkResult};
use octo_model::Secret;
use octo_model::{BoxFuture, Caller, Principal};
use octo_ports::apis::{self, StoredApi};
use octo_ports::{ApiStore, Port, StoreResult};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::Path;

pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "apis.db",
    migrations: &["
    CREATE TABLE apis (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        name TEXT NOT NULL,
        revision TEXT NOT NULL,
        settings TEXT NOT NULL,
        secret BLOB,
        text TEXT NOT NULL,
        PRIMARY KEY (tenant, subject, name)
    ) STRICT;
"],
};

pub(crate) struct SqliteApiStore(LazyDatabase);

impl SqliteApiStore {
    pub(crate) fn new(dir: &Path, durability: Durability) -> Self {
        Self(LazyDatabase::of(Port::Apis, dir, &DATABASE, durability))
    }
}

fn put(conn: &Connection, owner: &Principal, api: &StoredApi, text: &str) -> WorkResult<()> {
    let mut count =
        conn.prepare_cached("SELECT count(*) FROM apis WHERE tenant = ?1 AND subject = ?2 AND name <> ?3")?;
    let others: i64 = count.query_row((&owner.tenant, &owner.subject, &api.name), |row| row.get(0))?;
    apis::check_count(usize::try_from(others).unwrap_or(usize::MAX))?;
    let mut put = conn.prepare_cached(
        "INSERT OR REPLACE INTO apis (tenant, subject, name, revision, settings, secret, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let secret = api.secret.as_ref().map(Secret::bytes);
    put.execute((&owner.tenant, &owner.subject, &api.name, &api.revision, &api.settings, secret, text))?;
    Ok(())
}

/// An API from its name, revision, settings and secret.
pub(crate) fn api_from_row(row: &Row<'_>) -> rusqlite::Result<StoredApi> {
    let secret = row.get::<_, Option<Vec<u8>>>(3)?.map(Secret::from_bytes);
    Ok(StoredApi { name: row.get(0)?, revision: row.get(1)?, settings: row.get(2)?, secret })
}

impl ApiStore for SqliteApiStore {
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> BoxFuture<'a, StoreResult<()>> {
        let owner = caller.principal.clone();
        Box::pin(self.0.write(move |change| put(change, &owner, &api, &text)))
    }

    fn replace_secret<'a>(
        &'a self,
        caller: &'a Caller,
        api: &'a StoredApi,
    ) -> BoxFuture<'a, StoreResult<()>> {
        let (owner, api) = (caller.principal.clone(), api.clone());
        Box::pin(self.0.run(move |conn| {
            let mut replace = conn.prepare_cached(
                "UPDATE apis SET secret = ?5 WHERE tenant = ?1 AND subject = ?2 AND name = ?3 AND revision = ?4",
            )?;
            let secret = api.secret.as_ref().map(Secret::bytes);
            replace.execute((owner.tenant, owner.subject, api.name, api.revision, secret))?;
            Ok(())
        }))
    }

    fn find<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<StoredApi>>> {
        let (owner, name) = (caller.principal.clone(), name.to_owned());
        Box::pin(self.0.run(move |conn| {
            let mut find = conn.prepare_cached(
                "SELECT name, revision, settings, secret FROM apis WHERE tenant = ?1 AND subject = ?2 AND name = ?3",
            )?;
            Ok(find.query_row((owner.tenant, owner.subject, name), api_from_row).optional()?)
        }))
    }

    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<String>>> {
        let (owner, name, revision) = (caller.principal.clone(), name.to_owned(), revision.to_owned());
        Box::pin(self.0.run(move |conn| {
            let mut text = conn.prepare_cached(
                "SELECT text FROM apis WHERE tenant = ?1 AND subject = ?2 AND name = ?3 AND revision = ?4",
            )?;
            let key = (owner.tenant, owner.subject, name, revision);
            Ok(text.query_row(key, |row| row.get(0)).optional()?)
        }))
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, StoreResult<Vec<StoredApi>>> {
        let owner = caller.principal.clone();
        Box::pin(self.0.run(move |conn| {
            let mut list = conn.prepare_cached(
                "SELECT name, revision, settings, NULL FROM apis WHERE tenant = ?1 AND subject = ?2 ORDER BY name",
            )?;
            Ok(list.query_map((owner.tenant, owner.subject), api_from_row)?.collect::<Result<_, _>>()?)
        }))
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, StoreResult<bool>> {
        let (owner, name) = (caller.principal.clone(), name.to_owned());
        Box::pin(self.0.run(move |conn| {
            let mut remove =
                conn.prepare_cached("DELETE FROM apis WHERE tenant = ?1 AND subject = ?2 AND name = ?3")?;
            Ok(remove.execute((owner.tenant, owner.subject, name))? > 0)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, SealKeys, sqlite};

    #[tokio::test]
    async fn no_file_has_the_secret_in_clear() {
        let temp = tempfile::tempdir().unwrap();
        let ada = Caller::named("ada");
        let api = StoredApi {
            name: "x".into(),
            revision: "1".into(),
            settings: "{}".into(),
            secret: Some(Secret::new("t0p-s3cret")),
        };
        for secret in [None, Some(Secret::new("a long enough secret"))] {
            let is_first = secret.is_none();
            let seal_keys = SealKeys { secret, ..SealKeys::default() };
            let stores =
                || sqlite(temp.path(), Options { seal_keys: seal_keys.clone(), ..Options::default() });
            // The second time with the directory's own key as the previous one.
            if is_first {
                stores().unwrap().apis.put(&ada, api.clone(), "the document".into()).await.unwrap();
            }
            assert_eq!(stores().unwrap().apis.find(&ada, "x").await.unwrap().as_ref(), Some(&api));
            for file in std::fs::read_dir(temp.path()).unwrap() {
                let bytes = std::fs::read(file.unwrap().path()).unwrap();
                assert!(!bytes.windows(10).any(|part| part == b"t0p-s3cret"));
            }
        }
    }
}
