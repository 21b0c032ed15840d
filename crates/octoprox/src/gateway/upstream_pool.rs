//! Servers that several gateways of one process share, because their settings and their surroundings are the same.

use octo_upstream::Upstream;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Clone, Default)]
pub struct UpstreamPool(Arc<Mutex<HashMap<String, PooledUpstream>>>);

struct PooledUpstream {
    upstream: Weak<Upstream>,
    /// Leases of it.
    users: usize,
}

/// The use of a server by one gateway.
pub struct UpstreamLease {
    pool: UpstreamPool,
    key: String,
    upstream: Option<Arc<Upstream>>,
}

impl UpstreamPool {
    /// Key of a server that is not shared.
    pub fn unique_key() -> String {
        octo_model::CallId::fresh().to_string()
    }

    /// Returns the running server with this key, or starts one.
    pub fn lease(
        &self,
        key: String,
        start: impl FnOnce() -> Arc<Upstream>,
    ) -> (UpstreamLease, Arc<Upstream>) {
        let mut servers = self.lock();
        let pooled =
            servers.entry(key.clone()).or_insert_with(|| PooledUpstream { upstream: Weak::new(), users: 0 });
        let upstream = pooled.upstream.upgrade().filter(|_| pooled.users > 0).unwrap_or_else(start);
        pooled.upstream = Arc::downgrade(&upstream);
        pooled.users += 1;
        (UpstreamLease { pool: self.clone(), key, upstream: Some(Arc::clone(&upstream)) }, upstream)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PooledUpstream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether nobody uses the server any longer.
    fn end_use(&self, key: &str) -> bool {
        let mut servers = self.lock();
        let Some(pooled) = servers.get_mut(key) else { return true };
        pooled.users -= 1;
        let is_unused = pooled.users == 0;
        if is_unused {
            servers.remove(key);
        }
        is_unused
    }
}

impl UpstreamLease {
    /// Ends the use. Returns the server if this was the last one, so that the caller stops it.
    pub fn release(mut self) -> Option<Arc<Upstream>> {
        let upstream = self.upstream.take()?;
        self.pool.end_use(&self.key).then_some(upstream)
    }
}

/// A server that nobody uses ends when it is dropped.
impl Drop for UpstreamLease {
    fn drop(&mut self) {
        if self.upstream.take().is_some() {
            self.pool.end_use(&self.key);
        }
    }
}
