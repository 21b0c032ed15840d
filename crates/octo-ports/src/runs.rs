//! Workflow runs.

use crate::{Changes, StoreResult};
use octo_model::{BoxFuture, Caller, Json};
use std::time::Duration;

/// How long a run stays leased after its holder's last renewal.
pub const RUN_LEASE_DURATION: Duration = Duration::from_secs(30);
/// Retention of ended runs after their last change.
pub const RUN_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Done,
    Failed,
    /// A step was interrupted, and it is unknown whether its effect happened.
    Interrupted,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [RunStatus; 5] =
        [Self::Running, Self::Done, Self::Failed, Self::Interrupted, Self::Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of a stored run. Any other word was put there by another program.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.as_str() == word).unwrap_or(Self::Failed)
    }
}

/// The initial state of a run.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The file of the workflow, as the caller named it.
    pub path: String,
    pub name: String,
    /// The whole workflow: a run resumes with the version it started with.
    pub text: String,
    pub params: Json,
}

/// A step of a run in its current state.
#[derive(Debug, Clone)]
pub struct StoredStep {
    /// The step's id with its index in each surrounding loop: `fetch[3]`.
    pub key: String,
    pub status: String,
    pub output: Option<Json>,
    pub error: Option<Json>,
    /// Every attempt, as the engine writes it.
    pub attempts: Json,
}

/// A run in its current state.
#[derive(Debug, Clone)]
pub struct StoredRun {
    pub id: String,
    pub path: String,
    pub name: String,
    pub text: String,
    /// SHA-256 of the text, in hexadecimal.
    pub hash: String,
    pub params: Json,
    pub status: RunStatus,
    pub outputs: Option<Json>,
    pub error: Option<Json>,
    /// Microseconds since 1970.
    pub begun: i64,
    pub changed: i64,
    /// Whether a process is working on it.
    pub is_leased: bool,
    /// In the order in which they were started.
    pub steps: Vec<StoredStep>,
}

/// Name of the lease of a run.
pub fn lease_name(id: &str) -> String {
    format!("run {id}")
}

/// A run, and the right to write it.
pub type LeasedRun = (StoredRun, Box<dyn RunLease>);

/// Store of runs. A write survives the end of this process once it has returned. Another caller's run is
/// treated as nonexistent.
pub trait Runs: Send + Sync {
    /// Changes of runs and of their leases. A lease may end without one, see [`LEASE_CHECK_INTERVAL`].
    ///
    /// [`LEASE_CHECK_INTERVAL`]: crate::leases::LEASE_CHECK_INTERVAL
    fn changes(&self) -> Changes;

    /// Starts a run and returns the right to write it.
    fn begin<'a>(&'a self, caller: &'a Caller, run: NewRun) -> BoxFuture<'a, StoreResult<Box<dyn RunLease>>>;

    /// Leases a run that no process works on, with the outputs of its steps; a conflict if one does.
    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<LeasedRun>>;

    /// A run without the outputs of its steps.
    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<StoredRun>>;

    /// The newest runs first, without text and steps.
    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, StoreResult<Vec<StoredRun>>>;
}

/// The right to write one run: a lease, renewed until this is dropped. Every write carries its token: a holder
/// that lost the lease to another, because it slept for longer, gets a conflict and writes nothing.
pub trait RunLease: Send + Sync + 'static {
    fn id(&self) -> &str;

    fn step(&self, step: StoredStep) -> BoxFuture<'_, StoreResult<()>>;

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, StoreResult<()>>;

    /// Releases the lease and returns once another process can acquire it. Dropping releases it soon after.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(self) })
    }
}
