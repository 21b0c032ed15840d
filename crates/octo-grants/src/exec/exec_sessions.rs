//! Long-running programs: read, written to, resized and stopped by session id.

use super::capture::scratch_file;
use super::launcher_protocol::DRAIN_TIMEOUT;
use super::output_ring::OutputRing;
use super::run::{READ_CHUNK_BYTES, TERMINATE_GRACE, input_pipe, output_pipe};
use super::start_program::{JobStreams, RunningProgram};
use super::terminal::{Terminal, TerminalSize};
use super::{Exec, Exit, Job, Program};
use crate::{Capabilities, Clock, Grant};
use jiff::Timestamp;
use octo_model::{Caller, Kind, Principal, ToolError};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

const MAX_SESSIONS: usize = 64;
const MAX_SESSIONS_PER_CALLER: usize = 16;
const ENDED_SESSION_TTL: Duration = Duration::from_secs(600);
const MAX_OUTPUT_BYTES: u64 = 8 << 20;
/// For a program that does not read its input.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts and tracks long-running programs. They end with the last clone of this handle.
#[derive(Clone)]
pub struct Sessions(Arc<Inner>);

struct Inner {
    exec: Exec,
    all: Mutex<HashMap<String, Arc<Session>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    Running,
    Ended(Exit),
}

/// A part of a session's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOutput {
    /// Offset of `bytes` in the whole output.
    pub from: u64,
    /// Offset of the next read.
    pub next: u64,
    /// Total bytes written by the program.
    pub total: u64,
    pub bytes: Vec<u8>,
    /// Requested bytes that are no longer stored.
    pub skipped: u64,
    pub state: SessionState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: String,
    pub command: String,
    /// Working directory, as the caller spells it.
    pub cwd: String,
    pub started: Timestamp,
    pub state: SessionState,
    /// Total bytes of output.
    pub bytes: u64,
    pub tty: bool,
    /// PID of the main process, or of the sandbox around it.
    pub pid: u32,
}

struct Session {
    owner: Principal,
    command: String,
    cwd: String,
    started: Timestamp,
    pid: u32,
    terminal: Option<Arc<Terminal>>,
    input: tokio::sync::Mutex<Option<Sender>>,
    log: Arc<Mutex<OutputRing>>,
    /// Offset at which the last read ended.
    next_read: Mutex<u64>,
    progress: watch::Receiver<Progress>,
    stop: Arc<Notify>,
    task: tokio::task::AbortHandle,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone, Copy)]
struct Progress {
    total: u64,
    state: SessionState,
    ended: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub fn new(exec: Exec) -> Self {
        Self(Arc::new(Inner { exec, all: Mutex::default() }))
    }

    /// Starts a program and returns its session id. The job's input is written first and its timeout applies to the
    /// session; its output limit is not used here.
    pub async fn start(
        &self,
        owner: &Caller,
        job: Job,
        tty: Option<TerminalSize>,
    ) -> Result<String, ToolError> {
        let key = owner.principal.clone();
        self.evict_ended(&key)?;
        let (order, JobStreams { stdin, timeout, .. }) = job.into_parts(tty.is_some());
        let (ends, descriptors) = match tty {
            Some(size) => with_terminal(size),
            None => with_pipes(),
        }
        .map_err(ToolError::internal)?;
        let state = self.0.exec.spec().state.clone();
        let file =
            tokio::task::spawn_blocking(move || scratch_file(&state)).await.map_err(ToolError::internal)?;
        let log = Arc::new(Mutex::new(OutputRing::new(file.map_err(ToolError::internal)?, MAX_OUTPUT_BYTES)));
        let running = self.0.exec.start_program(&order, descriptors).await?;
        let begun = Progress { total: 0, state: SessionState::Running, ended: None };
        let (tell, progress) = watch::channel(begun);
        let stop = Arc::new(Notify::new());
        let pid = running.pid;
        let attended = SessionTask { running, source: ends.source, log: Arc::clone(&log), progress: tell };
        let deadline = Instant::now().checked_add(timeout);
        let task = tokio::spawn(attended.run(Arc::clone(&stop), deadline)).abort_handle();
        let session = Arc::new(Session {
            owner: key,
            command: command_text(&order.program),
            cwd: order.cwd.display(),
            started: Clock::system().now(),
            pid,
            terminal: ends.terminal,
            input: tokio::sync::Mutex::new(ends.input),
            log,
            next_read: Mutex::new(0),
            progress,
            stop,
            task,
        });
        let id = format!("s_{}", crate::random::hex::<6>().map_err(ToolError::internal)?);
        if let Some(first) = stdin {
            session.write(&first).await?;
        }
        // Several sessions may have started at the same moment.
        self.evict_ended(&session.owner)?;
        lock(&self.0.all).insert(id.clone(), session);
        Ok(id)
    }

