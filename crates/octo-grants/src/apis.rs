//! Documents of APIs that callers have loaded, kept for their next calls and beyond a restart.

use crate::{Capabilities, Grant};
use octo_model::{Caller, Kind, Principal, ToolError};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// APIs of one caller.
const MAX_APIS: usize = 64;

/// What is kept of an API beside its document.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredApi {
    pub name: String,
    /// Another one each time that the API is loaded.
    pub revision: String,
    /// JSON that only whoever wrote it understands.
    pub settings: String,
    /// The credential. Whoever keeps it on a disk seals it, bound to its owner, name and revision.
    pub secret: Option<String>,
}

impl std::fmt::Debug for StoredApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "KeptApi({} {}, {} secret)",
            self.name,
            self.revision,
            self.secret.as_ref().map_or("no", |_| "a")
        )
    }
}

/// What keeps them: the hub's store. An API belongs to the caller who has loaded it, and no other can see it.
pub trait ApiStore: Send + Sync {
    /// Keeps an API in place of one of the same name. Acknowledged means durable.
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> StoreFuture<'a, ()>;
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> StoreFuture<'a, Option<StoredApi>>;
    /// The document of exactly this revision.
    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> StoreFuture<'a, Option<String>>;
    /// All of a caller's, by name, without secrets.
    fn list<'a>(&'a self, caller: &'a Caller) -> StoreFuture<'a, Vec<StoredApi>>;
    /// Forgets an API; `false` when there was none.
    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> StoreFuture<'a, bool>;
}

/// The APIs of whoever calls.
#[derive(Clone)]
pub struct Apis(Arc<dyn ApiStore>);

impl Apis {
    pub fn new(keeps: Arc<dyn ApiStore>) -> Self {
        Self(keeps)
    }

    /// Kept in memory, until the process ends.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemoryApis::default()))
    }

    pub async fn put(&self, caller: &Caller, api: StoredApi, text: String) -> Result<(), ToolError> {
        let known = self.0.list(caller).await?;
        if known.len() >= MAX_APIS && known.iter().all(|kept| kept.name != api.name) {
            return Err(ToolError::new(Kind::TooLarge, format!("{MAX_APIS} APIs are loaded already."))
                .hint("Unload one that is no longer needed with openapi_unload."));
        }
        self.0.put(caller, api, text).await
    }

    pub async fn find(&self, caller: &Caller, name: &str) -> Result<Option<StoredApi>, ToolError> {
        self.0.find(caller, name).await
    }

    pub async fn text(
        &self,
        caller: &Caller,
        name: &str,
        revision: &str,
    ) -> Result<Option<String>, ToolError> {
        self.0.text(caller, name, revision).await
    }

    pub async fn list(&self, caller: &Caller) -> Result<Vec<StoredApi>, ToolError> {
        self.0.list(caller).await
    }

    pub async fn remove(&self, caller: &Caller, name: &str) -> Result<bool, ToolError> {
        self.0.remove(caller, name).await
    }
}

impl Grant for Apis {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

type Owned = HashMap<Principal, BTreeMap<String, (StoredApi, String)>>;

#[derive(Default)]
struct InMemoryApis(Mutex<Owned>);

impl InMemoryApis {
    fn lock(&self) -> MutexGuard<'_, Owned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_api<T>(
        &self,
        caller: &Caller,
        name: &str,
        look: impl Fn(&(StoredApi, String)) -> Option<T>,
    ) -> Option<T> {
        look(self.lock().get(&caller.principal)?.get(name)?)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl ApiStore for InMemoryApis {
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> StoreFuture<'a, ()> {
        self.lock().entry(caller.principal.clone()).or_default().insert(api.name.clone(), (api, text));
        ready(())
    }

    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> StoreFuture<'a, Option<StoredApi>> {
        ready(self.with_api(caller, name, |(api, _)| Some(api.clone())))
    }

    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> StoreFuture<'a, Option<String>> {
        ready(self.with_api(caller, name, |(api, text)| (api.revision == revision).then(|| text.clone())))
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> StoreFuture<'a, Vec<StoredApi>> {
        let known = self.lock().get(&caller.principal).cloned().unwrap_or_default();
        ready(known.into_values().map(|(api, _)| StoredApi { secret: None, ..api }).collect())
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> StoreFuture<'a, bool> {
        ready(self.lock().get_mut(&caller.principal).and_then(|known| known.remove(name)).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(name: &str) -> StoredApi {
        StoredApi {
            name: name.into(),
            revision: "1".into(),
            settings: "{}".into(),
            secret: Some("s3cret".into()),
        }
    }

    #[tokio::test]
    async fn an_api_is_its_callers_own() {
        let apis = Apis::in_memory();
        let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
        apis.put(&ada, api("x"), "text".into()).await.unwrap();
        assert_eq!(apis.find(&ada, "x").await.unwrap().unwrap().secret.as_deref(), Some("s3cret"));
        assert_eq!(apis.find(&bob, "x").await.unwrap(), None);
        assert_eq!(apis.text(&ada, "x", "1").await.unwrap().as_deref(), Some("text"));
        assert_eq!(apis.text(&ada, "x", "2").await.unwrap(), None);
        assert_eq!(apis.list(&ada).await.unwrap()[0].secret, None);
        assert!(!apis.remove(&bob, "x").await.unwrap() && apis.remove(&ada, "x").await.unwrap());
        assert!(apis.list(&ada).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn there_is_an_end_to_how_many_and_secrets_are_not_printed() {
        let apis = Apis::in_memory();
        let ada = Caller::named("ada");
        for n in 0..MAX_APIS {
            apis.put(&ada, api(&n.to_string()), String::new()).await.unwrap();
        }
        let error = apis.put(&ada, api("one more"), String::new()).await.unwrap_err();
        assert_eq!(error.kind, Kind::TooLarge);
        apis.put(&ada, api("7"), String::new()).await.unwrap();
        assert!(!format!("{:?}", api("x")).contains("s3cret"));
    }
}
