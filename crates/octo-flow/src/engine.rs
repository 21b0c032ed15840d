//! Runs: begun, looked at, gone on with. A run goes on in a task of its own, and every call of it takes the hub's path.

mod artifacts;
mod book;
mod call;
mod depth;
mod frame;
mod session;
mod stop;
mod walk;
mod world;

use crate::check::{Found, check};
use crate::plan::Plan;
use crate::problem::{Problem, Told};
use artifacts::Artifacts;
use book::Book;
use depth::Depth;
use octo_grants::fs::{Fs, Write};
use octo_grants::{Capabilities, Clock, Grant};
use octo_hub::{Hub, NewRun, RunLease, RunStatus, Runs, StoredRun};
use octo_model::{Caller, Json, Kind, ToolError};
use octo_toolkit::{CallContext, CallOrigin};
use serde_json::{Map, Value};
use session::Session;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
pub use world::Catalogue;

/// How long servers that are still starting are waited for; a workflow may call any of them.
const STARTING: Duration = Duration::from_secs(10);
/// How long the last steps have when the hub ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// The grant of tools that run workflows.
#[derive(Clone)]
pub struct Flows(Arc<Engine>);

struct Engine {
    runs: Arc<dyn Runs>,
    clock: Clock,
    hub: OnceLock<Weak<Hub>>,
    live: Mutex<HashMap<String, Arc<Live>>>,
}

/// A run and all that it takes to go on with it.
struct Work {
    asker: Asker,
    plan: Plan,
    params: Value,
    run: StoredRun,
    pen: Box<dyn RunLease>,
    fs: Fs<Write>,
    book: Book,
}

/// A run that goes on in this process.
pub struct Live {
    pub cancel: CancellationToken,
    /// Steps under way are finished, and no new ones are begun.
    halt: CancellationToken,
    pub progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Default)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    /// The step that was finished last.
    pub last: String,
    pub ended: bool,
    pub warnings: Vec<String>,
}

/// Who asks for a run, and by which way.
#[derive(Clone)]
pub struct Asker {
    pub caller: Arc<Caller>,
    pub origin: Arc<CallOrigin>,
    depth: Depth,
}

impl Asker {
    /// Fails for a tool that runs without a hub, and for workflows that call each other too deeply.
    pub fn of(cx: &CallContext) -> Result<Self, ToolError> {
        let origin = cx.origin.clone().ok_or_else(|| {
            ToolError::unavailable("Workflows run within a hub only.")
                .hint("Call this through MCP, REST or the command line.")
        })?;
        Ok(Self { caller: Arc::clone(&cx.caller), origin, depth: Depth::here()? })
    }
}

/// Where a run is worked on.
pub enum Going {
    /// Here, because of this very call, which also ends it when it is cancelled.
    Own(Arc<Live>),
    /// Here, because of another call.
    Here(Arc<Live>),
    /// In another process, or nowhere.
    Elsewhere,
}

/// How a run that was begun before shall go on.
#[derive(Debug, Clone, Default)]
pub struct Further {
    pub redo: Vec<String>,
    pub skip: Vec<String>,
    /// Go on with a run that was cancelled.
    pub resume: bool,
}

impl Further {
    fn asked(&self) -> bool {
        self.resume || !self.redo.is_empty() || !self.skip.is_empty()
    }
}

impl Grant for Flows {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl Flows {
    pub fn new(runs: Arc<dyn Runs>, clock: Clock) -> Self {
        Self(Arc::new(Engine { runs, clock, hub: OnceLock::new(), live: Mutex::default() }))
    }

    /// Says which hub the steps are called through. The hub knows this as one of its tools' grants, so it is held weakly.
    pub fn attach(&self, hub: &Arc<Hub>) {
        let _ = self.0.hub.set(Arc::downgrade(hub));
    }

    pub fn runs(&self) -> &Arc<dyn Runs> {
        &self.0.runs
    }

    /// What is wrong with a text for this caller, and what it would call.
    pub async fn examine(&self, asker: &Asker, text: &str) -> Result<(Option<Plan>, Found), ToolError> {
        let hub = self.0.hub()?;
        hub.wait_until_listed(&asker.origin.profile, STARTING).await;
        Ok(match Plan::read(text) {
            Err(errors) => (None, Found { errors, ..Found::default() }),
            Ok(plan) => {
                let found = check(&plan, &Catalogue { hub: &hub, asker });
                (Some(plan), found)
            }
        })
    }

    /// Begins a run of a text that was read from `path`; gives its id and its life.
    pub async fn begin(
        &self,
        asker: &Asker,
        path: &str,
        text: String,
        params: Map<String, Value>,
        fs: Fs<Write>,
    ) -> Result<(String, Arc<Live>), ToolError> {
        let (plan, found) = self.examine(asker, &text).await?;
        let plan = match plan {
            Some(plan) if found.errors.is_empty() => plan,
            _ => return Err(refused(&found.errors)),
        };
        let params = filled(&plan, params)?;
        let run = NewRun {
            path: path.to_owned(),
            name: plan.name.clone(),
            text,
            params: Json::from(params.clone()),
        };
        let pen = self.0.runs.begin(&asker.caller, run).await?;
        let run = self.0.runs.get(&asker.caller, pen.id()).await?;
        let book = Book::default();
        Ok(self.0.start(Work { asker: asker.clone(), plan, params, run, pen, fs, book }))
    }

