//! In-memory runs.

use super::ready;
use crate::{
    LeasedRun, NewRun, Port, RunLease, RunStatus, Runs, StoreError, StoreResult, StoredRun, StoredStep,
};
use jiff::Timestamp;
use octo_model::{BoxFuture, CallId, Caller, Json, Principal, sha256_hex};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Oldest first.
#[derive(Default, Clone)]
pub struct InMemoryRuns(Arc<Mutex<Vec<(Principal, StoredRun)>>>);

impl InMemoryRuns {
    fn lock(&self) -> MutexGuard<'_, Vec<(Principal, StoredRun)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        caller: &Caller,
        id: &str,
        work: impl FnOnce(&mut StoredRun) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let mut runs = self.lock();
        let run = runs.iter_mut().find(|(owner, run)| run.id == id && *owner == caller.principal);
        run.map_or(Err(StoreError::NotFound(Port::Runs)), |(_, run)| work(run))
    }
}

fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

fn without_outputs(run: &StoredRun) -> StoredRun {
    let steps = run.steps.iter().map(|step| StoredStep { output: None, ..step.clone() });
    StoredRun { steps: steps.collect(), ..run.clone() }
}

impl Runs for InMemoryRuns {
    fn begin<'a>(&'a self, caller: &'a Caller, run: NewRun) -> BoxFuture<'a, StoreResult<Box<dyn RunLease>>> {
        let id = format!("w_{}", CallId::fresh());
        let run = StoredRun {
            id: id.clone(),
            hash: sha256_hex(run.text.as_bytes()),
            path: run.path,
            name: run.name,
            text: run.text,
            params: run.params,
            status: RunStatus::Running,
            outputs: None,
            error: None,
            begun: now(),
            changed: now(),
            is_leased: true,
            steps: Vec::new(),
        };
        self.lock().push((caller.principal.clone(), run));
        ready(Ok(Box::new(InMemoryRunLease { runs: self.clone(), caller: caller.clone(), id })))
    }

    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<LeasedRun>> {
        let leased = self.with(caller, id, |run| {
            if std::mem::replace(&mut run.is_leased, true) {
                return Err(StoreError::Conflict(Port::Runs));
            }
            Ok(run.clone())
        });
        ready(leased.map(|run| {
            let (runs, caller, id) = (self.clone(), caller.clone(), run.id.clone());
            (run, Box::new(InMemoryRunLease { runs, caller, id }) as Box<dyn RunLease>)
        }))
    }

    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<StoredRun>> {
        ready(self.with(caller, id, |run| Ok(without_outputs(run))))
    }

    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, StoreResult<Vec<StoredRun>>> {
        let runs = self.lock();
        let own = runs.iter().rev().filter(|(owner, _)| *owner == caller.principal).take(most);
        let brief = own.map(|(_, run)| StoredRun { text: String::new(), steps: Vec::new(), ..run.clone() });
        ready(Ok(brief.collect()))
    }
}

struct InMemoryRunLease {
    runs: InMemoryRuns,
    caller: Caller,
    id: String,
}

impl InMemoryRunLease {
    fn change(&self, change: impl FnOnce(&mut StoredRun)) -> BoxFuture<'_, StoreResult<()>> {
        ready(self.runs.with(&self.caller, &self.id, |run| {
            change(run);
            run.changed = now();
            Ok(())
        }))
    }
}

impl Drop for InMemoryRunLease {
    fn drop(&mut self) {
        let _ = self.runs.with(&self.caller, &self.id, |run| {
            run.is_leased = false;
            Ok(())
        });
    }
}

impl RunLease for InMemoryRunLease {
    fn id(&self) -> &str {
        &self.id
    }

    fn step(&self, step: StoredStep) -> BoxFuture<'_, StoreResult<()>> {
        self.change(|run| match run.steps.iter_mut().find(|known| known.key == step.key) {
            Some(known) => *known = step,
            None => run.steps.push(step),
        })
    }

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, StoreResult<()>> {
        self.change(|run| (run.status, run.outputs, run.error) = (status, outputs, error))
    }
}
