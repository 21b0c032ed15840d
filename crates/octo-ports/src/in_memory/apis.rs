//! In-memory APIs.

use super::ready;
use crate::StoreResult;
use crate::apis::{ApiStore, StoredApi, check_count};
use octo_model::{BoxFuture, Caller, Principal};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Owned = HashMap<Principal, BTreeMap<String, (StoredApi, String)>>;

#[derive(Default)]
pub struct InMemoryApis(Mutex<Owned>);

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

impl ApiStore for InMemoryApis {
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> BoxFuture<'a, StoreResult<()>> {
        let mut all = self.lock();
        let own = all.entry(caller.principal.clone()).or_default();
        let room = if own.contains_key(&api.name) { Ok(()) } else { check_count(own.len()) };
        ready(room.map(|()| drop(own.insert(api.name.clone(), (api, text)))))
    }

    fn replace_secret<'a>(
        &'a self,
        caller: &'a Caller,
        api: &'a StoredApi,
    ) -> BoxFuture<'a, StoreResult<()>> {
        let mut all = self.lock();
        let stored = all.get_mut(&caller.principal).and_then(|own| own.get_mut(&api.name));
        if let Some((stored, _)) = stored.filter(|(stored, _)| stored.revision == api.revision) {
            stored.secret.clone_from(&api.secret);
        }
        ready(Ok(()))
    }

    fn find<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<StoredApi>>> {
        ready(Ok(self.with_api(caller, name, |(api, _)| Some(api.clone()))))
    }

    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<String>>> {
        ready(Ok(self.with_api(caller, name, |(api, text)| (api.revision == revision).then(|| text.clone()))))
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, StoreResult<Vec<StoredApi>>> {
        let known = self.lock().get(&caller.principal).cloned().unwrap_or_default();
        ready(Ok(known.into_values().map(|(api, _)| StoredApi { secret: None, ..api }).collect()))
    }

    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, StoreResult<bool>> {
        ready(Ok(self.lock().get_mut(&caller.principal).and_then(|known| known.remove(name)).is_some()))
    }
}
