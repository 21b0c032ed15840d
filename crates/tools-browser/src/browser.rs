//! What the tools share: the engine, and per session the refs and what the caller has seen.

use crate::Settings;
use crate::clean;
use crate::engine::{Engine, Page, Session};
use crate::snapshot::{Flat, Refs, Tree, View};
use octo_toolkit::{Caller, Chromium, Cx, ToolError};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Session of callers that name none.
const USUAL: &str = "default";
/// Letters of a session's name.
const LONGEST: usize = 64;

type Memories = HashMap<(String, String, String), Arc<tokio::sync::Mutex<Memory>>>;

/// Every tool of the toolbox has one.
#[derive(Clone)]
pub struct Browser(Arc<Inner>);

struct Inner {
    engine: Engine,
    settings: Settings,
    memories: Mutex<Memories>,
}

/// What a session has shown to its caller.
#[derive(Default)]
pub struct Memory {
    pub refs: Refs,
    pages: HashMap<String, Seen>,
}

/// What the caller knows of a tab.
#[derive(Default, Clone)]
pub struct Seen {
    pub document: Arc<str>,
    pub title: String,
    pub flat: Flat,
}

/// A session that is at work for one call; others of the same session wait.
pub struct Open {
    pub session: Session,
    pub page: Page,
    pub memory: OwnedMutexGuard<Memory>,
}

/// A page as it is now.
pub struct Look {
    pub tree: Tree,
    /// Tab and document, for refs.
    pub document: Arc<str>,
    pub url: String,
    pub title: String,
}

impl Browser {
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Inner { engine: Engine::new(), settings, memories: Mutex::default() }))
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The caller's session, which is made if there is none.
    pub async fn open(&self, chromium: &Chromium, name: Option<&str>, cx: &Cx) -> Result<Open, ToolError> {
        let name = named(name)?;
        let memory = self.memory(&cx.caller, name).lock_owned().await;
        let session = self.0.engine.session(chromium, &cx.caller, name).await?;
        let page = session.page().await?;
        Ok(Open { session, page, memory })
    }

    /// Closes a session and forgets all of it; false when there was none.
    pub async fn close(&self, name: Option<&str>, cx: &Cx) -> Result<bool, ToolError> {
        let name = named(name)?;
        let closed = self.0.engine.close(&cx.caller, name).await;
        self.memories().remove(&key(&cx.caller, name));
        Ok(closed)
    }

    fn memory(&self, caller: &Caller, name: &str) -> Arc<tokio::sync::Mutex<Memory>> {
        Arc::clone(self.memories().entry(key(caller, name)).or_default())
    }

    fn memories(&self) -> std::sync::MutexGuard<'_, Memories> {
        self.0.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(caller: &Caller, name: &str) -> (String, String, String) {
    (caller.tenant.clone(), caller.subject.clone(), name.to_owned())
}

fn named(name: Option<&str>) -> Result<&str, ToolError> {
    let name = name.unwrap_or(USUAL);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || name.len() > LONGEST || !name.chars().all(plain) {
        return Err(ToolError::invalid("The session's name is not one.")
            .hint("Use up to 64 letters, digits, `-` and `_`, or leave it out."));
    }
    Ok(name)
}

impl Open {
    /// Looks at the active tab.
    pub async fn look(&self) -> Result<Look, ToolError> {
        let page = &self.page;
        let layout = page.cdp("DOMSnapshot.captureSnapshot", json!({"computedStyles": []}));
        let (frames, layout, size, place) =
            tokio::join!(page.ax_trees(), layout, page.viewport(), page.location());
        let (frames, (url, title)) = (frames?, place?);
        // Without a layout all is taken as not shown: the order of the page counts then.
        let view = match (layout, size, frames.first()) {
            (Ok(layout), Ok(size), Some(main)) => View::of(&layout, &main.session, size),
            _ => View::default(),
        };
        let document = format!("{}/{}", page.id(), page.document()).into();
        let tree = Tree::of(&frames, &view);
        Ok(Look { tree, document, url: clean::line(&url), title: clean::cut(&clean::line(&title), 200) })
    }

    pub fn seen(&self) -> Option<&Seen> {
        self.memory.pages.get(self.page.id())
    }

    /// Remembers what the caller was shown, to say later what has changed.
    pub fn remember(&mut self, look: &Look) {
        let flat = crate::snapshot::flat(&look.tree, &look.document);
        let (document, title) = (Arc::clone(&look.document), look.title.clone());
        let id = self.page.id().to_owned();
        self.memory.pages.insert(id, Seen { document, title, flat });
        self.memory.refs.trim();
    }

    /// Lets go of tabs that are closed.
    pub fn forget_others(&mut self, open: &[String]) {
        self.memory.pages.retain(|id, _| open.contains(id));
    }
}
