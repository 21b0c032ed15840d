//! The engine under the tools: Chromium over its DevTools protocol, sessions, tabs and what can be done to a page.
//!
//! An [`Engine`] holds at most one browser process, which is started by the first call and again after a crash. A
//! [`Session`] is a browser context of its own (cookies, storage), named by its caller; a [`Page`] is one of its tabs.

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

/// Sessions of one caller, and of all.
const MAX_SESSIONS_PER_CALLER: usize = 8;
const MAX_SESSIONS: usize = 32;

/// Sessions that nobody uses are closed after this long.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// All sessions of a hub. Cheap to clone; every tool of the toolbox has one.
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

/// Whose it is, and its name.
type SessionKey = (Principal, String);

/// A named browser context of one caller.
#[derive(Clone)]
pub struct Session(Arc<browser_context::SessionInner>);

/// Tells whether a session still lives, without keeping it, and one from another of the same name.
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

/// One tab. Cheap to clone.
#[derive(Clone)]
pub struct Page {
    /// None for a page that belongs to the engine itself.
    session: Option<Arc<browser_context::SessionInner>>,
    tab: Arc<tab::Tab>,
    browser: Arc<browser_process::BrowserProcess>,
}

/// A tab as it is listed; its index is its place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabInfo {
    /// Stays the same while the tab lives.
    pub id: String,
    pub url: String,
    pub title: String,
    pub active: bool,
}

/// Until when a navigation waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WaitUntil {
    Load,
    DomContentLoaded,
    /// No request for half a second after the page has loaded.
    #[default]
    NetworkIdle,
}

/// What became of a navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NavigationResult {
    pub url: String,
    pub title: String,
    /// Of the main document, when it came over HTTP.
    pub status: Option<u16>,
    /// False when the time was over before the page came to rest; it can be used all the same.
    pub complete: bool,
}

/// An element (or text) of a page, in whichever renderer it lives. Stays the same while the node lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// The DevTools session of its frame's process.
    pub session: Arc<str>,
    /// Chromium's `backendNodeId`, unique within the session's process.
    pub id: i64,
}

/// Where JavaScript runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum World {
    /// Sees the page's DOM but none of its variables, and the page sees none of ours.
    #[default]
    Isolated,
    /// The page's own.
    Main,
}

/// The accessibility tree of one frame.
#[derive(Debug, Clone)]
pub struct FrameTree {
    pub session: Arc<str>,
    pub frame: String,
    pub url: String,
    /// The element that holds the frame in its parent; none for the main frame, which comes first.
    pub owner: Option<Node>,
    pub nodes: Vec<AxNode>,
}

/// What the viewport shows of a page that is too large to be read whole: roles and names are guessed from the elements.
#[derive(Debug, Clone)]
pub struct ViewportSnapshot {
    pub tree: FrameTree,
    pub visible: Vec<Node>,
    pub clickable: Vec<Node>,
}

/// A node of an accessibility tree, as Chromium tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AxNode {
    pub id: String,
    pub parent: Option<String>,
    pub children: Vec<String>,
    /// Not of interest to assistive technology; its children may be.
    pub ignored: bool,
    pub role: String,
    pub name: String,
    pub value: Option<String>,
    pub description: Option<String>,
    /// Such as `focusable`, `checked`, `expanded`, `level`, `url`, `disabled`.
    pub properties: Vec<(String, Value)>,
    /// The element, when there is one: `Node { session, id }` with the tree's session.
    pub backend: Option<i64>,
}

/// In CSS pixels, relative to the top left corner of the viewport of the main frame.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// What a picture shows.
#[derive(Debug, Clone, PartialEq)]
pub enum CaptureArea {
    Viewport,
    FullPage,
    Element(Node),
}

/// How a picture is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ImageFormat {
    Png,
    /// With some loss, and smaller.
    Jpeg {
        quality: u32,
        scale: f64,
    },
}

/// In base64, as clients want it.
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

/// What is done with dialogs (`alert`, `confirm`, `prompt`, `beforeunload`), which stop the page until they are answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DialogPolicy {
    /// `alert` and `beforeunload` are accepted, `confirm` and `prompt` dismissed.
    #[default]
    AcceptAlerts,
    /// All are accepted, `prompt` with this text.
    Accept(Option<String>),
    Dismiss,
}

