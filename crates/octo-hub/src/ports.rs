//! What the hub needs of a store, so that one file or a fleet's database can give it.

use octo_model::{CallId, Caller, Face, Json, Kind, Method, ToolError};
use octo_toolkit::BoxFuture;

/// The record of a call before anything runs.
#[derive(Debug, Clone)]
pub struct Opening {
    pub id: CallId,
    pub subject: String,
    pub tenant: String,
    pub face: Face,
    pub profile: String,
    pub method: Method,
    /// The name as it was asked for.
    pub name: String,
    /// SHA-256 of the arguments, in hexadecimal: they can be proven, but not read.
    pub arguments: String,
    pub trace: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The target answered that it failed.
    Failed,
    /// The hub or the target ended it with an error of this kind.
    Error(Kind),
    /// The caller was asked for more.
    InputRequired,
    /// The record was dropped before the call ended.
    Dropped,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Error(kind) => kind.as_str(),
            Self::InputRequired => "input_required",
            Self::Dropped => "dropped",
        }
    }
}

/// The record of a call after it ended.
#[derive(Debug, Clone)]
pub struct Closing {
    pub id: CallId,
    /// Source and the source's own name of the item, once found: `time/time_now`.
    pub target: Option<String>,
    /// The policy rule that decided, once it did.
    pub rule: Option<String>,
    pub outcome: Outcome,
    pub micros: u64,
    pub bytes: u64,
    pub spill: Option<String>,
}

/// The audit. Records are chained; `open` returns when the record survives the end of this process.
pub trait Ledger: Send + Sync {
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Never waits: it is called on drop.
    fn close(&self, closing: Closing);
}

/// Large results, kept whole for whoever caused them.
pub trait Spills: Send + Sync {
    /// Keeps a result and gives its handle.
    fn keep<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, Result<String, ToolError>>;

    /// The whole result again. Someone else's handle is answered like one that does not exist.
    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, Result<Json, ToolError>>;
}

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
pub struct KeptStep {
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
pub struct KeptRun {
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
    pub held: bool,
    /// In the order in which they were begun.
    pub steps: Vec<KeptStep>,
}

/// A run, and the right to write it.
pub type TakenRun = (KeptRun, Box<dyn RunPen>);

/// Runs of workflows. What is noted survives the end of this process before the note returns. Someone else's run is
/// answered like one that does not exist.
pub trait Runs: Send + Sync {
    /// Begins a run, and gives the right to write it.
    fn begin<'a>(
        &'a self,
        caller: &'a Caller,
        run: NewRun,
    ) -> BoxFuture<'a, Result<Box<dyn RunPen>, ToolError>>;

    /// Takes a run that nobody works on, with the outputs of its steps; a conflict when somebody does.
    fn take<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, Result<TakenRun, ToolError>>;

    /// A run without the outputs of its steps.
    fn look<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, Result<KeptRun, ToolError>>;

    /// The newest runs first, without their text and their steps.
    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, Result<Vec<KeptRun>, ToolError>>;
}

/// The right to write one run. Nobody else has it until this is dropped or the process has ended, however it ends.
pub trait RunPen: Send + Sync {
    fn id(&self) -> &str;

    fn step(&self, step: KeptStep) -> BoxFuture<'_, Result<(), ToolError>>;

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, Result<(), ToolError>>;
}
