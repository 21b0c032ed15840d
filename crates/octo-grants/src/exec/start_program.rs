//! Starts a launcher and holds the hub's end of its control socket.

use super::launcher_protocol::{
    ConfinementPlan, Cwd, DescriptorSlot, Descriptors, LaunchPlan, LauncherReport, MAX_DESCRIPTORS,
    ProxyPortPlan, ResourceLimits, TERMINATE,
};
use super::mount_view::{LandlockRules, MountView};
use super::run::output_pipe;
use super::{
    ExceededLimit, Exec, ExecLimits, Exit, Job, OnOutput, Program, Sandbox, bwrap, program_env, proxy_port,
};
use crate::fs::{Fs, Read, RootedPath};
use bytes::Bytes;
use octo_model::{Kind, ToolError};
use rustix::fs::{Mode, OFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// How long a launcher may take to kill everything; exceeded only by processes stuck in the kernel.
const LAUNCHER_EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// A started program. Dropping it kills the program with all descendants.
pub(crate) struct RunningProgram {
    control: Option<UnixStream>,
    received: Vec<u8>,
    launcher: tokio::process::Child,
    pub sandbox: Sandbox,
    pub pid: u32,
}

/// Working directory of a program before it is opened.
pub(super) enum StartFolder {
    Rooted(RootedPath),
    /// A directory of the hub, among the writable ones of the request.
    Hub(PathBuf),
}

impl StartFolder {
    pub fn display(&self) -> String {
        match self {
            Self::Rooted(place) => place.display(),
            Self::Hub(path) => path.display().to_string(),
        }
    }
}

/// Parts of a job that concern the program itself.
pub(super) struct StartRequest {
    pub program: Program,
    pub cwd: StartFolder,
    pub env: BTreeMap<String, String>,
    pub network: bool,
    /// Without `network`: socket over which the port of a proxy in the program's own network is passed to the hub.
    pub proxy_socket: Option<OwnedFd>,
    pub writes: bool,
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    pub tty: bool,
}

/// Parts of a job that concern its streams and its duration.
pub(super) struct JobStreams {
    pub stdin: Option<Bytes>,
    pub timeout: Duration,
    pub max_output_bytes: usize,
    pub on_output: Option<OnOutput>,
}

impl Job {
    pub(super) fn into_parts(self, tty: bool) -> (StartRequest, JobStreams) {
        let request = StartRequest {
            program: self.program,
            cwd: StartFolder::Rooted(self.cwd),
            env: self.env,
            network: self.network,
            proxy_socket: None,
            writes: self.writes,
            readable: self.readable,
            writable: self.writable,
            tty,
        };
        let streams = JobStreams {
            stdin: self.stdin,
            timeout: self.timeout,
            max_output_bytes: self.max_output_bytes,
            on_output: self.on_output,
        };
        (request, streams)
    }
}

/// How the main process ended.
pub(crate) struct ProgramEnd {
    pub exit: Exit,
    pub limit: Option<ExceededLimit>,
}

impl Exec {
    /// Starts a program with these as its stdin, stdout and stderr.
    pub(super) async fn start_program(
        &self,
        order: &StartRequest,
        streams: [OwnedFd; 3],
    ) -> Result<RunningProgram, ToolError> {
        let sandbox = self.confinement().await?;
        let mut descriptors = Descriptors::new(streams);
        let plan = self.launch_plan(order, sandbox, &mut descriptors).await?;
        start_launcher(&self.spec().launcher, &plan, descriptors, sandbox).await
    }

    async fn launch_plan(
        &self,
        order: &StartRequest,
        sandbox: Sandbox,
        descriptors: &mut Descriptors,
    ) -> Result<LaunchPlan, ToolError> {
        let argv = self.argv(&order.program)?;
        let (cwd, folder) = self.open_start_folder(&order.cwd).await?;
        let view = MountView::new(self.spec(), self.host_mounts(), Some(order))?;
        let mut plan = LaunchPlan {
            argv,
            env: Vec::new(),
            cwd: Cwd::Path("/".into()),
            bounds: self.resource_limits(),
            confine: ConfinementPlan::Nothing,
            nobody: sandbox != Sandbox::None,
            tty: order.tty,
            scratch: None,
            proxy_port: None,
        };
        if sandbox == Sandbox::Bubblewrap {
            let want = bwrap::BwrapRequest { view: &view, network: order.network, tty: order.tty, cwd: &cwd };
            plan.confine = self.bubblewrap_plan(&want, descriptors)?;
            plan.env = program_env::environment(self, order, bwrap::HOME_DIR.into(), bwrap::TMP_DIR.into())?;
            if let Some(socket) = &order.proxy_socket {
                let opener = proxy_port::opener(&self.spec().launcher);
                let socket = descriptors.add(socket).map_err(ToolError::internal)?;
                plan.proxy_port = Some(ProxyPortPlan { opener, socket });
            }
            if order.tty {
                plan.argv = bwrap::with_terminal(plan.argv, self.search_path().find("setsid"));
            }
            return Ok(plan);
        }
        if order.proxy_socket.is_some() {
            return Err(proxy_port::unsupported_error());
        }
        plan.cwd = Cwd::Folder(descriptors.add(folder).map_err(ToolError::internal)?);
        let scratch = self.scratch_path()?;
        let (home, tmp) = (scratch.join("home"), scratch.join("tmp"));
        plan.env = program_env::environment(self, order, home.clone().into(), tmp.clone().into())?;
        let rules = if sandbox == Sandbox::Landlock { Some(view.landlock_rules()?) } else { None };
        let made = tokio::task::spawn_blocking(move || make_scratch(&home, &tmp, &view.home_links)).await;
        let made = made.map_err(io::Error::other).and_then(|made| made).map_err(ToolError::internal)?;
        plan.scratch = Some(scratch.into());
        if let Some(mut rules) = rules {
            rules.write.extend(made);
            plan.confine = landlock_plan(rules, order.network, descriptors).map_err(ToolError::internal)?;
        }
        Ok(plan)
    }

    async fn open_start_folder(&self, folder: &StartFolder) -> Result<(PathBuf, OwnedFd), ToolError> {
        match folder {
            StartFolder::Rooted(place) => {
                let (place, fs) = (place.clone(), Fs::<Read>::new(self.spec().workspace.clone()));
                let folder = fs.run(move |fs| fs.open_folder(&place)).await?;
                // Without the `.` of the root itself, which programs would repeat.
                let path = folder.real.root().path.join(folder.real.relative()).components().collect();
                Ok((path, folder.fd().try_clone_to_owned().map_err(ToolError::internal)?))
            }
            StartFolder::Hub(path) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let held = rustix::fs::open(path, flags, Mode::empty()).map_err(ToolError::internal)?;
                Ok((path.clone(), held))
            }
        }
    }

    fn resource_limits(&self) -> ResourceLimits {
        let ExecLimits { memory_bytes, processes, file_bytes, open_files } = self.spec().limits;
        ResourceLimits { memory: memory_bytes, processes, file: file_bytes, open_files }
    }

    fn bubblewrap_plan(
        &self,
        want: &bwrap::BwrapRequest<'_>,
        descriptors: &mut Descriptors,
    ) -> Result<ConfinementPlan, ToolError> {
        let program = self.bubblewrap().ok_or_else(|| ToolError::internal("bubblewrap is missing"))?;
        let made = bwrap::bwrap_args(want, descriptors).and_then(|args| {
            let (program, shares_network) = (descriptors.add(&program.0)?, want.network);
            Ok(ConfinementPlan::Bubblewrap { program, args, shares_network })
        });
        made.map_err(ToolError::internal)
    }

    /// Starts a program that does nothing, in the way programs are started later; returns why that fails.
    pub(super) async fn probe_sandbox(&self, sandbox: Sandbox) -> Result<(), String> {
        let told = |error: ToolError| error.detail.clone().unwrap_or_else(|| error.text());
        let null = || File::open("/dev/null").map(OwnedFd::from).map_err(|error| error.to_string());
        let (mut complaints, errors) = output_pipe().map_err(|error| error.to_string())?;
        let mut descriptors = Descriptors::new([null()?, null()?, errors]);
        let view = MountView::new(self.spec(), self.host_mounts(), None).map_err(told)?;
        let confine = match sandbox {
            Sandbox::Bubblewrap => {
                let want =
                    bwrap::BwrapRequest { view: &view, network: false, tty: false, cwd: Path::new("/") };
                self.bubblewrap_plan(&want, &mut descriptors).map_err(told)?
            }
            _ => {
                let system = view.system();
                ConfinementPlan::Landlock { system, read: Vec::new(), write: Vec::new(), network: false }
            }
        };
        let plan = LaunchPlan {
            argv: vec!["/bin/true".into()],
            env: Vec::new(),
            cwd: Cwd::Path("/".into()),
            bounds: self.resource_limits(),
            confine,
            nobody: true,
            tty: false,
            scratch: None,
            proxy_port: None,
        };
        let mut running =
            start_launcher(&self.spec().launcher, &plan, descriptors, sandbox).await.map_err(told)?;
        let ended = running.wait_end().await.exit;
        running.kill_and_wait().await;
        if ended == Exit::Code(0) {
            return Ok(());
        }
        let mut said = String::new();
        let _ = tokio::time::timeout(LAUNCHER_EXIT_TIMEOUT, complaints.read_to_string(&mut said)).await;
        Err(format!("a program ended with {ended:?}: {}", said.trim_end()))
    }

    pub(super) fn scratch_path(&self) -> Result<PathBuf, ToolError> {
        let name = crate::random::hex::<6>().map_err(ToolError::internal)?;
        Ok(self.spec().state.join("exec").join(name))
    }

    fn argv(&self, program: &Program) -> Result<Vec<OsString>, ToolError> {
        let mut argv = match program {
            Program::Shell(line) => vec![super::shell().into(), "-c".into(), line.into()],
            Program::Argv(words) => words.clone(),
        };
        if argv.iter().any(|word| word.as_bytes().contains(&0)) {
            return Err(
                ToolError::invalid("The command contains a NUL character.").hint("Remove the NUL character.")
            );
        }
        let Some(first) = argv.first_mut().filter(|first| !first.is_empty()) else {
            return Err(
                ToolError::invalid("No program given.").hint("Give the program first, then its arguments.")
            );
        };
        if !first.as_bytes().contains(&b'/') {
            let name = first.to_string_lossy().into_owned();
            *first = self.search_path().find(&name).ok_or_else(|| program_not_found(&name))?.into();
        }
        Ok(argv)
    }
}

