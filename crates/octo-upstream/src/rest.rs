//! A connection that was ended by wish, and stays ended until somebody needs it.

use tokio::sync::watch;

/// Whether it rests.
pub(crate) struct Rest(watch::Sender<bool>);

impl Default for Rest {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Rest {
    pub(crate) fn set(&self, on: bool) {
        self.0.send_if_modified(|rests| std::mem::replace(rests, on) != on);
    }

    pub(crate) fn is_on(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it rests, or does not.
    pub(crate) async fn until(&self, on: bool) {
        let _ = self.0.subscribe().wait_for(|rests| *rests == on).await;
    }
}
