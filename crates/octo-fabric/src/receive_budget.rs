//! Memory for the large messages of one source, so that no other node can use all of it.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum bytes of large messages that are received at the same time; further ones wait.
const RECEIVE_BYTES: usize = 128 << 20;
/// Bytes of one permit.
const PERMIT_BYTES: usize = 1 << 10;

#[derive(Clone)]
pub(crate) struct ReceiveBudget(Arc<Semaphore>);

impl Default for ReceiveBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(RECEIVE_BYTES / PERMIT_BYTES)))
    }
}

impl ReceiveBudget {
    /// Waits for memory. Returns `None` if there will never be as much.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).ok()?;
        Arc::clone(&self.0).acquire_many_owned(permits).await.ok()
    }
}