    /// Goes on with a run that was cut off or decided about; any other is only found.
    pub async fn further(
        &self,
        asker: &Asker,
        id: &str,
        further: &Further,
        fs: Fs<Write>,
    ) -> Result<Going, ToolError> {
        let kept = self.0.runs.get(&asker.caller, id).await?;
        if let Some(live) = self.0.live().get(id).cloned() {
            return if further.asked() { Err(busy()) } else { Ok(Going::Here(live)) };
        }
        let cut_off = kept.status == RunStatus::Running && !kept.is_leased;
        if !cut_off && !further.asked() {
            return Ok(Going::Elsewhere);
        }
        let (kept, pen) = match self.0.runs.lease(&asker.caller, id).await {
            // Somebody else was quicker to go on with it.
            Err(error) if error.kind == Kind::Conflict && !further.asked() => return Ok(Going::Elsewhere),
            taken => taken?,
        };
        match kept.status {
            RunStatus::Done if further.asked() => return Err(over()),
            RunStatus::Running => {}
            _ if further.asked() => {}
            _ => return Ok(Going::Elsewhere),
        }
        let plan = Plan::read(&kept.text).map_err(|errors| refused(&errors))?;
        let book = Book::load(&kept)?;
        let now = format!("{:.3}", self.0.clock.now());
        book.decide(&plan, further, pen.as_ref(), &now).await?;
        pen.status(RunStatus::Running, None, None).await?;
        let params: Value = kept.params.to().map_err(ToolError::internal)?;
        let (_, live) = self.0.start(Work { asker: asker.clone(), plan, params, run: kept, pen, fs, book });
        Ok(Going::Own(live))
    }

    pub async fn look(&self, caller: &Caller, id: &str) -> Result<StoredRun, ToolError> {
        self.0.runs.get(caller, id).await
    }

    /// Lets steps under way finish, begins no new ones, and waits for that a while. Runs go on when they are asked for.
    pub async fn end(&self) {
        let all: Vec<Arc<Live>> = self.0.live().values().cloned().collect();
        for live in &all {
            live.halt.cancel();
        }
        let ended = async {
            for live in &all {
                let _ = live.progress.subscribe().wait_for(|progress| progress.ended).await;
            }
        };
        if tokio::time::timeout(PATIENCE, ended).await.is_err() {
            tracing::warn!("a workflow's step was cut off; its run goes on when it is asked for");
        }
    }
}

impl Engine {
    fn hub(&self) -> Result<Arc<Hub>, ToolError> {
        let hub = self.hub.get().and_then(Weak::upgrade);
        hub.ok_or_else(|| ToolError::unavailable("The hub is not there.").hint("Try again in a moment."))
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run go on in a task of its own.
    fn start(self: &Arc<Self>, work: Work) -> (String, Arc<Live>) {
        let Work { asker, plan, params, run, pen, fs, book } = work;
        let done = book.finished(&plan);
        let progress = Progress { done, total: done.max(plan.calls() as u64), ..Progress::default() };
        let live = Arc::new(Live {
            cancel: CancellationToken::new(),
            halt: CancellationToken::new(),
            progress: watch::channel(progress).0,
        });
        self.live().insert(run.id.clone(), Arc::clone(&live));
        let session = Session {
            engine: Arc::clone(self),
            artifacts: Artifacts::new(fs, &run),
            plan,
            params: Arc::new(params),
            pen,
            book,
            asker,
            live: Arc::clone(&live),
        };
        tokio::spawn(session.run(run.id.clone()));
        (run.id, live)
    }
}

/// The folder of a run's artifacts.
pub fn folder(id: &str) -> String {
    format!("{}/{id}", artifacts::FOLDER)
}

/// Parameters as the workflow wants them, with its defaults.
fn filled(plan: &Plan, mut given: Map<String, Value>) -> Result<Value, ToolError> {
    for (name, param) in &plan.params {
        if let Some(default) = &param.default {
            given.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    let (schema, given) = (plan.params_schema(), Value::Object(given));
    let validator = jsonschema::options().build(&schema).map_err(ToolError::internal)?;
    let wrong: Vec<String> = validator
        .iter_errors(&given)
        .take(3)
        .map(|error| {
            let at = error.instance_path().to_string();
            let text: String = error.to_string().chars().take(200).collect();
            if at.is_empty() { text } else { format!("{}: {text}", at.trim_start_matches('/')) }
        })
        .collect();
    if wrong.is_empty() {
        return Ok(given);
    }
    let known: Vec<String> = plan
        .params
        .iter()
        .map(|(name, param)| {
            let need = if param.required && param.default.is_none() { ", required" } else { "" };
            format!("{name} ({}{need})", param.kind.as_str())
        })
        .collect();
    let known = if known.is_empty() {
        "It takes none.".to_owned()
    } else {
        format!("Its parameters: {}.", known.join(", "))
    };
    Err(ToolError::invalid(format!("The parameters do not fit: {}.", wrong.join("; "))).hint(known))
}

fn refused(errors: &[Problem]) -> ToolError {
    let told: Vec<String> = errors.iter().take(3).map(|problem| Told::to_string(&problem.told())).collect();
    let more = if errors.len() > 3 { format!(" And {} more.", errors.len() - 3) } else { String::new() };
    ToolError::invalid(format!("The workflow cannot run. {}{more}", told.join(" ")))
        .hint("Mend the file; workflow_validate tells everything that is wrong.")
}

fn busy() -> ToolError {
    ToolError::new(Kind::Conflict, "The run is under way.")
        .hint("Wait until it has ended; ask with run_id alone to see how it is doing.")
}

fn over() -> ToolError {
    ToolError::new(Kind::Conflict, "The run is done; nothing of it can be done again or skipped.")
        .hint("Begin a new one without run_id.")
}
