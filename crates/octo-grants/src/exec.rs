//! Program execution in the workspace: sandbox, limits, a clean environment, and termination of all descendants.

mod bwrap;
mod capture;
mod compute_filter;
pub mod compute_jail;
mod confine;
mod descendants;
mod exec_sessions;
pub mod init_process;
pub mod launcher;
mod launcher_protocol;
mod mount_view;
mod output_ring;
mod private_folder;
mod process_list;
mod process_watch;
mod program_env;
mod proxy_port;
mod run;
mod serve_program;
mod start_program;
mod sys;
mod terminal;
mod toolchains;
mod unprivileged;

pub(crate) use bwrap::read_only_machine;
pub use confine::scopes_signals as landlock_scopes_signals;
pub use exec_sessions::{SessionInfo, SessionOutput, SessionState, Sessions};
pub(crate) use launcher_protocol::{ConfinementPlan, Cwd, Descriptors, LaunchPlan, ResourceLimits};
pub use private_folder::PrivateFolder;
pub use process_list::{ProcessFilter, ProcessInfo};
pub use process_watch::ProcessWatch;
pub(crate) use run::{input_pipe, output_pipe};
pub use serve_program::{NetworkAccess, ServerAccess};
pub(crate) use start_program::{RunningProgram, start_launcher};
pub use sys::close_inherited_fds;
pub use terminal::TerminalSize;
pub use unprivileged::is_root;

use crate::fs::{RootedPath, Workspace};
use crate::search_path::HeldProgram;
use crate::{Capabilities, Grant, SearchPath};
use bytes::Bytes;
use octo_model::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Configured sandbox for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxChoice {
    // Bubblewrap if it works, else Landlock with seccomp. If neither works, no program runs.
    #[default]
    Auto,
    Bubblewrap,
    Landlock,
    // Must be set explicitly.
    None,
}

/// The sandbox in use.
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

/// Resource limits of every program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecLimits {
    /// Bytes of address space per process; 0 for no limit.
    pub memory_bytes: u64,
    /// Number of concurrent processes; 0 for no limit.
    pub processes: u64,
    /// Bytes per written file; 0 for no limit.
    pub file_bytes: u64,
    /// Open files per process.
    pub open_files: u64,
}

impl Default for ExecLimits {
    fn default() -> Self {
        Self { memory_bytes: 0, processes: 4_096, file_bytes: 0, open_files: 4_096 }
    }
}

/// Settings of [`Exec`].
#[derive(Clone)]
pub struct ExecSpec {
    pub workspace: Workspace,
    pub sandbox: SandboxChoice,
    pub limits: ExecLimits,
    /// State directory of the hub, where output is stored while a program runs. Programs cannot see it.
    pub state: PathBuf,
    /// The program and arguments that start the launcher (this binary with a hidden subcommand).
    pub launcher: Vec<OsString>,
    /// Search path of programs.
    pub path: OsString,
    /// Environment variables that the operator passes on to programs.
    pub pass_env: BTreeMap<String, String>,
}

/// Starts programs in the workspace.
#[derive(Clone)]
pub struct Exec(Arc<Inner>);

struct Inner {
    spec: ExecSpec,
    path: SearchPath,
    host_mounts: mount_view::HostMounts,
    /// Kept open, because it runs outside the sandbox.
    bubblewrap: Option<HeldProgram>,
    /// Determined on first use.
    sandbox: OnceLock<SandboxTrial>,
}

/// Which sandbox works, and why the others do not.
#[derive(Debug, Clone, Default)]
struct SandboxTrial {
    sandbox: Option<Sandbox>,
    failures: Vec<(Sandbox, String)>,
}

/// The program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Run without a shell. The first element is the program, found in the search path.
    Argv(Vec<OsString>),
    /// A command line for [`shell`].
    Shell(String),
}

/// The shell for command lines: bash, whose syntax is the most common, or `/bin/sh` if bash is missing.
pub fn shell() -> &'static str {
    static FOUND: OnceLock<&str> = OnceLock::new();
    FOUND.get_or_init(|| if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" })
}

