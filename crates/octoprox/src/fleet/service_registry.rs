//! What this node serves, or would take over, for its status.

use octo_fabric::ServiceStatus;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Default)]
pub struct ServiceRegistry(Arc<Mutex<BTreeMap<String, ServiceStatus>>>);

impl ServiceRegistry {
    pub fn set_standby(&self, name: &str) {
        self.put(ServiceStatus { name: name.to_owned(), ..ServiceStatus::default() });
    }

    /// Returns whether that is new.
    pub fn set_other_files(&self, name: &str) -> bool {
        let is_known = self.lock().get(name).is_some_and(|known| known.has_other_files);
        self.put(ServiceStatus { name: name.to_owned(), has_other_files: true, ..ServiceStatus::default() });
        !is_known
    }

    pub fn set_serving(&self, name: &str, token: Option<u64>) {
        self.put(ServiceStatus { name: name.to_owned(), is_serving: true, token, has_other_files: false });
    }

    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    pub fn all(&self) -> Vec<ServiceStatus> {
        self.lock().values().cloned().collect()
    }

    fn put(&self, status: ServiceStatus) {
        self.lock().insert(status.name.clone(), status);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ServiceStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
