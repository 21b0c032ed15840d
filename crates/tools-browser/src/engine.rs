//! Browser engine: Chromium over the DevTools protocol, sessions, tabs and page actions.
//!
//! An [`Engine`] has at most one browser process, started by the first call and restarted after a crash. A [`Session`]
//! is a separate browser context (cookies, storage), named by its caller; a [`Page`] is one of its tabs.

mod accessibility;
mod actionability;
mod browser_context;
mod browser_process;
mod cdp_call;
mod cdp_connection;
mod css_query;
mod drag_and_drop;
mod geometry;
mod keyboard;
mod navigation;
mod page_input;
mod request_bodies;
mod ring_buffer;
mod screenshot_capture;
mod script_eval;
mod tab;
#[cfg(test)]
mod tests;
mod url_scheme;
mod viewport_snapshot;

pub use drag_and_drop::DropTarget;
use octo_toolkit::{Caller, Chromium, Kind, Principal, ToolError};
pub use request_bodies::{RequestBodies, ResponseBody};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Maximum sessions per caller, and in total.
const MAX_SESSIONS_PER_CALLER: usize = 8;
const MAX_SESSIONS: usize = 32;

/// Idle sessions are closed after this time.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// All browser sessions of a hub. Cheap to clone; every tool of the toolbox has one.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    idle_timeout: Duration,
    state: Mutex<EngineState>,
}

#[derive(Default)]
struct EngineState {
    browser: Option<Arc<browser_process::BrowserProcess>>,
    sessions: HashMap<SessionKey, Session>,
}

/// Owner and name.
type SessionKey = (Principal, String);

/// A named browser context of one caller.
#[derive(Clone)]
pub struct Session(Arc<browser_context::SessionInner>);

/// Weak handle that tells whether a session is alive and distinguishes sessions of the same name.
#[derive(Clone)]
pub struct WeakSession(Weak<browser_context::SessionInner>);

impl PartialEq for WeakSession {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl WeakSession {
    pub fn is_closed(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// A tab. Cheap to clone.
#[derive(Clone)]
pub struct Page {
    /// None for a page that belongs to the engine itself.
    session: Option<Arc<browser_context::SessionInner>>,
    tab: Arc<tab::Tab>,
    browser: Arc<browser_process::BrowserProcess>,
}

/// Entry of the tab list; its index is its position in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabInfo {
    /// Stable for the lifetime of the tab.
    pub id: String,
    pub url: String,
    pub title: String,
    pub active: bool,
}

/// Condition that ends a navigation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WaitUntil {
    Load,
    DomContentLoaded,
    /// No request for half a second after the page has loaded.
    #[default]
    NetworkIdle,
}

/// Result of a navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NavigationResult {
    pub url: String,
    pub title: String,
    /// Status of the main document, if loaded over HTTP.
    pub status: Option<u16>,
    /// False if the page had not settled at the timeout; it can be used anyway.
    pub complete: bool,
}

/// An element or text node of a page, in any renderer. Stable for the lifetime of the node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// DevTools session of its frame's process.
    pub session: Arc<str>,
    /// Chromium's `backendNodeId`, unique within the session's process.
    pub id: i64,
}

/// JavaScript world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum World {
    /// Shares the DOM with the page, but no variables in either direction.
    #[default]
    Isolated,
    /// The page's own world.
    Main,
}

/// Accessibility tree of one frame.
#[derive(Debug, Clone)]
pub struct FrameTree {
    pub session: Arc<str>,
    pub frame: String,
    pub url: String,
    /// The element that contains the frame in its parent; None for the main frame, which comes first.
    pub owner: Option<Node>,
    pub nodes: Vec<AxNode>,
}

/// Viewport of a page that is too large to read completely; roles and names are inferred from the elements.
#[derive(Debug, Clone)]
pub struct ViewportSnapshot {
    pub tree: FrameTree,
    pub visible: Vec<Node>,
    pub clickable: Vec<Node>,
}