/// Starts a launcher and waits until the plan's program runs with these as its stdin, stdout and stderr.
pub(crate) async fn start_launcher(
    launcher: &[OsString],
    plan: &LaunchPlan,
    descriptors: Descriptors,
    sandbox: Sandbox,
) -> Result<RunningProgram, ToolError> {
    let scratch = ScratchGuard(plan.scratch.clone().map(PathBuf::from));
    let text = serde_json::to_vec(plan).map_err(ToolError::internal)?;
    let mut running = spawn(launcher, &text, &descriptors, sandbox).await.map_err(|error| {
        ToolError::unavailable("The program could not be started.")
            .hint("Try again; if it still fails, ask the operator to check the hub's log.")
            .detail(error)
    })?;
    drop(descriptors);
    match running.next_report().await {
        Some(LauncherReport::Started { pid }) => {
            scratch.keep();
            running.pid = pid.unsigned_abs();
            Ok(running)
        }
        Some(LauncherReport::Failed { errno, why }) => Err(start_error(errno, &why)),
        other => Err(ToolError::internal(format!("unexpected first report of the launcher: {other:?}"))),
    }
}

async fn spawn(
    launcher: &[OsString],
    plan: &[u8],
    descriptors: &Descriptors,
    sandbox: Sandbox,
) -> io::Result<RunningProgram> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut words = launcher.iter();
    let program = words.next().ok_or_else(|| io::Error::other("no launcher"))?;
    let launcher = tokio::process::Command::new(program)
        .args(words)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let count = |length: usize| u32::try_from(length).map(u32::to_ne_bytes).map_err(io::Error::other);
    let mut word = [count(plan.len())?, count(descriptors.0.len())?].concat();
    for part in descriptors.0.chunks(MAX_DESCRIPTORS) {
        let passed: Vec<_> = part.iter().map(AsFd::as_fd).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(&passed));
        sendmsg(&ours, &[IoSlice::new(&word)], &mut rights, SendFlags::NOSIGNAL)?;
        // Descriptors can only be sent along with data.
        word = vec![0];
    }
    let mut control = UnixStream::from_std(ours)?;
    control.write_all(plan).await?;
    Ok(RunningProgram { control: Some(control), received: Vec::new(), launcher, sandbox, pid: 0 })
}

