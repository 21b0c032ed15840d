//! Runs of workflows.

use octo_model::{Caller, Json, ToolError};
use octo_toolkit::BoxFuture;

/// How a run of a workflow is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Done,
    Failed,
    /// A step was cut off, and nobody knows whether its effect is there.
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
}

/// What a run begins with.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The file that the workflow was read from, as the caller named it.
    pub path: String,
    pub name: String,
    /// The whole workflow: a run goes on with what it began with.
    pub text: String,
    pub params: Json,
}

/// One step of a run as it is now.
#[derive(Debug, Clone)]
pub struct StoredStep {
    /// The step's id, and its place in each loop around it: `fetch[3]`.
    pub key: String,
    pub status: String,
    pub output: Option<Json>,
    pub error: Option<Json>,
    /// Every attempt, as the engine writes it.
    pub attempts: Json,
}

/// A run as it is now.
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
    /// Whether some process works on it at this moment.
    pub is_leased: bool,
    /// In the order in which they were begun.
    pub steps: Vec<StoredStep>,
}

/// A run, and the right to write it.
pub type LeasedRun = (StoredRun, Box<dyn RunLease>);

/// Runs of workflows. What is noted survives the end of this process before the note returns. Someone else's run is
/// answered like one that does not exist.
pub trait Runs: Send + Sync {
    /// Begins a run, and gives the right to write it.
    fn begin<'a>(
        &'a self,
        caller: &'a Caller,
        run: NewRun,
    ) -> BoxFuture<'a, Result<Box<dyn RunLease>, ToolError>>;

    /// Takes a run that nobody works on, with the outputs of its steps; a conflict when somebody does.
    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, Result<LeasedRun, ToolError>>;

    /// A run without the outputs of its steps.
    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, Result<StoredRun, ToolError>>;

    /// The newest runs first, without their text and their steps.
    fn list<'a>(
        &'a self,
        caller: &'a Caller,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<StoredRun>, ToolError>>;
}

/// The right to write one run. Nobody else has it until this is dropped or the process has ended, however it ends.
pub trait RunLease: Send + Sync {
    fn id(&self) -> &str;

    fn step(&self, step: StoredStep) -> BoxFuture<'_, Result<(), ToolError>>;

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, Result<(), ToolError>>;
}
