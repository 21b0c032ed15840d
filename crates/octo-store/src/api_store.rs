//! APIs that callers have loaded, in a database of their own; credentials sealed.

use crate::database::DatabaseSpec;
use crate::seal::Seal;
use crate::{Durability, StoreError, private_files};
use octo_grants::apis::{ApiStore, StoredApi};
use octo_model::{Caller, Principal, ToolError};
use octo_toolkit::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const DATABASE: DatabaseSpec = DatabaseSpec {
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

/// The APIs of all callers in one directory. Several processes may have the same one open; nothing is touched before
/// the first of them is asked for.
#[derive(Clone)]
pub struct SqliteApiStore(Arc<ApiStoreState>);

struct ApiStoreState {
    dir: PathBuf,
    durability: Durability,
    /// The operator's; without it the directory has a key of its own.
    secret: Option<String>,
    opened: Mutex<Option<OpenDatabase>>,
}

struct OpenDatabase {
    conn: Connection,
    seal: Seal,
}

impl SqliteApiStore {
    pub fn new(dir: &Path, durability: Durability, secret: Option<String>) -> Self {
        Self(Arc::new(ApiStoreState { dir: dir.to_owned(), durability, secret, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenDatabase) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(inner.open().map_err(store_error)?);
            }
            opened.as_ref().ok_or_else(|| ToolError::internal("the APIs are not open")).and_then(work)
        });
        done.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

impl ApiStoreState {
    fn open(&self) -> Result<OpenDatabase, StoreError> {
        private_files::create_private_dir(&self.dir)?;
        let seal = Seal::open(&self.dir, self.secret.as_deref())?;
        Ok(OpenDatabase { conn: DATABASE.open(&self.dir, self.durability)?, seal })
    }
}

impl OpenDatabase {
    fn put(&self, owner: &Principal, api: &StoredApi, text: &str) -> Result<(), ToolError> {
        let bound = [owner.tenant.as_str(), &owner.subject, &api.name, &api.revision];
        let sealed = match &api.secret {
            Some(secret) => {
                let sealed = self.seal.seal(secret, &bound);
                Some(sealed.ok_or_else(|| ToolError::internal("a secret could not be sealed"))?)
            }
            None => None,
        };
        let statement = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO apis (tenant, subject, name, revision, settings, secret, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        );
        let [tenant, subject, name, revision] = bound;
        statement
            .and_then(|mut put| put.execute((tenant, subject, name, revision, &api.settings, sealed, text)))
            .map(drop)
            .map_err(store_error)
    }

    fn find(&self, owner: &Principal, name: &str) -> Result<Option<StoredApi>, ToolError> {
        let statement = self.conn.prepare_cached(
            "SELECT name, revision, settings, secret FROM apis WHERE tenant = ?1 AND subject = ?2 AND name = ?3",
        );
        let found = statement
            .and_then(|mut find| {
                let row = |row: &Row<'_>| Ok((api_from_row(row)?, row.get::<_, Option<Vec<u8>>>(3)?));
                find.query_row((&owner.tenant, &owner.subject, name), row).optional()
            })
            .map_err(store_error)?;
        let Some((api, sealed)) = found else { return Ok(None) };
        let Some(sealed) = sealed else { return Ok(Some(api)) };
        let bound = [owner.tenant.as_str(), &owner.subject, &api.name, &api.revision];
        let secret = self.seal.unseal(&sealed, &bound).ok_or_else(|| {
            ToolError::unavailable(format!("The credential of `{name}` cannot be opened."))
                .hint("The hub's key has changed: load the API again, with its credential.")
        })?;
        Ok(Some(StoredApi { secret: Some(secret), ..api }))
    }

    fn text(&self, owner: &Principal, name: &str, revision: &str) -> Result<Option<String>, ToolError> {
        let statement = self.conn.prepare_cached(
            "SELECT text FROM apis WHERE tenant = ?1 AND subject = ?2 AND name = ?3 AND revision = ?4",
        );
        let values = (&owner.tenant, &owner.subject, name, revision);
        statement
            .and_then(|mut text| text.query_row(values, |row| row.get(0)).optional())
            .map_err(store_error)
    }

    fn list(&self, owner: &Principal) -> Result<Vec<StoredApi>, ToolError> {
        let statement = self.conn.prepare_cached(
            "SELECT name, revision, settings FROM apis WHERE tenant = ?1 AND subject = ?2 ORDER BY name",
        );
        statement
            .and_then(|mut list| list.query_map((&owner.tenant, &owner.subject), api_from_row)?.collect())
            .map_err(store_error)
    }

    fn remove(&self, owner: &Principal, name: &str) -> Result<bool, ToolError> {
        let statement =
            self.conn.prepare_cached("DELETE FROM apis WHERE tenant = ?1 AND subject = ?2 AND name = ?3");
        let removed = statement.and_then(|mut gone| gone.execute((&owner.tenant, &owner.subject, name)));
        removed.map(|count| count > 0).map_err(store_error)
    }
}

fn api_from_row(row: &Row<'_>) -> rusqlite::Result<StoredApi> {
    Ok(StoredApi { name: row.get(0)?, revision: row.get(1)?, settings: row.get(2)?, secret: None })
}

fn store_error(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The loaded APIs cannot be read or written.")
        .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        .detail(why)
}

impl ApiStore for SqliteApiStore {
    fn put<'a>(
        &'a self,
        caller: &'a Caller,
        api: StoredApi,
        text: String,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let owner = caller.principal.clone();
        Box::pin(self.run_blocking(move |opened| opened.put(&owner, &api, &text)))
    }

    fn find<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApi>, ToolError>> {
        let (owner, name) = (caller.principal.clone(), name.to_owned());
        Box::pin(self.run_blocking(move |opened| opened.find(&owner, &name)))
    }

    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        let (owner, name, revision) = (caller.principal.clone(), name.to_owned(), revision.to_owned());
        Box::pin(self.run_blocking(move |opened| opened.text(&owner, &name, &revision)))
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Vec<StoredApi>, ToolError>> {
        let owner = caller.principal.clone();
        Box::pin(self.run_blocking(move |opened| opened.list(&owner)))
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<bool, ToolError>> {
        let (owner, name) = (caller.principal.clone(), name.to_owned());
        Box::pin(self.run_blocking(move |opened| opened.remove(&owner, &name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_grants::Apis;

    fn apis(dir: &Path, secret: Option<&str>) -> Apis {
        Apis::new(Arc::new(SqliteApiStore::new(dir, Durability::Flush, secret.map(ToOwned::to_owned))))
    }

    fn api(revision: &str) -> StoredApi {
        StoredApi {
            name: "x".into(),
            revision: revision.into(),
            settings: "{}".into(),
            secret: Some("t0p-s3cret".into()),
        }
    }

    #[tokio::test]
    async fn an_api_outlives_the_process_with_its_secret_sealed() {
        let temp = tempfile::tempdir().unwrap();
        let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
        apis(temp.path(), None).put(&ada, api("1"), "the document".into()).await.unwrap();
        let again = apis(temp.path(), None);
        assert_eq!(again.find(&ada, "x").await.unwrap(), Some(api("1")));
        assert_eq!(again.text(&ada, "x", "1").await.unwrap().as_deref(), Some("the document"));
        assert_eq!(again.text(&ada, "x", "0").await.unwrap(), None);
        assert_eq!(again.list(&ada).await.unwrap(), [StoredApi { secret: None, ..api("1") }]);
        assert_eq!(again.find(&bob, "x").await.unwrap(), None);
        for file in std::fs::read_dir(temp.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(10).any(|part| part == b"t0p-s3cret"));
        }
        assert!(!again.remove(&bob, "x").await.unwrap() && again.remove(&ada, "x").await.unwrap());
        assert_eq!(apis(temp.path(), None).list(&ada).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_sealed_secret_cannot_be_moved_to_another_row() {
        let temp = tempfile::tempdir().unwrap();
        let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
        let apis = apis(temp.path(), None);
        apis.put(&ada, api("1"), String::new()).await.unwrap();
        let conn = Connection::open(temp.path().join("apis.db")).unwrap();
        conn.execute("UPDATE apis SET subject = 'bob'", ()).unwrap();
        let error = apis.find(&bob, "x").await.unwrap_err();
        assert!(error.text().contains("load the API again"), "{error}");
    }

    #[tokio::test]
    async fn another_key_opens_nothing_and_says_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let ada = Caller::named("ada");
        apis(temp.path(), Some("the first long secret")).put(&ada, api("1"), String::new()).await.unwrap();
        let error = apis(temp.path(), Some("the second long secret")).find(&ada, "x").await.unwrap_err();
        assert!(error.hint.is_some() && !format!("{error:?}").contains("s3cret"), "{error:?}");
        assert!(!temp.path().join("seal.key").exists());
    }
}
