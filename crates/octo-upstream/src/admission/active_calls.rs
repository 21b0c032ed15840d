//! Active calls of a link, and when the last one ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Counter of active calls.
pub(crate) struct ActiveCalls {
    count: watch::Sender<usize>,
    last_used: Mutex<Instant>,
}

/// An active call; counts until it is dropped.
pub(crate) struct ActiveCall(Arc<ActiveCalls>);

impl Default for ActiveCalls {
    fn default() -> Self {
        Self { count: watch::Sender::new(0), last_used: Mutex::new(Instant::now()) }
    }
}

impl ActiveCalls {
    pub(crate) fn begin(self: &Arc<Self>) -> ActiveCall {
        self.count.send_modify(|calls| *calls += 1);
        ActiveCall(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// When the last call ended.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` if there is no active call; none can start meanwhile. Returns whether it ran.
    pub(crate) fn if_idle(&self, act: impl FnOnce()) -> bool {
        let mut act = Some(act);
        self.count.send_if_modified(|calls| {
            if *calls == 0
                && let Some(act) = act.take()
            {
                act();
            }
            false
        });
        act.is_none()
    }

    /// Waits until a call is active.
    pub(crate) async fn wait_for_call(&self) {
        let _ = self.count.subscribe().wait_for(|calls| *calls > 0).await;
    }

    /// Waits until there was no call for `limit`.
    pub(crate) async fn wait_idle(&self, limit: Duration) {
        let mut calls = self.count.subscribe();
        loop {
            let _ = calls.wait_for(|calls| *calls == 0).await;
            let until = self.last_used() + limit;
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

impl Drop for ActiveCall {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.count.send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_runs_from_the_end_of_the_last_call() {
        const LIMIT: Duration = Duration::from_millis(100);
        let load = Arc::new(ActiveCalls::default());
        let busy = load.begin();
        let waits = tokio::spawn({
            let load = load.clone();
            async move {
                load.wait_idle(LIMIT).await;
                Instant::now()
            }
        });
        tokio::time::sleep(2 * LIMIT).await;
        assert!(!waits.is_finished() && !load.if_idle(|| panic!("it is used")));
        drop(busy);
        tokio::time::sleep(LIMIT / 2).await;
        drop(load.begin());
        let last = load.last_used();
        assert!(waits.await.unwrap() >= last + LIMIT);
        assert!(load.if_idle(|| ()));
    }
}
