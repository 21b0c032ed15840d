//! Limits concurrent file jobs.

use octo_model::ToolError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Jobs of all callers; each has a thread.
const MAX_JOBS: usize = 64;
/// Jobs of one caller. Hundreds of runnable threads would delay the hub's own threads, and thus every other caller.
const MAX_JOBS_PER_CALLER: usize = 8;

/// The caller that is counted; `None` for the local user.
type CallerKey = Option<Arc<str>>;

pub(super) struct Concurrency {
    all: Arc<Semaphore>,
    callers: Mutex<HashMap<CallerKey, Arc<Semaphore>>>,
}

/// Permission to run a job, held until it is dropped.
pub(super) struct JobSlot {
    _permits: [OwnedSemaphorePermit; 2],
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_JOBS)), callers: Mutex::default() }
    }
}

impl Concurrency {
    fn of_caller(&self, caller: &CallerKey) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = callers.get(caller) {
            return Arc::clone(own);
        }
        callers.retain(|_, own| Arc::strong_count(own) > 1);
        let own = Arc::new(Semaphore::new(MAX_JOBS_PER_CALLER));
        callers.insert(caller.clone(), Arc::clone(&own));
        own
    }

    /// Waits until a job of this caller may run.
    pub(super) async fn acquire(&self, caller: &CallerKey) -> Result<JobSlot, ToolError> {
        let own = self.of_caller(caller).acquire_owned().await.map_err(ToolError::internal)?;
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(ToolError::internal)?;
        Ok(JobSlot { _permits: [own, all] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SHORT_WAIT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_caller_at_its_limit_does_not_delay_another() {
        let jobs = Concurrency::default();
        let (ada, bob) = (Some("ada".into()), None);
        let mut slots = Vec::new();
        for _ in 0..MAX_JOBS_PER_CALLER {
            slots.push(jobs.acquire(&ada).await.unwrap());
        }
        assert!(tokio::time::timeout(SHORT_WAIT, jobs.acquire(&ada)).await.is_err());
        assert!(tokio::time::timeout(SHORT_WAIT, jobs.acquire(&bob)).await.is_ok());
        slots.pop();
        assert!(tokio::time::timeout(SHORT_WAIT, jobs.acquire(&ada)).await.is_ok());
    }

    #[tokio::test]
    async fn callers_without_jobs_are_forgotten() {
        let jobs = Concurrency::default();
        for caller in 0..100 {
            drop(jobs.acquire(&Some(caller.to_string().into())).await.unwrap());
        }
        assert!(jobs.callers.lock().unwrap().len() <= 1);
    }
}
