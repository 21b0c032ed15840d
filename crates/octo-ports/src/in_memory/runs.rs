//! In-memory runs.

use super::leases::InMemoryLeases;
use super::ready;
use crate::runs::lease_name;
use crate::{
    ChangeNotifier, Changes, Lease, LeasedRun, Leases, NewRun, Port, RunLease, RunStatus, Runs, StoreError,
    StoreResult, StoredRun, StoredStep,
};
use jiff::Timestamp;
use octo_model::{BoxFuture, CallId, Caller, Json, Principal, sha256_hex};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone)]
pub struct InMemoryRuns {
    /// Oldest first.
    records: Arc<Mutex<Vec<Record>>>,
    leases: Arc<InMemoryLeases>,
    notifier: ChangeNotifier,
}

struct Record {
    owner: Principal,
    run: StoredRun,
    /// Token of the newest lease. Writes with an older one are refused.
    fence: u64,
}

impl InMemoryRuns {
    pub(super) fn new(leases: &Arc<InMemoryLeases>) -> Self {
        Self { records: Arc::default(), leases: Arc::clone(leases), notifier: ChangeNotifier::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        caller: &Caller,
        id: &str,
        work: impl FnOnce(&mut Record) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let mut records = self.lock();
        let known = records.iter_mut().find(|known| known.run.id == id && known.owner == caller.principal);
        known.map_or(Err(StoreError::NotFound(Port::Runs)), work)
    }

    fn acquire(&self, id: &str) -> StoreResult<Lease> {
        self.leases.acquire_now(&lease_name(id), None).ok_or(StoreError::Conflict(Port::Runs))
    }

    fn writer(&self, caller: &Caller, id: &str, lease: Lease) -> Box<dyn RunLease> {
        Box::new(InMemoryRunLease { runs: self.clone(), caller: caller.clone(), id: id.to_owned(), lease })
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
    fn changes(&self) -> Changes {
        self.notifier.subscribe().or(self.leases.changes())
    }

    fn begin<'a>(&'a self, caller: &'a Caller, run: NewRun) -> BoxFuture<'a, StoreResult<Box<dyn RunLease>>> {
        let id = format!("w_{}", CallId::fresh());
        let begun = self.acquire(&id).map(|lease| {
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
            self.lock().push(Record { owner: caller.principal.clone(), run, fence: lease.token });
            self.notifier.notify();
            self.writer(caller, &id, lease)
        });
        ready(begun)
    }

    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<LeasedRun>> {
        ready(self.with(caller, id, |known| {
            let lease = self.acquire(id)?;
            known.fence = lease.token;
            Ok((known.run.clone(), self.writer(caller, id, lease)))
        }))
    }

    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<StoredRun>> {
        ready(self.with(caller, id, |known| {
            let is_leased = self.leases.is_held(&lease_name(id));
            Ok(StoredRun { is_leased, ..without_outputs(&known.run) })
        }))
    }

    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, StoreResult<Vec<StoredRun>>> {
        let records = self.lock();
        let own = records.iter().rev().filter(|known| known.owner == caller.principal).take(most);
        let brief = own.map(|known| StoredRun {
            text: String::new(),
            steps: Vec::new(),
            is_leased: self.leases.is_held(&lease_name(&known.run.id)),
            ..known.run.clone()
        });
        ready(Ok(brief.collect()))
    }
}

struct InMemoryRunLease {
    runs: InMemoryRuns,
    caller: Caller,
    id: String,
    lease: Lease,
}

impl InMemoryRunLease {
    /// Writes to the run, unless there is a newer lease of it.
    fn write(&self, change: impl FnOnce(&mut StoredRun)) -> BoxFuture<'_, StoreResult<()>> {
        ready(self.runs.with(&self.caller, &self.id, |known| {
            if known.fence > self.lease.token {
                return Err(StoreError::Conflict(Port::Runs));
            }
            change(&mut known.run);
            known.run.changed = now();
            self.runs.notifier.notify();
            Ok(())
        }))
    }
}

impl Drop for InMemoryRunLease {
    fn drop(&mut self) {
        self.runs.leases.release_now(&self.lease);
    }
}

impl RunLease for InMemoryRunLease {
    fn id(&self) -> &str {
        &self.id
    }

    fn step(&self, step: StoredStep) -> BoxFuture<'_, StoreResult<()>> {
        self.write(|run| match run.steps.iter_mut().find(|known| known.key == step.key) {
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
        self.write(|run| (run.status, run.outputs, run.error) = (status, outputs, error))
    }
}