/// Node of an accessibility tree, as reported by Chromium.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AxNode {
    pub id: String,
    pub parent: Option<String>,
    pub children: Vec<String>,
    /// Not relevant to assistive technology; its children may be.
    pub ignored: bool,
    pub role: String,
    pub name: String,
    pub value: Option<String>,
    pub description: Option<String>,
    /// Such as `focusable`, `checked`, `expanded`, `level`, `url`, `disabled`.
    pub properties: Vec<(String, Value)>,
    /// The element, if there is one: `Node { session, id }` with the tree's session.
    pub backend: Option<i64>,
}

/// Rectangle in CSS pixels, relative to the top left corner of the main frame's viewport.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// Area of a screenshot.
#[derive(Debug, Clone, PartialEq)]
pub enum CaptureArea {
    Viewport,
    FullPage,
    Element(Node),
}

/// Format of a screenshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ImageFormat {
    Png,
    /// Lossy and smaller.
    Jpeg {
        quality: u32,
        scale: f64,
    },
}

/// Base64-encoded, as clients expect it.
#[derive(Debug, Clone)]
pub struct CapturedImage {
    pub base64: String,
    pub width: u32,
    pub height: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Button {
    #[default]
    Left,
    Right,
}

/// Handling of dialogs (`alert`, `confirm`, `prompt`, `beforeunload`), which block the page until they are answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DialogPolicy {
    /// Accepts `alert` and `beforeunload`, dismisses `confirm` and `prompt`.
    #[default]
    AcceptAlerts,
    /// Accepts all, `prompt` with this text.
    Accept(Option<String>),
    Dismiss,
}

/// A dialog that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Increases within a page.
    pub serial: u64,
    pub kind: String,
    pub message: String,
    pub accepted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadState {
    Running,
    Complete,
    Cancelled,
}

/// A downloaded file. It stays in quarantine until [`Session::take_download`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    pub id: String,
    pub url: String,
    /// File name suggested by the server: for display, never a path.
    pub name: String,
    pub bytes: u64,
    pub state: DownloadState,
}

/// A console line or an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    pub serial: u64,
    /// `log`, `info`, `warning`, `error`, `debug`, `exception`.
    pub level: String,
    pub text: String,
    /// `url:line`, if known.
    pub location: Option<String>,
}

/// A request made by a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub serial: u64,
    /// Chromium's ids of the session and of the request.
    session: Arc<str>,
    id: String,
    pub method: String,
    pub url: String,
    /// `Document`, `Script`, `XHR`, `Fetch`, `WebSocket` and so on.
    pub kind: String,
    pub status: Option<u16>,
    /// Failure, such as `net::ERR_ABORTED` or the refusal of the proxy.
    pub error: Option<String>,
    /// Bytes received over the network.
    pub bytes: u64,
    pub done: bool,
}

/// Result of waiting for a page to settle after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleResult {
    /// False if the timeout came first.
    pub quiet: bool,
    /// Whether the main frame navigated to another document meanwhile.
    pub navigated: bool,
    /// Whether a dialog was opened (and answered).
    pub dialog: bool,
}

