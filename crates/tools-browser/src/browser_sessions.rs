//! State shared by the tools: the engine, and per session the refs and what the caller has seen.

pub(crate) mod action_outcome;
pub(crate) mod element_target;
pub(crate) mod page_content;

use crate::BrowserSettings;
use crate::engine::{Engine, Page, Session, ViewportSnapshot, WeakSession, World};
use crate::sanitize;
use crate::snapshot::{FlatSnapshot, LayoutView, PageTree, Refs};
use octo_toolkit::{CallContext, Caller, Chromium, Kind, Principal, ToolError};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// Session of callers that name none.
const DEFAULT_SESSION: &str = "default";
/// Maximum length of a session name.
const MAX_SESSION_NAME_LEN: usize = 64;

type SessionKey = (Principal, String);

/// State of a session; dropped with it.
struct SessionEntry {
    session: WeakSession,
    state: Arc<tokio::sync::Mutex<SessionState>>,
}

/// All sessions of the toolbox; each tool has a clone.
#[derive(Clone)]
pub struct BrowserSessions(Arc<Inner>);

struct Inner {
    engine: Engine,
    settings: BrowserSettings,
    states: Mutex<HashMap<SessionKey, SessionEntry>>,
}

/// What a session has shown to its caller.
#[derive(Default)]
pub struct SessionState {
    pub refs: Refs,
    shown_pages: HashMap<String, ShownPage>,
    /// The page that was read last, with its fingerprint.
    last_read: Mutex<Option<(PageFingerprint, Arc<PageTree>)>>,
}

/// Inputs of the page tree that are cheap to read: elements, attributes, texts, boxes, values, focus. Reading the tree
/// itself takes most of the time.
#[derive(PartialEq)]
struct PageFingerprint {
    document: Arc<str>,
    layout: String,
    states: Value,
}

/// Maximum size of a stored layout.
const MAX_LAYOUT_BYTES: usize = 8 << 20;

/// Element states that neither attributes nor layout contain.
const ELEMENT_STATES_JS: &str = r"(() => {
    const states = [], roots = [document];
    for (let at = 0; at < roots.length; at++) {
        states.push([...roots[at].querySelectorAll('*')].indexOf(roots[at].activeElement));
        for (const e of roots[at].querySelectorAll('*')) if (e.shadowRoot) roots.push(e.shadowRoot);
    }
    for (const e of document.querySelectorAll('input,select,textarea,button,fieldset,object,output'))
        states.push((e.indeterminate ? 1 : 0) + (e.validity && !e.validity.valid ? 2 : 0) + (e.matches(':disabled') ? 4 : 0) + (e.validationMessage?.length ?? 0) * 8);
    return states.join();
})()";

/// What the caller has seen of a tab.
#[derive(Default, Clone)]
pub struct ShownPage {
    pub document: Arc<str>,
    pub title: String,
    pub flat: FlatSnapshot,
}

/// A session locked for one call; other calls of the session wait.
pub struct ActiveSession {
    pub session: Session,
    pub page: Page,
    pub state: OwnedMutexGuard<SessionState>,
}

/// Current state of a page.
pub struct PageState {
    pub tree: Arc<PageTree>,
    /// Tab and document, for refs.
    pub document: Arc<str>,
    pub url: String,
    pub title: String,
    /// Note for the caller.
    pub note: Option<String>,
}

impl BrowserSessions {
    pub fn new(engine: Engine, settings: BrowserSettings) -> Self {
        Self(Arc::new(Inner { engine, settings, states: Mutex::default() }))
    }

    /// Number of sessions with state.
    #[cfg(test)]
    pub fn session_count(&self) -> usize {
        self.states().len()
    }

    pub fn settings(&self) -> &BrowserSettings {
        &self.0.settings
    }

    /// Opens the caller's session, creating it if needed.
    pub async fn open(
        &self,
        chromium: &Chromium,
        name: Option<&str>,
        cx: &CallContext,
    ) -> Result<ActiveSession, ToolError> {
        let (session, memory) = self.acquire(chromium, name, cx).await?;
        let page = session.page().await?;
        Ok(ActiveSession { session, page, state: memory })
    }

