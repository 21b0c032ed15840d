//! Chromium with no network access except through the `Net` grant.
//!
//! It gets a fresh profile, a clean environment and one way out: our proxy, which dials through `Net`. If the hub has
//! the privileges, it also gets its own network namespace that contains only that proxy. It is controlled over a pair
//! of pipes, so there is no listening debugging port.

mod browser_dir;
pub(crate) mod browser_proxy;
mod browser_sandbox;
mod flags;
mod memory_watch;
mod namespace;

use crate::exec::{
    ConfinementPlan, Cwd, Descriptors, LaunchPlan, ResourceLimits, RunningProgram, Sandbox, start_launcher,
};
use crate::{Capabilities, Grant, Net, SearchPath};
use browser_dir::BrowserDir;
use browser_proxy::Proxy;
use memory_watch::MemoryWatch;
use octo_model::ToolError;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use url::Url;

/// Program names, in order of preference.
const PROGRAM_NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// Bytes of stderr that are retained for the log.
const MAX_STDERR_BYTES: usize = 4_096;

/// Memory limit in bytes for the pages of one renderer.
const MAX_PAGE_MEMORY_BYTES: u64 = 5 << 29;

/// Timeout for bubblewrap to create its namespaces.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(10);

/// Confinement of the browser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BrowserSandbox {
    /// Bubblewrap if it works, with its own network namespace if the hub can create one.
    #[default]
    Auto,
    /// Bubblewrap with the host's network.
    SharedNetwork,
    /// Only Chromium's own sandbox.
    None,
}

/// Settings of the browser.
#[derive(Clone)]
pub struct ChromiumSpec {
    /// Search path of programs, without directories that tools can write ([`SearchPath::trusted`]).
    pub path: OsString,
    /// State directory of the hub; contains the profiles of running browsers.
    pub state: PathBuf,
    /// The program and arguments that start the launcher (this binary with a hidden subcommand).
    pub launcher: Vec<OsString>,
    pub sandbox: BrowserSandbox,
    pub net: Net,
}

/// Starts Chromium.
#[derive(Clone)]
pub struct Chromium(Arc<ChromiumState>);

struct ChromiumState {
    spec: ChromiumSpec,
    /// Looked up once, in a search path that no tool can write.
    program: Option<PathBuf>,
    bubblewrap: Option<PathBuf>,
    /// Bubblewrap if it is enabled and works. Determined on first use.
    wrapper: OnceLock<Option<PathBuf>>,
}

/// Credentials that the proxy requires of the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyCredentials {
    pub user: String,
    pub password: String,
    /// A page served by the proxy, which makes the browser store the credentials.
    pub page: &'static str,
}

/// A running browser. Dropping it kills all its processes and removes its profile.
pub struct RunningBrowser {
    running: Option<RunningProgram>,
    pipes: Mutex<Option<(Sender, Receiver)>>,
    folder: BrowserDir,
    proxy: Proxy,
    net: Net,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Stops with the browser.
    _watch: MemoryWatch,
}

impl Chromium {
    pub fn new(mut spec: ChromiumSpec) -> Result<Self, ToolError> {
        let state = std::fs::create_dir_all(&spec.state).and_then(|()| spec.state.canonicalize());
        spec.state = state.map_err(|error| {
            ToolError::unavailable("The hub's state directory cannot be used.")
                .hint("Ask the operator to make it writable for the hub.")
                .detail(error)
        })?;
        BrowserDir::sweep(&spec.state);
        let path = SearchPath::new(spec.path.clone(), Vec::new());
        let program = PROGRAM_NAMES.iter().find_map(|name| path.find(name));
        let bubblewrap = path.find("bwrap");
        Ok(Self(Arc::new(ChromiumState { spec, program, bubblewrap, wrapper: OnceLock::new() })))
    }

