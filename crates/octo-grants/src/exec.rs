//! Programs in the workspace: a sandbox, limits, a clean environment, and an end for everything they start.

pub mod alone;
mod bwrap;
mod capture;
mod confine;
mod descendants;
mod env;
pub mod launch;
mod log;
mod plan;
mod private;
mod processes;
mod raw;
mod run;
mod serve;
mod sessions;
mod start;
mod terminal;
mod view;

pub(crate) use plan::{Bounds, Confine, Plan};
pub use private::PrivateFolder;
pub use processes::{ProcessFilter, ProcessInfo};
pub(crate) use run::{input_pipe, output_pipe};
pub use sessions::{Reading, SessionInfo, SessionState, Sessions};
pub(crate) use start::{Running, launch};
pub use terminal::Size;

use crate::fs::{Place, Workspace};
use crate::{Doors, Grant};
use bytes::Bytes;
use octo_model::ToolError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Which sandbox programs run in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxChoice {
    /// Bubblewrap where it works, else Landlock with seccomp; no program runs when neither works.
    #[default]
    Auto,
    Bubblewrap,
    Landlock,
    /// Only when the settings say so.
    None,
}

/// The sandbox that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Bubblewrap,
    Landlock,
    None,
}

impl Sandbox {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// Bounds of every program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecLimits {
    /// Bytes of address space of one process; 0 for no bound.
    pub memory_bytes: u64,
    /// Processes at once; 0 for no bound.
    pub processes: u64,
    /// Bytes of one written file; 0 for no bound.
    pub file_bytes: u64,
    /// Open files of one process.
    pub open_files: u64,
}

impl Default for ExecLimits {
    fn default() -> Self {
        Self { memory_bytes: 0, processes: 4_096, file_bytes: 0, open_files: 4_096 }
    }
}

/// What programs get.
#[derive(Clone)]
pub struct ExecSpec {
    pub workspace: Workspace,
    pub sandbox: SandboxChoice,
    pub limits: ExecLimits,
    /// Folder of the hub's own data, where output is kept while a program runs. Programs cannot see it.
    pub state: PathBuf,
    /// The program and arguments that start the launcher (this binary with a hidden subcommand).
    pub launcher: Vec<OsString>,
    /// The search path of programs.
    pub path: OsString,
    /// Variables of the hub's environment that programs get as well, by name.
    pub pass: Vec<String>,
}

/// Starts programs in the workspace.
#[derive(Clone)]
pub struct Exec(Arc<Inner>);

struct Inner {
    spec: ExecSpec,
    /// Found out when it is first needed.
    sandbox: OnceLock<Option<Sandbox>>,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// No shell ever reads it. The first is the program, found in the search path.
    Argv(Vec<OsString>),
    /// A command line for `/bin/sh`.
    Shell(String),
}

/// One program to run.
pub struct Job {
    pub program: Program,
    /// The folder to run in.
    pub cwd: Place,
    /// Variables besides the fixed ones (PATH, HOME, LANG, TERM=dumb, NO_COLOR, PAGER=cat ...).
    pub env: BTreeMap<String, String>,
    pub stdin: Option<Bytes>,
    pub timeout: Duration,
    /// Bytes kept of each stream: half of them from the beginning, half from the end.
    pub keep: usize,
    pub network: bool,
    /// Whether writable roots are writable to it.
    pub writes: bool,
    /// Paths beyond the roots that it may read.
    pub readable: Vec<PathBuf>,
    /// Folders of the hub itself, see [`PrivateFolder`], that it may read, and change where it writes.
    pub writable: Vec<PathBuf>,
    /// Called with output while it comes.
    pub on_output: Option<OnOutput>,
}

/// Gets output while it comes.
pub type OnOutput = Box<dyn FnMut(Stream, &[u8]) + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Ended by us at its time limit.
    TimedOut,
}

/// What a stream held.
#[derive(Default)]
pub struct Captured {
    pub head: Vec<u8>,
    /// Empty when everything is in `head`.
    pub tail: Vec<u8>,
    pub total: u64,
    /// Everything (up to a bound), when head and tail are not all of it. Already unlinked.
    pub whole: Option<File>,
}

/// What became of a program.
pub struct Done {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
    pub took: Duration,
    pub sandbox: Sandbox,
    /// The bound because of which it was ended.
    pub limit: Option<Limit>,
}

/// A bound that ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// It had more processes than it may.
    Processes,
}

impl Exec {
    pub fn new(mut spec: ExecSpec) -> Result<Self, ToolError> {
        // Programs run as the same user; they must not look into the hub's memory, environment or descriptors.
        if let Err(error) =
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        {
            tracing::warn!(%error, "programs can look into the hub");
        }
        // The real path, since programs must not see it under any name.
        let state = std::fs::create_dir_all(&spec.state).and_then(|()| spec.state.canonicalize());
        spec.state = state.map_err(|error| {
            ToolError::unavailable("The hub's own folder cannot be used.")
                .hint("Ask the operator to make it writable to the hub.")
                .detail(error)
        })?;
        Ok(Self(Arc::new(Inner { spec, sandbox: OnceLock::new() })))
    }

    /// The sandbox that programs run in; `None` also where no program is run because none works.
    /// Tries it when first asked, which takes some milliseconds.
    pub fn sandbox(&self) -> Sandbox {
        self.probed().unwrap_or(Sandbox::None)
    }

    /// The same, or why no program can be run.
    pub async fn confinement(&self) -> Result<Sandbox, ToolError> {
        let sandbox = match self.0.sandbox.get() {
            Some(known) => *known,
            None => {
                let exec = self.clone();
                tokio::task::spawn_blocking(move || exec.probed()).await.map_err(ToolError::internal)?
            }
        };
        sandbox.ok_or_else(|| {
            ToolError::unavailable("No sandbox works on this machine, so programs are not run.").hint(
                "Ask the operator to install bubblewrap, or to accept the risk with the setting `shell.sandbox: none`.",
            )
        })
    }

    fn probed(&self) -> Option<Sandbox> {
        *self.0.sandbox.get_or_init(|| match self.spec().sandbox {
            SandboxChoice::None => Some(Sandbox::None),
            SandboxChoice::Bubblewrap => self.bubblewrap_works().then_some(Sandbox::Bubblewrap),
            SandboxChoice::Landlock => confine::supported().then_some(Sandbox::Landlock),
            SandboxChoice::Auto if self.bubblewrap_works() => Some(Sandbox::Bubblewrap),
            SandboxChoice::Auto => confine::supported().then_some(Sandbox::Landlock),
        })
    }

    fn bubblewrap_works(&self) -> bool {
        let view = view::View::new(self.spec(), std::env::home_dir().as_deref(), None);
        self.bubblewrap().is_some_and(|program| bwrap::works(&program, &view))
    }

    fn bubblewrap(&self) -> Option<PathBuf> {
        self.which("bwrap").or_else(|| Some(PathBuf::from("/usr/bin/bwrap")).filter(|path| runnable(path)))
    }

    fn spec(&self) -> &ExecSpec {
        &self.0.spec
    }

    /// Where a program is found in the search path.
    pub fn which(&self, program: &str) -> Option<PathBuf> {
        if program.is_empty() || program.contains(['/', '\0']) {
            return None;
        }
        std::env::split_paths(&self.spec().path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(|path| runnable(path))
    }
}

/// Whether a path is a regular file that we may execute.
pub(crate) fn runnable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

impl Grant for Exec {
    fn open(doors: &Doors) -> Result<Self, ToolError> {
        doors.open()
    }
}