fn session_key(caller: &Caller, name: &str) -> SessionKey {
    (caller.principal.clone(), name.to_owned())
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    pub fn new() -> Self {
        Self::with_idle_timeout(SESSION_IDLE_TIMEOUT)
    }

    /// Creates an engine that closes sessions after this idle time.
    pub fn with_idle_timeout(idle: Duration) -> Self {
        Self(Arc::new(Inner { idle_timeout: idle, state: Mutex::default() }))
    }

    /// The caller's session of this name, created if needed; starts the browser if none is running.
    pub async fn session(
        &self,
        chromium: &Chromium,
        caller: &Caller,
        name: &str,
    ) -> Result<Session, ToolError> {
        let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
            return Err(ToolError::invalid(
                "A session name must be 1 to 64 letters, digits, `-`, `_` or `.`.",
            )
            .hint("Omit it for the session `default`."));
        }
        let mut running = self.0.state.lock().await;
        if running.browser.as_ref().is_some_and(|browser| !browser.is_alive()) {
            tracing::warn!("the browser has exited; starting a new one");
            *running = EngineState::default();
        }
        let key = session_key(caller, name);
        if let Some(session) = running.sessions.get(&key) {
            session.0.touch();
            return Ok(session.clone());
        }
        let own = running.sessions.keys().filter(|other| (&other.0, &other.1) == (&key.0, &key.1));
        let own: Vec<&str> = own.map(|(.., name)| name.as_str()).collect();
        if own.len() >= MAX_SESSIONS_PER_CALLER || running.sessions.len() >= MAX_SESSIONS {
            return Err(ToolError::new(Kind::Conflict, "Too many browser sessions.")
                .hint(format!("Close one with browser_close, or use an existing one: {}.", own.join(", "))));
        }
        let browser = match &running.browser {
            Some(browser) => Arc::clone(browser),
            None => {
                let browser = browser_process::BrowserProcess::start(chromium).await?;
                tokio::spawn(close_idle_sessions(Arc::downgrade(&self.0), Arc::downgrade(&browser)));
                running.browser = Some(Arc::clone(&browser));
                browser
            }
        };
        let session = Session(Arc::new(browser_context::SessionInner::new(browser).await?));
        running.sessions.insert(key, session.clone());
        Ok(session)
    }

    /// The caller's session of this name, if it exists.
    #[cfg(test)]
    pub async fn existing(&self, caller: &Caller, name: &str) -> Option<Session> {
        let running = self.0.state.lock().await;
        let alive = running.browser.as_ref().is_some_and(|browser| browser.is_alive());
        running.sessions.get(&session_key(caller, name)).filter(|_| alive).cloned()
    }

    /// Closes a session with its tabs and drops its cookies; false if there was none.
    pub async fn close(&self, caller: &Caller, name: &str) -> bool {
        let removed = self.0.state.lock().await.sessions.remove(&session_key(caller, name));
        // Without the lock: a browser that hangs must not block other callers.
        match removed {
            Some(session) => {
                session.0.close().await;
                true
            }
            None => false,
        }
    }
}

/// Closes idle sessions, and the browser if there has been no session for the idle time.
async fn close_idle_sessions(engine: Weak<Inner>, browser: Weak<browser_process::BrowserProcess>) {
    let mut empty_since: Option<Instant> = None;
    loop {
        let Some(idle) = engine.upgrade().map(|inner| inner.idle_timeout) else { return };
        tokio::time::sleep((idle / 10).max(Duration::from_millis(50))).await;
        let (Some(inner), Some(browser)) = (engine.upgrade(), browser.upgrade()) else { return };
        let expired: Vec<Session> = {
            let mut running = inner.state.lock().await;
            if !running.browser.as_ref().is_some_and(|current| Arc::ptr_eq(current, &browser)) {
                return;
            }
            let expired: Vec<_> =
                running.sessions.extract_if(|_, session| session.0.idle_time() > idle).collect();
            if !expired.is_empty() && running.sessions.is_empty() {
                running.browser = None;
            }
            if !running.sessions.is_empty() {
                empty_since = None;
            } else if empty_since.get_or_insert_with(Instant::now).elapsed() > idle {
                running.browser = None;
            }
            expired.into_iter().map(|(_, session)| session).collect()
        };
        for session in expired {
            session.0.close().await;
        }
    }
}

/// Recorded events; ring buffers of the newest 200.
impl Page {
    /// Dialogs with a serial above `after`.
    pub fn dialogs(&self, after: u64) -> Vec<Dialog> {
        self.tab.state().dialogs.after(after)
    }

    /// Lines with a serial above `after`.
    pub fn console(&self, after: u64) -> Vec<ConsoleLine> {
        self.tab.state().console.after(after)
    }

    /// How often the page has requested files, and the field of the last request.
    pub fn file_chooser(&self) -> Option<(u64, Node)> {
        self.tab.state().file_chooser.clone()
    }

    /// Requests with a serial above `after`.
    pub fn requests(&self, after: u64) -> Vec<Request> {
        self.tab.state().requests.after(after)
    }
}