    /// Describes the confinement of pages for the operator.
    pub fn sandbox(&self) -> &'static str {
        match (self.usable_bubblewrap().is_some(), self.has_own_network()) {
            (true, true) => "bubblewrap with its own network, and Chromium's sandbox",
            (true, false) => "bubblewrap, and Chromium's sandbox",
            (false, _) => "Chromium's sandbox",
        }
    }

    /// Path of the installed browser.
    pub fn program(&self) -> Option<PathBuf> {
        self.0.program.clone()
    }

    /// Starts a browser with a fresh profile.
    pub async fn start(&self) -> Result<RunningBrowser, ToolError> {
        let program = self.program().ok_or_else(|| {
            ToolError::unavailable("Chromium is not installed.")
                .hint("Ask the operator to install it (Debian: apt install chromium), or use fetch_url and read_page.")
        })?;
        let grant = self.clone();
        let probe = tokio::task::spawn_blocking(move || grant.usable_bubblewrap());
        let wrapper = probe.await.map_err(ToolError::internal)?;
        let folder = BrowserDir::new(&self.0.spec.state).map_err(start_error)?;
        match self.launch(&program, wrapper.as_deref(), folder).await {
            Ok(launched) => Ok(launched),
            Err(error) => Err(start_error(error)),
        }
    }

    async fn launch(
        &self,
        program: &Path,
        wrapper: Option<&Path>,
        mut folder: BrowserDir,
    ) -> Result<RunningBrowser, Box<dyn std::error::Error + Send + Sync>> {
        let spec = &self.0.spec;
        let namespaced = wrapper.is_some() && self.has_own_network();
        // In its own namespace the port is always free; the proxy is added later.
        let shared = if namespaced { None } else { Some(Proxy::authenticated(spec.net.clone()).await?) };
        let address = shared.as_ref().map_or(namespace::PROXY_ADDRESS.to_owned(), Proxy::address);
        let mut argv = vec![OsString::from("/bin/sh"), "-c".into(), LAUNCH_SCRIPT.into(), "sh".into()];
        if let Some(wrapper) = wrapper {
            argv.push(wrapper.into());
            argv.extend(browser_sandbox::bubblewrap_args(program, &folder, namespaced));
        }
        argv.push(program.into());
        argv.extend(flags::flags(&folder, &address));
        let plan = LaunchPlan {
            argv,
            env: flags::environment(&spec.path, &folder, wrapper.is_some()),
            cwd: Cwd::Path("/".into()),
            bounds: ResourceLimits::default(),
            confine: ConfinementPlan::Nothing,
            // Chromium's own sandbox does not work for root.
            nobody: true,
            tty: false,
            scratch: Some(folder.path.clone().into()),
            proxy_port: None,
        };
        let (input, to_browser) = pipe_with(PipeFlags::CLOEXEC)?;
        let (from_browser, output) = pipe_with(PipeFlags::CLOEXEC)?;
        let (complaints, errors) = pipe_with(PipeFlags::CLOEXEC)?;
        let sandbox = if wrapper.is_some() { Sandbox::Bubblewrap } else { Sandbox::None };
        let running =
            start_launcher(&spec.launcher, &plan, Descriptors::new([input, output, errors]), sandbox).await?;
        folder.leave_to_launcher();
        let heard = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(collect_stderr(complaints, Arc::clone(&heard)));
        let proxy = match shared {
            Some(proxy) => proxy,
            None => Proxy::unauthenticated(
                namespace::listener(&heard, NAMESPACE_TIMEOUT).await?,
                spec.net.clone(),
            )?,
        };
        let pipes = (Sender::from_owned_fd(to_browser)?, Receiver::from_owned_fd(from_browser)?);
        let pipes = Mutex::new(Some(pipes));
        let watch = MemoryWatch::start(running.pid, MAX_PAGE_MEMORY_BYTES);
        Ok(RunningBrowser {
            running: Some(running),
            pipes,
            folder,
            proxy,
            net: spec.net.clone(),
            stderr: heard,
            _watch: watch,
        })
    }

    fn usable_bubblewrap(&self) -> Option<PathBuf> {
        let found = || {
            if self.0.spec.sandbox == BrowserSandbox::None {
                return None;
            }
            self.0.bubblewrap.clone().filter(|program| browser_sandbox::is_usable(program))
        };
        self.0.wrapper.get_or_init(found).clone()
    }

    /// Only root may place a socket of ours into another network namespace.
    fn has_own_network(&self) -> bool {
        self.0.spec.sandbox == BrowserSandbox::Auto && namespace::may_enter()
    }
}