/// One program execution.
pub struct Job {
    pub program: Program,
    /// Working directory.
    pub cwd: RootedPath,
    /// Environment variables besides the fixed ones (PATH, HOME, LANG, TERM=dumb, NO_COLOR, PAGER=cat ...).
    pub env: BTreeMap<String, String>,
    pub stdin: Option<Bytes>,
    pub timeout: Duration,
    /// Bytes retained of each stream: half from the beginning, half from the end.
    pub max_output_bytes: usize,
    pub network: bool,
    /// Whether the program can write in writable roots.
    pub writes: bool,
    /// Paths outside the roots that the program may read.
    pub readable: Vec<PathBuf>,
    /// Directories of the hub itself (see [`PrivateFolder`]) that the program may read, and write if `writes` is set.
    pub writable: Vec<PathBuf>,
    /// Receives output as it arrives.
    pub on_output: Option<OnOutput>,
}

/// Callback for output as it arrives.
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
    /// Killed at its timeout.
    TimedOut,
}

/// Captured output of one stream.
#[derive(Default)]
pub struct Captured {
    pub head: Vec<u8>,
    /// Empty when everything is in `head`.
    pub tail: Vec<u8>,
    pub total: u64,
    /// The whole output (up to a limit) if `head` and `tail` do not cover it. Already unlinked.
    pub full_output: Option<File>,
}

/// Result of a program execution.
pub struct ExecResult {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
    pub took: Duration,
    pub sandbox: Sandbox,
    /// The limit whose violation ended the program.
    pub limit: Option<ExceededLimit>,
}

/// A limit whose violation ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Too many processes.
    Processes,
}

impl Exec {
    pub fn new(mut spec: ExecSpec) -> Result<Self, ToolError> {
        // Programs run as the same user. They must not read the hub's memory, environment or descriptors.
        if let Err(error) =
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        {
            tracing::warn!(%error, "could not make the hub undumpable; programs can read its memory");
        }
        // The real path, because programs must not see the directory under any name.
        let state = std::fs::create_dir_all(&spec.state).and_then(|()| spec.state.canonicalize());
        spec.state = state.map_err(|error| {
            ToolError::unavailable("The hub's state directory cannot be used.")
                .hint("Ask the operator to make it writable for the hub.")
                .detail(error)
        })?;
        if spec.sandbox != SandboxChoice::None {
            refuse_nested_roots(&spec.workspace)?;
        }
        let writable =
            spec.workspace.roots().iter().filter(|root| root.writable).map(|root| root.path.clone());
        let path = SearchPath::new(spec.path.clone(), writable.collect());
        let ground = mount_view::HostMounts::open(&spec, &path)?;
        // The usual location, in case the search path does not include it.
        let usual = || SearchPath::new("/usr/bin".into(), path.writable().to_vec()).open_program("bwrap");
        let bubblewrap = path.open_program("bwrap").or_else(usual);
        Ok(Self(Arc::new(Inner { spec, path, host_mounts: ground, bubblewrap, sandbox: OnceLock::new() })))
    }

    /// The sandbox that programs run in. Also `None` if no sandbox works and programs are refused.
    /// The first call probes the sandboxes, which takes some milliseconds.
    pub fn sandbox(&self) -> Sandbox {
        self.sandbox_trial().sandbox.unwrap_or(Sandbox::None)
    }

    /// Like [`Exec::sandbox`], but returns an error if no program can run.
    pub async fn confinement(&self) -> Result<Sandbox, ToolError> {
        let trial = match self.0.sandbox.get() {
            Some(known) => known.clone(),
            None => {
                let exec = self.clone();
                let probe = tokio::task::spawn_blocking(move || exec.sandbox_trial().clone());
                probe.await.map_err(ToolError::internal)?
            }
        };
        trial.sandbox.ok_or_else(|| {
            let is_roots = trial.failures.iter().any(|(_, why)| why.starts_with(unprivileged::FAILED_PREFIX));
            let hint = if is_roots {
                "Ask the operator to run the hub as a regular user: as root it must run programs as another user, which \
                 fails on this machine. Bubblewrap or Landlock is required as well."
            } else {
                "Ask the operator to install bubblewrap, or to accept the risk with the setting `shell.sandbox: none`."
            };
            let why = trial.failures.iter().map(|(sandbox, why)| format!("{}: {why}", sandbox.as_str()));
            ToolError::unavailable("No sandbox works on this machine; programs are not run.")
                .hint(hint)
                .detail(why.collect::<Vec<_>>().join("; "))
        })
    }