    /// Opens the session for a call that leaves the page anyway and need not know that it has crashed.
    pub async fn open_ignoring_crash(
        &self,
        chromium: &Chromium,
        name: Option<&str>,
        cx: &CallContext,
    ) -> Result<ActiveSession, ToolError> {
        let (session, memory) = self.acquire(chromium, name, cx).await?;
        let page = session.page_ignoring_crash().await?;
        Ok(ActiveSession { session, page, state: memory })
    }

    /// Waits until no other call uses the session; recreates it if it was closed meanwhile.
    async fn acquire(
        &self,
        chromium: &Chromium,
        name: Option<&str>,
        cx: &CallContext,
    ) -> Result<(Session, OwnedMutexGuard<SessionState>), ToolError> {
        let name = session_name(name)?;
        loop {
            let session = self.0.engine.session(chromium, &cx.caller, name).await?;
            let memory = self.session_state(&cx.caller, name, &session).lock_owned().await;
            if session.is_open() {
                return Ok((session, memory));
            }
        }
    }

    /// Closes a session and drops its state; false if there was none.
    pub async fn close(&self, name: Option<&str>, cx: &CallContext) -> Result<bool, ToolError> {
        let name = session_name(name)?;
        let closed = self.0.engine.close(&cx.caller, name).await;
        self.states().remove(&session_key(&cx.caller, name));
        Ok(closed)
    }

    fn session_state(
        &self,
        caller: &Caller,
        name: &str,
        session: &Session,
    ) -> Arc<tokio::sync::Mutex<SessionState>> {
        let mut memories = self.states();
        let (key, life) = (session_key(caller, name), session.downgrade());
        if let Some(kept) = memories.get(&key).filter(|kept| kept.session == life) {
            return Arc::clone(&kept.state);
        }
        memories.retain(|_, kept| !kept.session.is_closed());
        let memory = Arc::default();
        memories.insert(key, SessionEntry { session: life, state: Arc::clone(&memory) });
        memory
    }