/// Chromium expects its pipes at 3 and 4; bubblewrap reports its child process at 5.
const LAUNCH_SCRIPT: &str = r#"exec "$@" 3<&0 4>&1 5>&2 </dev/null >/dev/null"#;

fn start_error(error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The browser could not be started.")
        .hint("Try again; if it still fails, ask the operator to check the hub's log.")
        .detail(error)
}

/// Retains the beginning, which reports what bubblewrap created, and the end.
async fn collect_stderr(complaints: OwnedFd, heard: Arc<Mutex<Vec<u8>>>) {
    let Ok(mut complaints) = Receiver::from_owned_fd(complaints) else { return };
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = complaints.read(&mut buffer).await {
        let Ok(mut heard) = heard.lock() else { return };
        heard.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if heard.len() > 2 * MAX_STDERR_BYTES {
            let surplus = heard.len() - MAX_STDERR_BYTES;
            heard.drain(MAX_STDERR_BYTES / 2..MAX_STDERR_BYTES / 2 + surplus);
        }
    }
}

impl RunningBrowser {
    /// The pipes of the DevTools protocol: requests and replies, each message terminated by a NUL. Can be taken only
    /// once.
    pub fn pipes(&self) -> Result<(Sender, Receiver), ToolError> {
        let taken = self.pipes.lock().ok().and_then(|mut pipes| pipes.take());
        taken.ok_or_else(|| ToolError::internal("the browser's pipes have already been taken"))
    }

    /// Credentials for the proxy; `None` if no other process can reach it.
    pub fn credentials(&self) -> Option<ProxyCredentials> {
        self.proxy.credentials()
    }

    /// Parses a URL and checks its text, see [`Net::url`].
    pub fn url(&self, text: &str) -> Result<Url, ToolError> {
        self.net.url(text)
    }

    /// Returns why the proxy refused to connect to a host since then, if it did.
    pub fn refusal_since(&self, host: &str, port: u16, since: Instant) -> Option<ToolError> {
        self.proxy.refusal(host, port, since)
    }

    /// Directory for the downloads of one context, each named by its id.
    pub fn download_dir(&self, context: &str) -> Result<PathBuf, ToolError> {
        self.folder.download_dir(context).map_err(ToolError::internal)
    }

    /// Takes a downloaded file out of quarantine if it is at most `most` bytes.
    pub async fn take_download(&self, context: &str, id: &str, most: u64) -> Result<Vec<u8>, ToolError> {
        self.folder.take_download(context, id, most).await
    }

    /// Stages a file for upload and returns its path as the browser sees it.
    pub async fn stage_upload(&self, name: &str, bytes: Vec<u8>) -> Result<PathBuf, ToolError> {
        self.folder.stage_upload(name, bytes).await
    }

    /// PID of the main process, or of the sandbox around it.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().map_or(0, |running| running.pid)
    }

    /// Stderr output, for the log.
    pub fn stderr_text(&self) -> String {
        let heard = self.stderr.lock().map(|heard| heard.clone()).unwrap_or_default();
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Kills all its processes and waits until they and the profile are gone.
    pub async fn shut_down(mut self) {
        if let Some(running) = self.running.take() {
            running.kill_and_wait().await;
        }
    }
}

impl Grant for Chromium {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