    /// Why each probed sandbox does not work.
    pub fn failures(&self) -> Vec<(Sandbox, String)> {
        self.sandbox_trial().failures.clone()
    }

    fn sandbox_trial(&self) -> &SandboxTrial {
        self.0.sandbox.get_or_init(|| {
            let candidates: &[Sandbox] = match self.spec().sandbox {
                SandboxChoice::None => {
                    return SandboxTrial { sandbox: Some(Sandbox::None), ..SandboxTrial::default() };
                }
                SandboxChoice::Bubblewrap => &[Sandbox::Bubblewrap],
                SandboxChoice::Landlock => &[Sandbox::Landlock],
                SandboxChoice::Auto => &[Sandbox::Bubblewrap, Sandbox::Landlock],
            };
            let mut trial = SandboxTrial::default();
            for sandbox in candidates {
                match self.probe_blocking(*sandbox) {
                    Ok(()) => {
                        trial.sandbox = Some(*sandbox);
                        break;
                    }
                    Err(why) => {
                        tracing::info!(sandbox = sandbox.as_str(), why, "sandbox does not work");
                        trial.failures.push((*sandbox, why));
                    }
                }
            }
            trial
        })
    }

    /// Runs on a separate thread, because the caller may be a runtime thread.
    fn probe_blocking(&self, sandbox: Sandbox) -> Result<(), String> {
        match sandbox {
            Sandbox::Landlock if !confine::is_supported() => {
                return Err("the kernel does not support Landlock".to_owned());
            }
            Sandbox::Bubblewrap if self.0.bubblewrap.is_none() => {
                return Err("it is not installed in a directory that tools cannot write".to_owned());
            }
            _ => {}
        }
        let exec = self.clone();
        let work = move || -> Result<(), String> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(|error| error.to_string())?.block_on(exec.probe_sandbox(sandbox))
        };
        let thread = std::thread::Builder::new().spawn(work).map_err(|error| error.to_string())?;
        thread.join().unwrap_or_else(|_| Err("the probe thread panicked".to_owned()))
    }

    fn bubblewrap(&self) -> Option<&HeldProgram> {
        self.0.bubblewrap.as_ref()
    }

    fn host_mounts(&self) -> &mount_view::HostMounts {
        &self.0.host_mounts
    }

    /// Search path of programs.
    pub fn search_path(&self) -> &SearchPath {
        &self.0.path
    }

    fn spec(&self) -> &ExecSpec {
        &self.0.spec
    }

    /// Path at which a command line finds a program. Never use it for what runs outside the sandbox.
    pub fn which(&self, program: &str) -> Option<PathBuf> {
        if program.is_empty() || program.contains(['/', '\0']) {
            return None;
        }
        let roots = self.spec().workspace.roots();
        let in_a_root = |path: &PathBuf| {
            path.canonicalize().is_ok_and(|real| roots.iter().any(|root| real.starts_with(&root.path)))
        };
        let found =
            |path: &PathBuf| is_executable(path) && (self.search_path().accepts(path) || in_a_root(path));
        let folders = std::env::split_paths(self.search_path().whole()).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(program)).find(found)
    }
}

/// Refuses a read-only root inside a writable root: renaming a parent directory would move it to a writable path.
fn refuse_nested_roots(workspace: &Workspace) -> Result<(), ToolError> {
    for inner in workspace.roots().iter().filter(|root| !root.writable) {
        let outer =
            workspace.roots().iter().find(|outer| outer.writable && inner.path.starts_with(&outer.path));
        if let Some(outer) = outer {
            return Err(ToolError::invalid(format!(
                "The root `{}` is read-only and is inside the root `{}`, which is writable.",
                inner.name, outer.name
            ))
            .hint("Make both read-only or both writable, or move one of them out of the other."));
        }
    }
    Ok(())
}

/// Whether a path is a regular file that this process may execute.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

impl Grant for Exec {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