fn program_not_found(name: &str) -> ToolError {
    ToolError::not_found(format!("Program not found in the search path: `{name}`."))
        .hint("Check the spelling, or ask the operator to install it.")
}

fn start_error(errno: Option<i32>, why: &str) -> ToolError {
    let error = match errno {
        Some(libc::ENOENT) => {
            ToolError::not_found("The program does not exist, or the interpreter it names does not.")
                .hint("Check the path; paths are relative to the working directory.")
        }
        Some(libc::EACCES) => {
            ToolError::denied("The program is not executable, or is where execution is not permitted.")
                .hint("Make it executable, or run it with its interpreter.")
        }
        Some(libc::E2BIG) => ToolError::new(Kind::TooLarge, "The command or its environment is too large.")
            .hint("Pass large text on standard input or in a file."),
        Some(libc::ENOEXEC) => {
            ToolError::invalid("The file is not a program.").hint("Run it with its interpreter.")
        }
        _ => ToolError::unavailable("The program could not be started.")
            .hint("Ask the operator to check the hub's log."),
    };
    error.detail(why)
}

/// Landlock rules with their descriptors.
fn landlock_plan(
    rules: LandlockRules,
    network: bool,
    descriptors: &mut Descriptors,
) -> io::Result<ConfinementPlan> {
    let mut slots = |held: Vec<Arc<OwnedFd>>| held.into_iter().map(|held| descriptors.add(held)).collect();
    let read: io::Result<Vec<DescriptorSlot>> = slots(rules.read);
    let write: io::Result<Vec<DescriptorSlot>> = slots(rules.write);
    Ok(ConfinementPlan::Landlock { system: rules.system, read: read?, write: write?, network })
}