    /// Output from an offset (or from the end of the last read). Waits until there is some, the program has exited,
    /// or the timeout has passed.
    pub async fn read(
        &self,
        owner: &Caller,
        id: &str,
        from: Option<u64>,
        max: usize,
        wait: Duration,
    ) -> Result<SessionOutput, ToolError> {
        let session = self.find(owner, id)?;
        let from = from.unwrap_or_else(|| *lock(&session.next_read));
        let mut progress = session.progress.clone();
        let something = progress.wait_for(|now| now.total > from || now.ended.is_some());
        // Replies in either case.
        let _ = tokio::time::timeout(wait, something).await;
        session.read_output(from, max).await
    }

    pub async fn write(&self, owner: &Caller, id: &str, bytes: &[u8]) -> Result<(), ToolError> {
        self.find(owner, id)?.write(bytes).await
    }

    /// Closes the program's input. A terminal cannot be closed; write character 4 (Ctrl-D) instead.
    pub async fn close_input(&self, owner: &Caller, id: &str) -> Result<(), ToolError> {
        *self.find(owner, id)?.input.lock().await = None;
        Ok(())
    }

    pub async fn resize(&self, owner: &Caller, id: &str, size: TerminalSize) -> Result<(), ToolError> {
        let session = self.find(owner, id)?;
        let Some(terminal) = &session.terminal else {
            return Err(ToolError::invalid("This session has no terminal, so it has no size.")
                .hint("Start it with a terminal to set a size."));
        };
        terminal.resize(size).map_err(ToolError::internal)
    }

    /// Terminates the program, kills it if it does not exit, and returns its output since the last read.
    pub async fn stop(&self, owner: &Caller, id: &str) -> Result<SessionOutput, ToolError> {
        let session = self.find(owner, id)?;
        session.stop.notify_one();
        let mut progress = session.progress.clone();
        let _ = progress.wait_for(|now| now.ended.is_some()).await;
        let from = *lock(&session.next_read);
        session.read_output(from, usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX)).await
    }

    /// The owner's sessions, oldest first.
    pub fn list(&self, owner: &Caller) -> Vec<SessionInfo> {
        self.remove_expired();
        let all = lock(&self.0.all);
        let mut infos: Vec<_> = all
            .iter()
            .filter(|(_, session)| session.belongs_to(owner))
            .map(|(id, session)| session.info(id))
            .collect();
        infos.sort_by(|one, other| (one.started, &one.id).cmp(&(other.started, &other.id)));
        infos
    }

    /// Whether a session of anybody runs.
    pub fn has_running(&self) -> bool {
        let all = lock(&self.0.all);
        all.iter().any(|(id, session)| session.info(id).state == SessionState::Running)
    }

    /// A session of another owner is reported as not found.
    fn find(&self, owner: &Caller, id: &str) -> Result<Arc<Session>, ToolError> {
        self.remove_expired();
        let found = lock(&self.0.all).get(id).filter(|session| session.belongs_to(owner)).cloned();
        found.ok_or_else(|| {
            ToolError::not_found("Session not found.")
                .hint("List the sessions; an ended session is removed after ten minutes.")
        })
    }

    fn remove_expired(&self) {
        let old = |session: &Session| {
            session.progress.borrow().ended.is_some_and(|at| at.elapsed() >= ENDED_SESSION_TTL)
        };
        lock(&self.0.all).retain(|_, session| !old(session));
    }

    /// Above the limit, an ended session is removed early.
    fn evict_ended(&self, owner: &Principal) -> Result<(), ToolError> {
        self.remove_expired();
        let mut all = lock(&self.0.all);
        let mine = all.values().filter(|session| session.owner == *owner).count();
        if mine < MAX_SESSIONS_PER_CALLER && all.len() < MAX_SESSIONS {
            return Ok(());
        }
        let candidates =
            all.iter().filter(|(_, session)| mine < MAX_SESSIONS_PER_CALLER || session.owner == *owner);
        let ended =
            candidates.filter_map(|(id, session)| Some((session.progress.borrow().ended?, id.clone())));
        match ended.min_by_key(|(at, _)| *at) {
            Some((_, id)) => drop(all.remove(&id)),
            None => {
                return Err(ToolError::unavailable("Too many sessions are running.")
                    .hint("Stop a session that is no longer needed, then start this one again."));
            }
        }
        Ok(())
    }
}

impl Grant for Sessions {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl Session {
    fn belongs_to(&self, caller: &Caller) -> bool {
        self.owner == caller.principal
    }

    fn info(&self, id: &str) -> SessionInfo {
        let Progress { total, state, .. } = *self.progress.borrow();
        SessionInfo {
            id: id.to_owned(),
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            started: self.started,
            state,
            bytes: total,
            tty: self.terminal.is_some(),
            pid: self.pid,
        }
    }

    async fn read_output(&self, wanted: u64, max: usize) -> Result<SessionOutput, ToolError> {
        // Read before the output: an ended program writes no more.
        let state = self.progress.borrow().state;
        let log = Arc::clone(&self.log);
        let read = tokio::task::spawn_blocking(move || lock(&log).read(wanted, max)).await;
        let (from, bytes, total) = read.map_err(ToolError::internal)?.map_err(ToolError::internal)?;
        let next = from + bytes.len() as u64;
        *lock(&self.next_read) = next;
        Ok(SessionOutput { from, next, total, bytes, skipped: from.saturating_sub(wanted), state })
    }

