//! A browser that can reach nothing but what the `Net` grant reaches for it.
//!
//! Chromium gets a fresh profile, a clean environment and one way out: a proxy of ours that dials through `Net`. Where
//! the hub may, it also gets a network namespace of its own in which that proxy is all there is. It is driven over a
//! pair of pipes, so no debugging port listens anywhere.

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

/// The names under which it is installed, the best first.
const PROGRAM_NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// How much of what it complains about is kept for the log.
const MAX_STDERR_BYTES: usize = 4_096;

/// Bytes that the pages of one renderer may use.
const MAX_PAGE_MEMORY_BYTES: u64 = 5 << 29;

/// How long bubblewrap may take to make its namespaces.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(10);

/// What surrounds the browser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BrowserSandbox {
    /// Bubblewrap where it works, with a network of its own where the hub may make one.
    #[default]
    Auto,
    /// Bubblewrap, on the network of the machine.
    SharedNetwork,
    /// Only what Chromium does for itself.
    None,
}

/// What the browser gets.
#[derive(Clone)]
pub struct ChromiumSpec {
    /// The search path of programs, without folders that tools can write ([`SearchPath::trusted`]).
    pub path: OsString,
    /// Folder of the hub's own data; profiles lie in it while a browser runs.
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
    /// Found once, in a search path where no tool can write.
    program: Option<PathBuf>,
    bubblewrap: Option<PathBuf>,
    /// Bubblewrap, when it is to be used and works. Found out when it is first needed.
    wrapper: OnceLock<Option<PathBuf>>,
}

/// How the browser is to be asked for by the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyCredentials {
    pub user: String,
    pub password: String,
    /// A page of the proxy's own: the browser learns the credentials there.
    pub page: &'static str,
}

/// A browser that runs. Dropping it ends every process of it and removes its profile.
pub struct RunningBrowser {
    running: Option<RunningProgram>,
    pipes: Mutex<Option<(Sender, Receiver)>>,
    folder: BrowserDir,
    proxy: Proxy,
    net: Net,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Ends with it.
    _watch: MemoryWatch,
}

impl Chromium {
    pub fn new(mut spec: ChromiumSpec) -> Result<Self, ToolError> {
        let state = std::fs::create_dir_all(&spec.state).and_then(|()| spec.state.canonicalize());
        spec.state = state.map_err(|error| {
            ToolError::unavailable("The hub's own folder cannot be used.")
                .hint("Ask the operator to make it writable to the hub.")
                .detail(error)
        })?;
        BrowserDir::sweep(&spec.state);
        let path = SearchPath::new(spec.path.clone(), Vec::new());
        let program = PROGRAM_NAMES.iter().find_map(|name| path.find(name));
        let bubblewrap = path.find("bwrap");
        Ok(Self(Arc::new(ChromiumState { spec, program, bubblewrap, wrapper: OnceLock::new() })))
    }

    /// What stands between pages and the machine, in words for the operator.
    pub fn sandbox(&self) -> &'static str {
        match (self.usable_bubblewrap().is_some(), self.has_own_network()) {
            (true, true) => "bubblewrap with its own network, and Chromium's sandbox",
            (true, false) => "bubblewrap, and Chromium's sandbox",
            (false, _) => "Chromium's sandbox",
        }
    }

    /// Where the browser is installed.
    pub fn program(&self) -> Option<PathBuf> {
        self.0.program.clone()
    }

    /// Starts a browser with a profile of its own.
    pub async fn start(&self) -> Result<RunningBrowser, ToolError> {
        let program = self.program().ok_or_else(|| {
            ToolError::unavailable("There is no Chromium on this machine.")
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
        // In a namespace of its own the port is always free; the proxy comes to it later.
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

    /// Only root may put a socket of ours into another namespace.
    fn has_own_network(&self) -> bool {
        self.0.spec.sandbox == BrowserSandbox::Auto && namespace::may_enter()
    }
}

/// Chromium wants its pipes at 3 and 4, and bubblewrap says at 5 which process it made.
const LAUNCH_SCRIPT: &str = r#"exec "$@" 3<&0 4>&1 5>&2 </dev/null >/dev/null"#;

fn start_error(error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The browser could not be started.")
        .hint("Try again; if it stays, ask the operator to look at the hub's log.")
        .detail(error)
}

/// Keeps the beginning, which says what bubblewrap made, and the end.
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
    /// The pipes of the DevTools protocol: what is written there and what comes back, each message ended by a NUL. They
    /// are given once.
    pub fn pipes(&self) -> Result<(Sender, Receiver), ToolError> {
        let taken = self.pipes.lock().ok().and_then(|mut pipes| pipes.take());
        taken.ok_or_else(|| ToolError::internal("the browser's pipes were taken already"))
    }

    /// What the browser must answer when the proxy asks; none where nobody else can reach the proxy.
    pub fn credentials(&self) -> Option<ProxyCredentials> {
        self.proxy.credentials()
    }

    /// A URL that may be asked for, as far as its text tells; see [`Net::url`].
    pub fn url(&self, text: &str) -> Result<Url, ToolError> {
        self.net.url(text)
    }

    /// Why the proxy has not connected to a host since then, if it was asked and did not.
    pub fn refusal_since(&self, host: &str, port: u16, since: Instant) -> Option<ToolError> {
        self.proxy.refusal(host, port, since)
    }

    /// Where the browser puts the files of one context that it downloads, each under the name of its number.
    pub fn download_dir(&self, context: &str) -> Result<PathBuf, ToolError> {
        self.folder.download_dir(context).map_err(ToolError::internal)
    }

    /// Takes a downloaded file out of the quarantine, if it is not larger than `most`.
    pub async fn take_download(&self, context: &str, id: &str, most: u64) -> Result<Vec<u8>, ToolError> {
        self.folder.take_download(context, id, most).await
    }

    /// Puts a file where the browser can read it, so that it can be uploaded, and gives its path there.
    pub async fn stage_upload(&self, name: &str, bytes: Vec<u8>) -> Result<PathBuf, ToolError> {
        self.folder.stage_upload(name, bytes).await
    }

    /// The number of its main process, or of the sandbox around it.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().map_or(0, |running| running.pid)
    }

    /// What it complained about, for the log.
    pub fn stderr_text(&self) -> String {
        let heard = self.stderr.lock().map(|heard| heard.clone()).unwrap_or_default();
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Ends every process of it and waits until they and the profile are gone.
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