/// A dialog that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Counts up within a page.
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

/// A file that a page has sent. It lies in quarantine until [`Session::take_download`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    pub id: String,
    pub url: String,
    /// As the server names it: for people, never a path.
    pub name: String,
    pub bytes: u64,
    pub state: DownloadState,
}

/// A line of the console or an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    pub serial: u64,
    /// `log`, `info`, `warning`, `error`, `debug`, `exception`.
    pub level: String,
    pub text: String,
    /// `url:line`, where known.
    pub location: Option<String>,
}

/// A request that a page has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub serial: u64,
    /// Chromium's names for where it was made and for itself.
    session: Arc<str>,
    id: String,
    pub method: String,
    pub url: String,
    /// `Document`, `Script`, `XHR`, `Fetch`, `WebSocket` and so on.
    pub kind: String,
    pub status: Option<u16>,
    /// Why it failed, such as `net::ERR_ABORTED` or the refusal of the proxy.
    pub error: Option<String>,
    /// Bytes that came over the wire.
    pub bytes: u64,
    pub done: bool,
}

/// How a page came to rest after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleResult {
    /// False when the time was over first.
    pub quiet: bool,
    /// Whether the main frame went to another document meanwhile.
    pub navigated: bool,
    /// Whether a dialog came up (and was answered).
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

    /// One whose sessions are closed after this long without use.
    pub fn with_idle_timeout(idle: Duration) -> Self {
        Self(Arc::new(Inner { idle_timeout: idle, state: Mutex::default() }))
    }

    /// The caller's session of this name, which is made if there is none; the browser is started if none runs.
    pub async fn session(
        &self,
        chromium: &Chromium,
        caller: &Caller,
        name: &str,
    ) -> Result<Session, ToolError> {
        let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
            return Err(ToolError::invalid(
                "A session's name has 1 to 64 letters, digits, `-`, `_` and `.`.",
            )
            .hint("Leave it out for the session `default`."));
        }
        let mut running = self.0.state.lock().await;
        if running.browser.as_ref().is_some_and(|browser| !browser.is_alive()) {
            tracing::warn!("the browser has ended; a new one is started");
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
            return Err(ToolError::new(Kind::Conflict, "There are too many browser sessions.").hint(
                format!("Close one with browser_close, or use one that is there: {}.", own.join(", ")),
            ));
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

    /// The caller's session of this name, if there is one.
    #[cfg(test)]
    pub async fn existing(&self, caller: &Caller, name: &str) -> Option<Session> {
        let running = self.0.state.lock().await;
        let alive = running.browser.as_ref().is_some_and(|browser| browser.is_alive());
        running.sessions.get(&session_key(caller, name)).filter(|_| alive).cloned()
    }

    /// Closes a session with its tabs and forgets its cookies; false when there was none.
    pub async fn close(&self, caller: &Caller, name: &str) -> bool {
        let removed = self.0.state.lock().await.sessions.remove(&session_key(caller, name));
        // Without the lock: a browser that hangs must not keep others waiting.
        match removed {
            Some(session) => {
                session.0.close().await;
                true
            }
            None => false,
        }
    }
}

/// Closes sessions that nobody uses, and the browser when none has been left for as long.
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

/// What happened on it; rings that keep the newest 200.
impl Page {
    /// Dialogs with a serial above `after`.
    pub fn dialogs(&self, after: u64) -> Vec<Dialog> {
        self.tab.state().dialogs.after(after)
    }

    /// Lines with a serial above `after`.
    pub fn console(&self, after: u64) -> Vec<ConsoleLine> {
        self.tab.state().console.after(after)
    }

    /// How often the page has asked for files, and the field that it wants them for.
    pub fn file_chooser(&self) -> Option<(u64, Node)> {
        self.tab.state().file_chooser.clone()
    }

    /// Requests with a serial above `after`.
    pub fn requests(&self, after: u64) -> Vec<Request> {
        self.tab.state().requests.after(after)
    }
}
