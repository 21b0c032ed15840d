//! Memory for large messages that are received, so that no sender can use all of it.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit.
const PERMIT_BYTES: usize = 1 << 10;

/// Bytes of large messages that are received at the same time; further ones wait.
#[derive(Clone)]
pub struct ReceiveBudget(Arc<Semaphore>);

impl ReceiveBudget {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PERMIT_BYTES)))
    }

    /// Waits for memory, in turn. Returns `None` if there will never be as much.
    pub async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).ok()?;
        Arc::clone(&self.0).acquire_many_owned(permits).await.ok()
    }
}