/// Creates the program's private directories and opens them.
fn make_scratch(home: &Path, tmp: &Path, links: &[(PathBuf, PathBuf)]) -> io::Result<[Arc<OwnedFd>; 2]> {
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(home)?;
    private.create(tmp)?;
    for (link, target) in links {
        let link = home.join(link);
        private.create(link.parent().unwrap_or(home))?;
        std::os::unix::fs::symlink(target, link)?;
    }
    let hold = |folder: &Path| -> io::Result<Arc<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Arc::new(rustix::fs::open(folder, flags, Mode::empty())?))
    };
    Ok([hold(home)?, hold(tmp)?])
}

/// Removes the directory if no launcher lives to do so.
struct ScratchGuard(Option<PathBuf>);

impl ScratchGuard {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for ScratchGuard {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl RunningProgram {
    /// The next report; `None` if the launcher has exited. Cancel-safe.
    async fn next_report(&mut self) -> Option<LauncherReport> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).ok();
            }
            match self.control.as_mut()?.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Waits for the main process. Cancel-safe.
    pub(crate) async fn wait_end(&mut self) -> ProgramEnd {
        match self.next_report().await {
            Some(LauncherReport::Ended { code, signal, too_many }) => {
                let exit = code.map_or(Exit::Signal(signal.unwrap_or(libc::SIGKILL)), Exit::Code);
                ProgramEnd { exit, limit: too_many.then_some(ExceededLimit::Processes) }
            }
            _ => ProgramEnd { exit: Exit::Signal(libc::SIGKILL), limit: None },
        }
    }

    /// Terminates every process.
    pub async fn terminate(&mut self) {
        if let Some(control) = &mut self.control {
            let _ = control.write_all(&[TERMINATE]).await;
        }
    }

    /// Kills every process, without waiting.
    pub fn kill(&mut self) {
        self.control = None;
    }

    /// Kills what is left and waits until it is gone.
    pub async fn kill_and_wait(mut self) {
        self.kill();
        if tokio::time::timeout(LAUNCHER_EXIT_TIMEOUT, self.launcher.wait()).await.is_err() {
            tracing::warn!(pid = self.pid, "program does not exit");
        }
    }
}
