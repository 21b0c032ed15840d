//! Tasks that end with their owner.

use tokio::task::{AbortHandle, JoinHandle};

/// Aborts its task on drop.
pub(crate) struct AbortOnDrop(AbortHandle);

impl<T> From<JoinHandle<T>> for AbortOnDrop {
    fn from(handle: JoinHandle<T>) -> Self {
        Self(handle.abort_handle())
    }
}

impl AbortOnDrop {
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