    async fn write(&self, bytes: &[u8]) -> Result<(), ToolError> {
        let gone = || {
            ToolError::new(Kind::Conflict, "The program no longer accepts input.")
                .hint("Read the session to see whether it has ended.")
        };
        if self.progress.borrow().ended.is_some() {
            return Err(gone());
        }
        let mut input = self.input.lock().await;
        let writing = async {
            match (&self.terminal, input.as_mut()) {
                (Some(terminal), _) => terminal.write_all(bytes).await,
                (None, Some(pipe)) => pipe.write_all(bytes).await,
                (None, None) => Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        match tokio::time::timeout(WRITE_TIMEOUT, writing).await {
            Ok(written) => written.map_err(|error| gone().detail(error)),
            Err(_) => {
                Err(ToolError::unavailable("The program does not read its input; only a part was written.")
                    .hint("Read the session to see what it does, or stop it."))
            }
        }
    }
}

/// The hub's ends of a session's streams.
struct SessionStreams {
    source: OutputSource,
    input: Option<Sender>,
    terminal: Option<Arc<Terminal>>,
}

enum OutputSource {
    Pipe(Receiver),
    Terminal(Arc<Terminal>),
}

impl OutputSource {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer).await,
            Self::Terminal(terminal) => terminal.read(buffer).await,
        }
    }
}

type Descriptors = [std::os::fd::OwnedFd; 3];

fn with_terminal(size: TerminalSize) -> io::Result<(SessionStreams, Descriptors)> {
    let terminal = Arc::new(Terminal::open(size)?);
    let descriptors = terminal.descriptors()?;
    let source = OutputSource::Terminal(Arc::clone(&terminal));
    Ok((SessionStreams { source, input: None, terminal: Some(terminal) }, descriptors))
}

/// A single pipe for stdout and stderr preserves their order.
fn with_pipes() -> io::Result<(SessionStreams, Descriptors)> {
    let (output, theirs) = output_pipe()?;
    let (stdin, input) = input_pipe()?;
    let errors = theirs.try_clone()?;
    Ok((
        SessionStreams { source: OutputSource::Pipe(output), input: Some(input), terminal: None },
        [stdin, theirs, errors],
    ))
}

fn command_text(program: &Program) -> String {
    match program {
        Program::Shell(line) => line.clone(),
        Program::Argv(words) => words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
    }
}

/// Task that supervises a session's program.
struct SessionTask {
    running: RunningProgram,
    source: OutputSource,
    log: Arc<Mutex<OutputRing>>,
    progress: watch::Sender<Progress>,
}

enum SessionStage {
    Running,
    Terminating,
    Killed,
    Ended,
}

impl SessionTask {
    async fn run(mut self, stop: Arc<Notify>, mut deadline: Option<Instant>) {
        let mut buffer = vec![0; READ_CHUNK_BYTES];
        let (mut stage, mut open, mut exit, mut late) = (SessionStage::Running, true, None, false);
        loop {
            let over = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                count = self.source.read(&mut buffer), if open => open = self.append_output(count, &buffer).await,
                ended = self.running.wait_end(), if !matches!(stage, SessionStage::Killed | SessionStage::Ended) => {
                    exit = Some(ended.exit);
                    (stage, deadline) = (SessionStage::Ended, Some(Instant::now() + DRAIN_TIMEOUT));
                }
                () = stop.notified(), if matches!(stage, SessionStage::Running) => {
                    self.running.terminate().await;
                    (stage, deadline) = (SessionStage::Terminating, Some(Instant::now() + TERMINATE_GRACE));
                }
                () = over => match stage {
                    SessionStage::Running => {
                        late = true;
                        self.running.terminate().await;
                        (stage, deadline) = (SessionStage::Terminating, Some(Instant::now() + TERMINATE_GRACE));
                    }
                    SessionStage::Terminating => {
                        self.running.kill();
                        (stage, deadline) = (SessionStage::Killed, Some(Instant::now() + DRAIN_TIMEOUT));
                    }
                    SessionStage::Killed | SessionStage::Ended => break,
                },
            }
            if !open && matches!(stage, SessionStage::Killed | SessionStage::Ended) {
                break;
            }
        }
        self.running.kill_and_wait().await;
        let exit = if late { Exit::TimedOut } else { exit.unwrap_or(Exit::Signal(libc::SIGKILL)) };
        self.progress.send_modify(|now| {
            now.state = SessionState::Ended(exit);
            now.ended = Some(Instant::now());
        });
    }

    /// Returns false at the end of the output.
    async fn append_output(&self, count: io::Result<usize>, buffer: &[u8]) -> bool {
        let bytes = count.ok().and_then(|count| buffer.get(..count)).unwrap_or_default().to_vec();
        if bytes.is_empty() {
            return false;
        }
        let log = Arc::clone(&self.log);
        match tokio::task::spawn_blocking(move || lock(&log).append(&bytes)).await {
            Ok(Ok(total)) => self.progress.send_modify(|now| now.total = total),
            Ok(Err(error)) => tracing::warn!(%error, "cannot store the output of a session"),
            Err(_) => return false,
        }
        true
    }
}
