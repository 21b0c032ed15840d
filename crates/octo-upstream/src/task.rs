//! Tasks that end with their owner.

use tokio::task::{AbortHandle, JoinHandle};

/// Aborts its task when it is dropped.
pub(crate) struct Owned(AbortHandle);

impl<T> From<JoinHandle<T>> for Owned {
    fn from(handle: JoinHandle<T>) -> Self {
        Self(handle.abort_handle())
    }
}

impl Owned {
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
