//! Notification of changes, for those who wait for a store to change.

use octo_model::BoxFuture;
use std::sync::Arc;
use tokio::sync::watch;

/// The end of a backend: announces that a store was written.
#[derive(Clone, Default)]
pub struct ChangeNotifier(watch::Sender<()>);

impl ChangeNotifier {
    /// Wakes all subscribers. Call it once the change can be read.
    pub fn notify(&self) {
        self.0.send_replace(());
    }

    pub fn subscribe(&self) -> Changes {
        Changes { receiver: self.0.subscribe(), _listener: None, other: None }
    }
}

/// The end of a waiter: subscribe, read the store, wait, read again. No write after the subscription is missed,
/// whichever process made it; a wake-up without a write is possible.
pub struct Changes {
    receiver: watch::Receiver<()>,
    _listener: Option<Arc<dyn Send + Sync>>,
    other: Option<Box<Changes>>,
}

impl Changes {
    /// Keeps a backend's listener for the writes of other processes alive as long as there are subscribers.
    #[must_use]
    pub fn with_listener(self, listener: Arc<dyn Send + Sync>) -> Self {
        Self { _listener: Some(listener), ..self }
    }

    /// The changes of either store.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        let rest = match self.other {
            None => other,
            Some(rest) => rest.or(other),
        };
        self.other = Some(Box::new(rest));
        self
    }

    /// Returns once the store may have changed since the subscription or the last return. A cancelled wait loses
    /// nothing.
    pub fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let own = async {
                // Without its notifier, a store does not change any more.
                if self.receiver.changed().await.is_err() {
                    std::future::pending().await
                }
            };
            match &mut self.other {
                None => own.await,
                Some(other) => tokio::select! {
                    () = own => {}
                    () = other.changed() => {}
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn each_of_several_stores_wakes_and_none_does_so_without_a_reason() {
        let stores: [ChangeNotifier; 3] = Default::default();
        let [one, two, three] = stores.each_ref().map(ChangeNotifier::subscribe);
        let mut changes = one.or(two).or(three);
        for store in &stores {
            assert!(timeout(Duration::ZERO, changes.changed()).await.is_err());
            store.notify();
            store.notify();
            assert!(timeout(Duration::ZERO, changes.changed()).await.is_ok());
        }
        drop(stores);
        assert!(timeout(Duration::ZERO, changes.changed()).await.is_err());
    }
}