    fn states(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, SessionEntry>> {
        self.0.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn session_key(caller: &Caller, name: &str) -> SessionKey {
    (caller.principal.clone(), name.to_owned())
}

fn session_name(name: Option<&str>) -> Result<&str, ToolError> {
    let name = name.unwrap_or(DEFAULT_SESSION);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || name.len() > MAX_SESSION_NAME_LEN || !name.chars().all(plain) {
        return Err(ToolError::invalid("Invalid session name.")
            .hint("Use up to 64 letters, digits, `-` and `_`, or omit it."));
    }
    Ok(name)
}

impl ActiveSession {
    /// Reads the active tab. A page with an unchanged fingerprint is not read again.
    pub async fn page_state(&self) -> Result<PageState, ToolError> {
        self.page_state_with(true).await
    }

    /// Reads the active tab even if it is unchanged.
    pub async fn fresh_page_state(&self) -> Result<PageState, ToolError> {
        self.page_state_with(false).await
    }

    async fn page_state_with(&self, reuse: bool) -> Result<PageState, ToolError> {
        if let Some(nodes) = self.page.oversized_node_count().await? {
            return self.viewport_state(nodes).await;
        }
        let document = self.document_key();
        let may_reuse = reuse && self.last_read().as_ref().is_some_and(|(then, _)| then.document == document);
        if may_reuse {
            let (now, place) = tokio::join!(self.fingerprint(), self.page.location());
            let known = self
                .last_read()
                .as_ref()
                .filter(|(then, _)| now.as_ref() == Some(then))
                .map(|(_, tree)| Arc::clone(tree));
            if let Some(tree) = known {
                return Ok(self.build_page_state(tree, place?, None));
            }
        }
        self.read_page_state().await
    }

    fn last_read(&self) -> std::sync::MutexGuard<'_, Option<(PageFingerprint, Arc<PageTree>)>> {
        self.state.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fingerprint of the page; None if it would be incomplete.
    async fn fingerprint(&self) -> Option<PageFingerprint> {
        let page = &self.page;
        let document = self.document_key();
        let states = page.evaluate(ELEMENT_STATES_JS, World::Isolated, Duration::from_secs(2));
        let (layout, states) = tokio::join!(page.layout_snapshot(), states);
        Some(PageFingerprint { document, layout: layout.ok()?, states: states.ok()? })
    }

    /// Reads the page.
    async fn read_page_state(&self) -> Result<PageState, ToolError> {
        let page = &self.page;
        // The fingerprint is taken first: a change in between makes the next call read the page again.
        let (now, frames, size, place) =
            tokio::join!(self.fingerprint(), page.ax_trees(), page.viewport(), page.location());
        let frames = match frames {
            Err(error) if error.kind == Kind::TooLarge => return self.viewport_state(0).await,
            frames => frames?,
        };
        // Without a layout nothing counts as visible, and document order is used.
        let layout = now.as_ref().and_then(|now| serde_json::from_str::<Value>(&now.layout).ok());
        let view = match (layout, size, frames.first()) {
            (Some(layout), Ok(size), Some(main)) => {
                LayoutView::from_dom_snapshot(&layout, &main.session, size)
            }
            _ => LayoutView::default(),
        };
        let tree = Arc::new(PageTree::from_frames(&frames, &view));
        let whole = page.has_single_frame();
        let now = now.filter(|now| {
            whole && now.layout.len() <= MAX_LAYOUT_BYTES && now.document == self.document_key()
        });
        *self.last_read() = now.map(|now| (now, Arc::clone(&tree)));
        Ok(self.build_page_state(tree, place?, None))
    }

    fn document_key(&self) -> Arc<str> {
        format!("{}/{}", self.page.id(), self.page.document()).into()
    }

    /// State of a page that is too large to read: only what the viewport shows.
    async fn viewport_state(&self, nodes: u64) -> Result<PageState, ToolError> {
        let (glance, place) = tokio::join!(self.page.viewport_snapshot(), self.page.location());
        let ViewportSnapshot { tree, visible: shown, clickable } = glance?;
        let (shown, clickable) = (shown.into_iter().collect(), clickable.into_iter().collect());
        let view = LayoutView { visible: shown, clickable, ..LayoutView::default() };
        let size = if nodes > 0 { format!(" ({nodes} nodes)") } else { String::new() };
        let note = format!(
            "The page is too large to read completely{size}: only elements in the viewport are listed, with inferred \
             names. Use browser_scroll to see more; a selector or browser_execute_js finds the rest."
        );
        Ok(self.build_page_state(Arc::new(PageTree::from_frames(&[tree], &view)), place?, Some(note)))
    }

    fn build_page_state(
        &self,
        tree: Arc<PageTree>,
        (url, title): (String, String),
        note: Option<String>,
    ) -> PageState {
        PageState {
            tree,
            document: self.document_key(),
            url: sanitize::single_line(&url),
            title: sanitize::truncate(&sanitize::single_line(&title), 200),
            note,
        }
    }

    pub fn shown_page(&self) -> Option<&ShownPage> {
        self.state.shown_pages.get(self.page.id())
    }

    /// Records what the caller was shown, to report changes later.
    pub fn record_shown(&mut self, page_state: &PageState) {
        let flat = crate::snapshot::flatten(&page_state.tree, &page_state.document);
        let (document, title) = (Arc::clone(&page_state.document), page_state.title.clone());
        let id = self.page.id().to_owned();
        self.state.shown_pages.insert(id, ShownPage { document, title, flat });
        self.state.refs.evict_oldest();
    }

    /// Drops the state of closed tabs.
    pub fn retain_tabs(&mut self, open: &[String]) {
        self.state.shown_pages.retain(|id, _| open.contains(id));
    }
}
