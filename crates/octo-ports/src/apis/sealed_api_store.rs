//! Seals the credentials of loaded APIs, for any backend.

use super::{ApiStore, Apis, StoredApi};
use crate::seal::{Keyring, OpenKeyring, Seal};
use crate::{Port, StoreError, StoreResult};
use octo_model::{BoxFuture, Caller, Principal};
use tokio::sync::OnceCell;

pub struct SealedApiStore {
    inner: Apis,
    open_keyring: OpenKeyring,
    keyring: OnceCell<Keyring>,
}

/// The data that a secret is bound to. The settings name the only origin that it is sent to.
fn binding<'a>(owner: &'a Principal, api: &'a StoredApi) -> [&'a str; 5] {
    [&owner.tenant, &owner.subject, &api.name, &api.revision, &api.settings]
}

/// With its credential sealed.
pub fn seal_api(seal: &Seal, owner: &Principal, api: StoredApi) -> StoreResult<StoredApi> {
    let Some(secret) = &api.secret else { return Ok(api) };
    let sealed = seal.seal(secret.expose(), &binding(owner, &api))?;
    Ok(StoredApi { secret: Some(sealed), ..api })
}

/// With its credential in clear.
pub fn open_api(keyring: &Keyring, owner: &Principal, api: StoredApi) -> StoreResult<StoredApi> {
    let Some(sealed) = &api.secret else { return Ok(api) };
    let mut seals = std::iter::once(&keyring.current).chain(&keyring.previous);
    match seals.find_map(|seal| seal.unseal(sealed, &binding(owner, &api))) {
        Some(clear) => Ok(StoredApi { secret: Some(clear), ..api }),
        None => Err(StoreError::SealMismatch { port: Port::Apis, name: api.name }),
    }
}

impl SealedApiStore {
    /// The keys are opened on first use.
    pub fn new(
        inner: Apis,
        open_keyring: impl Fn() -> BoxFuture<'static, StoreResult<Keyring>> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, open_keyring: Box::new(open_keyring), keyring: OnceCell::new() }
    }

    async fn keyring(&self) -> StoreResult<&Keyring> {
        self.keyring.get_or_try_init(|| (self.open_keyring)()).await
    }

    async fn seal(&self, caller: &Caller, api: StoredApi) -> StoreResult<StoredApi> {
        if api.secret.is_none() {
            return Ok(api);
        }
        seal_api(&self.keyring().await?.current, &caller.principal, api)
    }

    /// Reseals a secret of an earlier key.
    async fn unseal(&self, caller: &Caller, api: StoredApi) -> StoreResult<StoredApi> {
        let Some(sealed) = api.secret.clone() else { return Ok(api) };
        let (keyring, owner) = (self.keyring().await?, &caller.principal);
        let clear = open_api(keyring, owner, api)?;
        if keyring.current.unseal(&sealed, &binding(owner, &clear)).is_none() {
            let resealed = seal_api(&keyring.current, owner, clear.clone())?;
            self.inner.replace_secret(caller, &resealed).await?;
        }
        Ok(clear)
    }
}

impl ApiStore for SealedApiStore {
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move { self.inner.put(caller, self.seal(caller, api).await?, text).await })
    }

    fn replace_secret<'a>(
        &'a self,
        caller: &'a Caller,
        api: &'a StoredApi,
    ) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(
            async move { self.inner.replace_secret(caller, &self.seal(caller, api.clone()).await?).await },
        )
    }

    fn find<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<StoredApi>>> {
        Box::pin(async move {
            let Some(api) = self.inner.find(caller, name).await? else { return Ok(None) };
            self.unseal(caller, api).await.map(Some)
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
    use crate::in_memory;
    use octo_model::{Secret, ToolError};

    const FIRST: &str = "the first long secret";
    const SECOND: &str = "the second long secret";

    fn sealed(inner: &Apis, secret: &'static str, previous: &'static [&'static str]) -> SealedApiStore {
        SealedApiStore::new(inner.clone(), move || {
            let previous: Vec<Secret> = previous.iter().copied().map(Secret::new).collect();
            let keyring = Keyring::from_secrets(&Secret::new(secret), &previous);
            Box::pin(std::future::ready(keyring.map_err(StoreError::internal)))
        })
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
    async fn what_is_below_sees_no_secret() {
        let (ada, inner) = (Caller::named("ada"), in_memory::apis());
        let apis = sealed(&inner, FIRST, &[]);
        apis.put(&ada, api("1"), String::new()).await.unwrap();
        let opaque = inner.find(&ada, "x").await.unwrap().unwrap().secret.unwrap();
        assert!(!opaque.bytes().windows(10).any(|part| part == b"t0p-s3cret"));
        assert_eq!(apis.find(&ada, "x").await.unwrap(), Some(api("1")));
    }

    #[tokio::test]
    async fn a_sealed_secret_cannot_be_moved_to_another_row_or_destination() {
        let (ada, bob, inner) = (Caller::named("ada"), Caller::named("bob"), in_memory::apis());
        let apis = sealed(&inner, FIRST, &[]);
        apis.put(&ada, api("1"), String::new()).await.unwrap();
        let row = inner.find(&ada, "x").await.unwrap().unwrap();
        let elsewhere = StoredApi { settings: "{\"auth_origin\":\"https://x\"}".into(), ..row.clone() };
        for (row, caller) in [(elsewhere, &ada), (row, &bob)] {
            inner.put(caller, row, String::new()).await.unwrap();
            let error = ToolError::from(apis.find(caller, "x").await.unwrap_err());
            assert!(error.text().contains("load the API again"), "{error}");
        }
    }

    #[tokio::test]
    async fn another_key_opens_nothing_and_a_previous_one_is_replaced() {
        let (ada, inner) = (Caller::named("ada"), in_memory::apis());
        sealed(&inner, FIRST, &[]).put(&ada, api("1"), "text".into()).await.unwrap();
        let mismatch = Err(StoreError::SealMismatch { port: Port::Apis, name: "x".into() });
        assert_eq!(sealed(&inner, SECOND, &[]).find(&ada, "x").await, mismatch);
        let rotated = sealed(&inner, SECOND, &["an unrelated old secret", FIRST]);
        assert_eq!(rotated.find(&ada, "x").await.unwrap(), Some(api("1")));
        assert_eq!(sealed(&inner, SECOND, &[]).find(&ada, "x").await.unwrap(), Some(api("1")));
        assert_eq!(sealed(&inner, FIRST, &[]).find(&ada, "x").await, mismatch);
        assert_eq!(rotated.text(&ada, "x", "1").await.unwrap().as_deref(), Some("text"));
    }
}
