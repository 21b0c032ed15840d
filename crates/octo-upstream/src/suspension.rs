//! A connection that was ended by wish, and stays ended until somebody needs it.

use tokio::sync::watch;

/// Whether it rests.
pub(crate) struct Suspension(watch::Sender<bool>);

impl Default for Suspension {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Suspension {
    pub(crate) fn set(&self, on: bool) {
        self.0.send_if_modified(|rests| std::mem::replace(rests, on) != on);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it rests, or does not.
    pub(crate) async fn wait_for(&self, on: bool) {
        let _ = self.0.subscribe().wait_for(|rests| *rests == on).await;
    }
}
