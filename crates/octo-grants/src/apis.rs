//! Documents of APIs that callers have loaded, kept for their next calls and beyond a restart.

use crate::{Doors, Grant};
use octo_model::{Caller, Kind, Principal, ToolError};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// APIs of one caller.
const MOST: usize = 64;

/// What is kept of an API beside its document.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptApi {
    pub name: String,
    /// Another one each time that the API is loaded.
    pub revision: String,
    /// JSON that only whoever wrote it understands.
    pub settings: String,
    /// The credential. Whoever keeps it on a disk seals it, bound to its owner, name and revision.
    pub secret: Option<String>,
}

impl std::fmt::Debug for KeptApi {
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
pub trait KeepsApis: Send + Sync {
    /// Keeps an API in place of one of the same name. Acknowledged means durable.
    fn put<'a>(&'a self, caller: &'a Caller, api: KeptApi, text: String) -> Later<'a, ()>;
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Later<'a, Option<KeptApi>>;
    /// The document of exactly this revision.
    fn text<'a>(&'a self, caller: &'a Caller, name: &'a str, revision: &'a str) -> Later<'a, Option<String>>;
    /// All of a caller's, by name, without secrets.
    fn list<'a>(&'a self, caller: &'a Caller) -> Later<'a, Vec<KeptApi>>;
    /// Forgets an API; `false` when there was none.
    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Later<'a, bool>;
}

/// The APIs of whoever calls.
#[derive(Clone)]
pub struct Apis(Arc<dyn KeepsApis>);

impl Apis {
    pub fn new(keeps: Arc<dyn KeepsApis>) -> Self {
        Self(keeps)
    }

    /// Kept in memory, until the process ends.
    pub fn until_the_end() -> Self {
        Self::new(Arc::new(Memory::default()))
    }

    pub async fn put(&self, caller: &Caller, api: KeptApi, text: String) -> Result<(), ToolError> {
        let known = self.0.list(caller).await?;
        if known.len() >= MOST && known.iter().all(|kept| kept.name != api.name) {
            return Err(ToolError::new(Kind::TooLarge, format!("{MOST} APIs are loaded already."))
                .hint("Unload one that is no longer needed with openapi_unload."));
        }
        self.0.put(caller, api, text).await
    }

    pub async fn find(&self, caller: &Caller, name: &str) -> Result<Option<KeptApi>, ToolError> {
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

    pub async fn list(&self, caller: &Caller) -> Result<Vec<KeptApi>, ToolError> {
        self.0.list(caller).await
    }

    pub async fn remove(&self, caller: &Caller, name: &str) -> Result<bool, ToolError> {
        self.0.remove(caller, name).await
    }
}

impl Grant for Apis {
    fn open(doors: &Doors) -> Result<Self, ToolError> {
        doors.open()
    }
}

type Owned = HashMap<Principal, BTreeMap<String, (KeptApi, String)>>;

#[derive(Default)]
struct Memory(Mutex<Owned>);

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Owned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(
        &self,
        caller: &Caller,
        name: &str,
        look: impl Fn(&(KeptApi, String)) -> Option<T>,
    ) -> Option<T> {
        look(self.lock().get(&caller.principal)?.get(name)?)
    }
}

fn now<'a, T: Send + 'a>(value: T) -> Later<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl KeepsApis for Memory {
    fn put<'a>(&'a self, caller: &'a Caller, api: KeptApi, text: String) -> Later<'a, ()> {
        self.lock().entry(caller.principal.clone()).or_default().insert(api.name.clone(), (api, text));
        now(())
    }

    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Later<'a, Option<KeptApi>> {
        now(self.look(caller, name, |(api, _)| Some(api.clone())))
    }

    fn text<'a>(&'a self, caller: &'a Caller, name: &'a str, revision: &'a str) -> Later<'a, Option<String>> {
        now(self.look(caller, name, |(api, text)| (api.revision == revision).then(|| text.clone())))
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> Later<'a, Vec<KeptApi>> {
        let known = self.lock().get(&caller.principal).cloned().unwrap_or_default();
        now(known.into_values().map(|(api, _)| KeptApi { secret: None, ..api }).collect())
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Later<'a, bool> {
        now(self.lock().get_mut(&caller.principal).and_then(|known| known.remove(name)).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(name: &str) -> KeptApi {
        KeptApi {
            name: name.into(),
            revision: "1".into(),
            settings: "{}".into(),
            secret: Some("s3cret".into()),
        }
    }

    #[tokio::test]
    async fn an_api_is_its_callers_own() {
        let apis = Apis::until_the_end();
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
        let apis = Apis::until_the_end();
        let ada = Caller::named("ada");
        for n in 0..MOST {
            apis.put(&ada, api(&n.to_string()), String::new()).await.unwrap();
        }
        let error = apis.put(&ada, api("one more"), String::new()).await.unwrap_err();
        assert_eq!(error.kind, Kind::TooLarge);
        apis.put(&ada, api("7"), String::new()).await.unwrap();
        assert!(!format!("{:?}", api("x")).contains("s3cret"));
    }
}
