//! Scheduling of jq expressions between callers.

use octo_model::{Caller, Principal, ToolError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Maximum concurrent expressions, in total and per caller.
const MAX_RUNS: usize = 4;
const MAX_RUNS_PER_CALLER: usize = 1;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// After an expression, a caller pauses for this multiple of its run time, so that its expressions use only a
/// fraction of a CPU.
const PAUSE_FACTOR: u32 = 3;
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Limits concurrency and schedules callers in turn.
pub struct JqQueue {
    all: Arc<Semaphore>,
    callers: Mutex<HashMap<Principal, Arc<CallerQueue>>>,
    timeout: Duration,
}

/// Expressions of one caller.
#[derive(Debug)]
struct CallerQueue {
    one: Arc<Semaphore>,
    next: Mutex<Instant>,
}

impl Default for CallerQueue {
    fn default() -> Self {
        Self { one: Arc::new(Semaphore::new(MAX_RUNS_PER_CALLER)), next: Mutex::new(Instant::now()) }
    }
}

impl CallerQueue {
    fn next(&self) -> Instant {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permission to run an expression, held until it is dropped.
#[derive(Debug)]
pub struct QueueSlot {
    caller: Arc<CallerQueue>,
    begun: Instant,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let pause = (self.begun.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE);
        *self.caller.next.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + pause;
    }
}

impl Default for JqQueue {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_RUNS)), callers: Mutex::default(), timeout: QUEUE_TIMEOUT }
    }
}

impl JqQueue {
    /// Waits until an expression of this caller may run.
    pub async fn acquire(&self, caller: &Caller) -> Result<QueueSlot, ToolError> {
        let lane = {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            callers.retain(|_, lane| Arc::strong_count(lane) > 1 || lane.next() > now);
            Arc::clone(callers.entry(caller.principal.clone()).or_default())
        };
        let turn = async {
            let own = Arc::clone(&lane.one).acquire_owned().await?;
            tokio::time::sleep_until(lane.next()).await;
            Ok([own, Arc::clone(&self.all).acquire_owned().await?])
        };
        match tokio::time::timeout(self.timeout, turn).await {
            Ok(turn) => {
                let _permits = turn.map_err(|error: AcquireError| ToolError::internal(error))?;
                Ok(QueueSlot { caller: lane, begun: Instant::now(), _permits })
            }
            Err(_) => Err(ToolError::unavailable("Too many jq expressions are running.")
                .hint("Try again in a moment, with one expression at a time.")
                .retry_after(Duration::from_secs(2))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_caller_does_not_keep_the_others_waiting() {
        let queue = JqQueue::default();
        let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
        let turn = queue.acquire(&ada).await.unwrap();
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, queue.acquire(&ada)).await.is_err());
        let other = tokio::time::timeout(soon, queue.acquire(&bob)).await;
        assert!(other.is_ok());
        drop((turn, other));
        // Ada has used the queue for more than 50 ms and pauses for longer than that; then no caller is remembered.
        assert!(tokio::time::timeout(soon, queue.acquire(&ada)).await.is_err());
        assert!(queue.acquire(&bob).await.is_ok());
        assert!(queue.acquire(&ada).await.is_ok());
        tokio::time::sleep(soon).await;
        assert!(queue.acquire(&Caller::named("cy")).await.is_ok());
        assert_eq!(queue.callers.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn whoever_waits_too_long_is_told_to_come_back() {
        let queue = JqQueue { timeout: Duration::from_millis(50), ..JqQueue::default() };
        let mut turns = Vec::new();
        for n in 0..MAX_RUNS {
            turns.push(queue.acquire(&Caller::named(format!("caller-{n}"))).await.unwrap());
        }
        let error = queue.acquire(&Caller::named("ada")).await.unwrap_err();
        assert!(error.retry_after.is_some() && error.kind == octo_model::Kind::Unavailable);
    }
}
