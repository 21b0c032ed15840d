//! The background hub: accepts sessions and commands of its user, hands over to a newer program, and ends when idle.

use super::confinement::Confinement;
use super::hub_protocol::{
    DrainParams, Hello, HelloReply, HubReport, PROTOCOL_VERSION, Purpose, Refusal, SessionRequest,
    WorkspaceReport, from_line, to_line,
};
use super::hub_socket::HubFiles;
use super::log_rotation;
use super::peer_process::check_peer;
use super::program_file::ProgramFile;
use super::session_app::{CallbackPort, SessionApp};
use super::successor_check::SuccessorCheck;
use super::tool_queries;
use crate::app_context::{AppContext, AppMode, block_on_multi_thread};
use crate::app_error::AppError;
use crate::bearer_token::generate_token;
use crate::settings::load;
use crate::telemetry::LogMode;
use octo_model::{Caller, Json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A hub without sessions ends after this time.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Interval of all checks: idleness, a newer program, the size of the log.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// The environment of a process is limited to about this by the system.
const MAX_HELLO_BYTES: u64 = 8 << 20;
/// Time for calls to finish when the hub is stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);
const TASK_POLL_INTERVAL: Duration = Duration::from_millis(50);

struct AttachServer {
    files: HubFiles,
    program: ProgramFile,
    confinement: Confinement,
    idle_timeout: Duration,
    /// Whether the home directory existed. Once it is removed, nobody attaches again.
    had_home: bool,
    started: Instant,
    /// Logs and spans of the process, started with the settings of the first session.
    context: tokio::sync::OnceCell<AppContext>,
    apps: tokio::sync::Mutex<Vec<Arc<AppSlot>>>,
    /// Connections, and apps that are being stopped.
    tasks: TaskTracker,
    sessions: AtomicUsize,
    last_used: Mutex<Instant>,
    /// Proves requests to leave.
    drain_token: String,
    /// Set once a newer program takes over.
    drain: Mutex<Option<DrainParams>>,
    successors: tokio::sync::Mutex<SuccessorCheck>,
    /// No session begins any longer.
    is_stopping: AtomicBool,
    /// Ends connections that did not end by themselves.
    abort: CancellationToken,
}

/// An app, with the number of its users.
struct AppSlot {
    app: SessionApp,
    users: AtomicUsize,
    sessions: AtomicUsize,
    last_used: Mutex<Instant>,
}

/// The use of an app by one connection.
struct AppUse {
    slot: Arc<AppSlot>,
    server: Arc<AttachServer>,
    is_session: bool,
}

/// Runs the hub until it is stopped or idle.
pub fn run(socket: &Path, idle_timeout: Duration) -> Result<(), AppError> {
    // Fails if the process leads a group already, which serves as well.
    let _ = rustix::process::setsid();
    let files = HubFiles::of_socket(socket);
    let listener = files.bind()?;
    // Closes the pipe of the process that started the hub: sessions can connect now.
    log_rotation::redirect(&log_rotation::open_log(&files.log)?)?;
    listener.set_nonblocking(true)?;
    let identity = files.socket_identity();
    block_on_multi_thread(async {
        let server = Arc::new(AttachServer::new(files, idle_timeout)?);
        let listener = UnixListener::from_std(listener)?;
        server.accept_until_done(&listener, identity).await?;
        server.remove_socket(identity);
        drop(listener);
        server.shutdown().await;
        Ok(())
    })
}

impl AttachServer {
    fn new(files: HubFiles, idle_timeout: Duration) -> io::Result<Self> {
        Ok(Self {
            files,
            program: ProgramFile::own()?,
            confinement: Confinement::own()?,
            idle_timeout,
            had_home: home_exists(),
            started: Instant::now(),
            context: tokio::sync::OnceCell::new(),
            apps: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            sessions: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            drain_token: generate_token()
                .map_err(|_| io::Error::other("system random number generator unavailable"))?,
            drain: Mutex::default(),
            successors: tokio::sync::Mutex::default(),
            is_stopping: AtomicBool::new(false),
            abort: CancellationToken::new(),
        })
    }

    async fn accept_until_done(
        self: &Arc<Self>,
        listener: &UnixListener,
        identity: Option<(u64, u64)>,
    ) -> io::Result<()> {
        let mut terms = signal(SignalKind::terminate())?;
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let server = Arc::clone(self);
                        self.tasks.spawn(async move { server.serve_connection(stream).await });
                    }
                    Err(error) => {
                        tracing::error!(%error, "cannot accept a session");
                        tokio::time::sleep(CHECK_INTERVAL).await;
                    }
                },
                _ = checks.tick() => {
                    if self.files.socket_identity() != identity || self.had_home && !home_exists() {
                        tracing::info!("the socket or the home directory is gone");
                        return Ok(());
                    }
                    if let Err(error) = log_rotation::rotate_if_full(&self.files.log) {
                        tracing::warn!(%error, "cannot rotate the log");
                    }
                    let server = Arc::clone(self);
                    tokio::spawn(async move { server.hand_over().await });
                    if self.end_unused_apps() && self.is_done() {
                        return Ok(());
                    }
                }
                _ = terms.recv() => return Ok(()),
                _ = interrupts.recv() => return Ok(()),
            }
        }
    }

    /// Whether nobody needs this hub any longer, apart from its apps.
    fn is_done(&self) -> bool {
        let is_draining = self.drain_params().is_some();
        let idle = self.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        self.tasks.is_empty() && (is_draining || idle >= self.idle_timeout)
    }

    fn drain_params(&self) -> Option<DrainParams> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the sessions to move to a newer program, if there is one, once nothing else depends on this hub.
    async fn hand_over(&self) {
        let Ok(mut successors) = self.successors.try_lock() else { return };
        if self.drain_params().is_none() {
            let apps = self.apps.lock().await;
            let writable: Vec<PathBuf> = apps.iter().flat_map(|slot| slot.app.writable_folders()).collect();
            drop(apps);
            let Some(successor) = successors.find(&self.program, &writable).await else { return };
            tracing::info!(program = %successor.path.display(), "a newer program takes over");
            let params = DrainParams { token: self.drain_token.clone(), successor: Some(successor) };
            *self.drain.lock().unwrap_or_else(PoisonError::into_inner) = Some(params);
        }
        let apps = self.apps.lock().await;
        if let Some(params) = self.drain_params() {
            apps.iter().filter(|slot| slot.app.is_idle()).for_each(|slot| slot.drain(&params));
        }
    }

    /// Stops apps that had no session for a while, and their servers. Returns whether nothing runs in the others.
    fn end_unused_apps(&self) -> bool {
        let Ok(mut apps) = self.apps.try_lock() else { return false };
        let is_unused = |slot: &Arc<AppSlot>| {
            let unused = slot.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            // No other session could use an app without a workspace.
            let limit = if slot.app.has_workspace() { self.idle_timeout } else { Duration::ZERO };
            slot.users.load(Ordering::Acquire) == 0 && unused >= limit && slot.app.mcp.is_idle()
        };
        let (unused, used): (Vec<_>, Vec<_>) = std::mem::take(&mut *apps).into_iter().partition(is_unused);
        *apps = used;
        if !unused.is_empty() {
            self.tasks.spawn(shutdown_apps(unused));
        }
        apps.iter().all(|slot| slot.app.mcp.is_idle())
    }

    async fn serve_connection(self: Arc<Self>, stream: UnixStream) {
        let peer = match check_peer(&stream, &self.confinement) {
            Ok(peer) => peer,
            Err(error) => return tracing::warn!(%error, "connection refused"),
        };
        let (input, output) = stream.into_split();
        let mut input = BufReader::with_capacity(64 << 10, input);
        let Ok(Some(hello)) = tokio::time::timeout(HELLO_TIMEOUT, read_hello(&mut input)).await else {
            return;
        };
        tokio::select! {
            () = self.serve_hello(hello, input, output) => {}
            () = peer.ended() => {}
            () = self.abort.cancelled() => {}
        }
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    async fn serve_hello(
        self: &Arc<Self>,
        hello: Hello,
        mut input: BufReader<OwnedReadHalf>,
        mut output: OwnedWriteHalf,
    ) {
        let (request, is_session) = match hello.purpose {
            _ if hello.protocol != PROTOCOL_VERSION => {
                let text =
                    "The background hub is of another version. Stop it with `octoprox stop`.".to_owned();
                return reply(
                    &mut output,
                    HelloReply { refusal: Some(Refusal { code: 1, text }), ..HelloReply::default() },
                )
                .await;
            }
            Purpose::Session(request) => (request, true),
            Purpose::Queries(request) => (request, false),
            Purpose::Status => {
                let status = Some(self.report().await);
                return reply(&mut output, HelloReply { status, ..HelloReply::default() }).await;
            }
        };
        let used = match self.use_app(&request, is_session).await {
            Ok(Some(used)) => used,
            // Without a reply, the session tries the next hub.
            Ok(None) => return,
            Err(error) => {
                let refusal = Some(Refusal::from(&error));
                return reply(&mut output, HelloReply { refusal, ..HelloReply::default() }).await;
            }
        };
        let app = &used.slot.app;
        let loaded = &app.session.loaded;
        let notices = loaded.notes.iter().chain(&loaded.unapproved).cloned().collect();
        let drain_token = self.drain_token.clone();
        reply(&mut output, HelloReply { notices, drain_token, ..HelloReply::default() }).await;
        if !is_session {
            return tool_queries::serve(&app.assembly.hub, &request.profile, &mut input, &mut output).await;
        }
        let mcp = Arc::clone(&app.mcp);
        if let Err(error) =
            mcp.serve_stdio(Arc::new(Caller::local()), request.profile, request.options, input, output).await
        {
            tracing::warn!(%error, "session ended");
        }
    }

    /// Returns the app for a session, and starts one if none suits; `None` if the hub is stopping.
    async fn use_app(
        self: &Arc<Self>,
        request: &SessionRequest,
        is_session: bool,
    ) -> Result<Option<AppUse>, AppError> {
        let (world, flags) = (request.environment(), request.flags());
        let mut loaded = tokio::task::block_in_place(|| load(&world, &flags))?;
        let mut apps = self.apps.lock().await;
        if self.is_stopping.load(Ordering::Acquire) {
            return Ok(None);
        }
        let suitable = apps.iter().find(|slot| slot.app.suits(&loaded, &world, &flags, is_session));
        let slot = match suitable {
            Some(slot) => Arc::clone(slot),
            None => {
                let context = self.context.get_or_try_init(|| async {
                    let loaded = load(&world, &flags)?;
                    AppContext::start(loaded, LogMode::Stdio, AppMode::CallTools)
                });
                let context = context.await?;
                let callback = CallbackPort::bind(&mut loaded).await;
                let session = context.for_session(loaded, world)?;
                let start = || SessionApp::start(session, flags, callback, is_session);
                let slot = Arc::new(AppSlot {
                    app: tokio::task::block_in_place(start)?,
                    users: AtomicUsize::new(0),
                    sessions: AtomicUsize::new(0),
                    last_used: Mutex::new(Instant::now()),
                });
                apps.push(Arc::clone(&slot));
                slot
            }
        };
        slot.app.assembly.hub.view(&request.profile)?;
        slot.users.fetch_add(1, Ordering::AcqRel);
        if is_session {
            slot.sessions.fetch_add(1, Ordering::AcqRel);
            self.sessions.fetch_add(1, Ordering::AcqRel);
        }
        Ok(Some(AppUse { slot, server: Arc::clone(self), is_session }))
    }

    async fn report(&self) -> HubReport {
        let apps = self.apps.lock().await;
        // A directory has several apps after its settings or environment have changed.
        let mut workspaces: BTreeMap<Option<PathBuf>, WorkspaceReport> = BTreeMap::new();
        for slot in apps.iter() {
            let workspace = slot.app.session.loaded.settings.workspace.clone();
            let report = workspaces.entry(workspace.clone()).or_insert_with(|| WorkspaceReport {
                workspace,
                sessions: 0,
                servers: BTreeSet::new(),
            });
            report.sessions += slot.sessions.load(Ordering::Acquire);
            report.servers.extend(slot.app.assembly.gateway.servers().all().into_keys());
        }
        HubReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: self.program.path.clone(),
            uptime_seconds: self.started.elapsed().as_secs(),
            sessions: self.sessions.load(Ordering::Acquire),
            workspaces: workspaces.into_values().collect(),
            is_draining: self.drain_params().is_some(),
        }
    }

    /// Removes the socket unless it belongs to another hub by now, or one is being started.
    fn remove_socket(&self, identity: Option<(u64, u64)>) {
        if let Ok(_lock) = self.files.try_lock()
            && self.files.socket_identity() == identity
        {
            let _ = std::fs::remove_file(&self.files.socket);
        }
    }

    /// Lets calls and tasks finish and the sessions leave, then stops the servers.
    async fn shutdown(&self) {
        tracing::info!("stopping");
        self.is_stopping.store(true, Ordering::Release);
        let apps = std::mem::take(&mut *self.apps.lock().await);
        let params = DrainParams { token: self.drain_token.clone(), successor: None };
        apps.iter().for_each(|slot| slot.drain(&params));
        self.tasks.close();
        let finished = async {
            self.tasks.wait().await;
            while !apps.iter().all(|slot| slot.app.mcp.has_no_running_task()) {
                tokio::time::sleep(TASK_POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(STOP_TIMEOUT, finished).await.is_err() {
            self.abort.cancel();
            let _ = tokio::time::timeout(STOP_TIMEOUT, self.tasks.wait()).await;
        }
        shutdown_apps(apps).await;
        if let Some(export) = self.context.get().and_then(|context| context.export.clone()) {
            export.shutdown().await;
        }
    }
}

impl AppSlot {
    fn drain(&self, params: &DrainParams) {
        let params = serde_json::to_value(params).ok().and_then(|params| Json::from(params).members().ok());
        self.app.mcp.drain(params.unwrap_or_default());
    }
}

impl Drop for AppUse {
    fn drop(&mut self) {
        *self.slot.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if self.is_session {
            self.slot.sessions.fetch_sub(1, Ordering::AcqRel);
            self.server.sessions.fetch_sub(1, Ordering::AcqRel);
        }
        self.slot.users.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Stops apps side by side: each waits for its servers.
async fn shutdown_apps(apps: Vec<Arc<AppSlot>>) {
    let ends = apps.into_iter().filter_map(Arc::into_inner).map(|slot| slot.app.shutdown());
    futures_util::future::join_all(ends).await;
}

fn home_exists() -> bool {
    std::env::home_dir().is_some_and(|home| home.exists())
}

async fn read_hello(input: &mut BufReader<OwnedReadHalf>) -> Option<Hello> {
    let mut line = Vec::new();
    input.take(MAX_HELLO_BYTES).read_until(b'\n', &mut line).await.ok()?;
    from_line(&line)
}

async fn reply(output: &mut OwnedWriteHalf, reply: HelloReply) {
    // A process that is gone needs no reply.
    let _ = output.write_all(&to_line(&reply)).await;
}
