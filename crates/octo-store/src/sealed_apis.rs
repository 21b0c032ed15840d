//! Seals the credentials of loaded APIs, for any store.

use crate::seal::LazySeal;
use octo_model::{BoxFuture, Caller};
use octo_ports::apis::StoredApi;
use octo_ports::{ApiStore, Apis, Port, StoreError, StoreResult};

pub(crate) struct SealedApiStore {
    inner: Apis,
    seal: LazySeal,
}

impl SealedApiStore {
    pub(crate) fn new(inner: Apis, seal: LazySeal) -> Self {
        Self { inner, seal }
    }
}

/// The data that a secret is bound to. The settings name the only origin that it is sent to.
fn bound<'a>(caller: &'a Caller, api: &'a StoredApi) -> [&'a str; 5] {
    [&caller.principal.tenant, &caller.principal.subject, &api.name, &api.revision, &api.settings]
}

impl ApiStore for SealedApiStore {
    fn put<'a>(
        &'a self,
        caller: &'a Caller,
        mut api: StoredApi,
        text: String,
    ) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            if let Some(secret) = &api.secret {
                let seal = self.seal.open(Port::Apis).await?;
                api.secret = Some(seal.seal(secret.expose(), &bound(caller, &api))?);
            }
            self.inner.put(caller, api, text).await
        })
    }

    fn find<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<StoredApi>>> {
        Box::pin(async move {
            let Some(mut api) = self.inner.find(caller, name).await? else { return Ok(None) };
            if let Some(sealed) = &api.secret {
                let plain = self.seal.open(Port::Apis).await?.unseal(sealed, &bound(caller, &api));
                let mismatch = || StoreError::SealMismatch { port: Port::Apis, name: name.to_owned() };
                api.secret = Some(plain.ok_or_else(mismatch)?);
            }
            Ok(Some(api))
        })
    }

    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<String>>> {
        self.inner.text(caller, name, revision)
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, StoreResult<Vec<StoredApi>>> {
        self.inner.list(caller)
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, StoreResult<bool>> {
        self.inner.remove(caller, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use crate::api_store::SqliteApiStore;
    use octo_model::{Secret, ToolError};
    use octo_ports::in_memory;
    use rusqlite::Connection;
    use std::path::Path;
    use std::sync::Arc;

    fn apis(dir: &Path, secret: Option<&str>) -> SealedApiStore {
        let rows = Arc::new(SqliteApiStore::new(dir, Durability::Flush));
        SealedApiStore::new(rows, LazySeal::new(dir, secret.map(Secret::new)))
    }

    fn api(revision: &str) -> StoredApi {
        StoredApi {
            name: "x".into(),
            revision: revision.into(),
            settings: "{}".into(),
            secret: Some(Secret::new("t0p-s3cret")),
        }
    }

    #[tokio::test]
    async fn no_file_has_the_secret_in_clear() {
        let temp = tempfile::tempdir().unwrap();
        let ada = Caller::named("ada");
        apis(temp.path(), None).put(&ada, api("1"), "the document".into()).await.unwrap();
        assert_eq!(apis(temp.path(), None).find(&ada, "x").await.unwrap(), Some(api("1")));
        for file in std::fs::read_dir(temp.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(10).any(|part| part == b"t0p-s3cret"));
        }
    }

    #[tokio::test]
    async fn what_is_below_sees_no_secret() {
        let temp = tempfile::tempdir().unwrap();
        let (ada, inner) = (Caller::named("ada"), in_memory::apis());
        let sealed = SealedApiStore::new(inner.clone(), LazySeal::new(temp.path(), None));
        sealed.put(&ada, api("1"), String::new()).await.unwrap();
        let opaque = inner.find(&ada, "x").await.unwrap().unwrap().secret.unwrap();
        assert!(!opaque.bytes().windows(10).any(|part| part == b"t0p-s3cret"));
        assert_eq!(sealed.find(&ada, "x").await.unwrap(), Some(api("1")));
    }

    #[tokio::test]
    async fn a_sealed_secret_cannot_be_moved_to_another_row_or_destination() {
        let temp = tempfile::tempdir().unwrap();
        let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
        let apis = apis(temp.path(), None);
        apis.put(&ada, api("1"), String::new()).await.unwrap();
        let conn = Connection::open(temp.path().join("apis.db")).unwrap();
        for (change, caller) in [
            ("settings = '{\"auth_origin\":\"https://x\"}'", &ada),
            ("subject = 'bob', settings = '{}'", &bob),
        ] {
            conn.execute(&format!("UPDATE apis SET {change}"), ()).unwrap();
            let error = ToolError::from(apis.find(caller, "x").await.unwrap_err());
            assert!(error.text().contains("load the API again"), "{error}");
        }
    }

    #[tokio::test]
    async fn another_key_opens_nothing_and_says_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let ada = Caller::named("ada");
        apis(temp.path(), Some("the first long secret")).put(&ada, api("1"), String::new()).await.unwrap();
        let error = apis(temp.path(), Some("the second long secret")).find(&ada, "x").await.unwrap_err();
        assert_eq!(error, StoreError::SealMismatch { port: Port::Apis, name: "x".into() });
        assert!(!temp.path().join("seal.key").exists());
    }
}
