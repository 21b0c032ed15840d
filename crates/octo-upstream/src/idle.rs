//! Who uses a connection at the moment, and since when nobody does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The calls under way.
pub(crate) struct Load {
    calls: watch::Sender<usize>,
    last: Mutex<Instant>,
}

/// One of them; it counts until it is dropped.
pub(crate) struct Busy(Arc<Load>);

impl Default for Load {
    fn default() -> Self {
        Self { calls: watch::Sender::new(0), last: Mutex::new(Instant::now()) }
    }
}

impl Load {
    pub(crate) fn enter(self: &Arc<Self>) -> Busy {
        self.calls.send_modify(|calls| *calls += 1);
        Busy(self.clone())
    }

    pub(crate) fn calls(&self) -> usize {
        *self.calls.borrow()
    }

    /// When somebody was here last.
    pub(crate) fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does this unless somebody is here. Nobody can come while it is done.
    pub(crate) fn unless_used(&self, act: impl FnOnce()) -> bool {
        let mut act = Some(act);
        self.calls.send_if_modified(|calls| {
            if *calls == 0
                && let Some(act) = act.take()
            {
                act();
            }
            false
        });
        act.is_none()
    }

    /// Waits until somebody comes.
    pub(crate) async fn wanted(&self) {
        let _ = self.calls.subscribe().wait_for(|calls| *calls > 0).await;
    }

    /// Waits until nobody has been here for so long.
    pub(crate) async fn unused_for(&self, limit: Duration) {
        let mut calls = self.calls.subscribe();
        loop {
            let _ = calls.wait_for(|calls| *calls == 0).await;
            let until = self.last() + limit;
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                _ = calls.changed() => {}
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.calls.send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_runs_from_the_end_of_the_last_call() {
        const LIMIT: Duration = Duration::from_millis(100);
        let load = Arc::new(Load::default());
        let busy = load.enter();
        let waits = tokio::spawn({
            let load = load.clone();
            async move {
                load.unused_for(LIMIT).await;
                Instant::now()
            }
        });
        tokio::time::sleep(2 * LIMIT).await;
        assert!(!waits.is_finished() && !load.unless_used(|| panic!("it is used")));
        drop(busy);
        tokio::time::sleep(LIMIT / 2).await;
        drop(load.enter());
        let last = load.last();
        assert!(waits.await.unwrap() >= last + LIMIT);
        assert!(load.unless_used(|| ()));
    }
}
