//! What the tools share: the engine, and per session the refs and what the caller has seen.

use crate::Settings;
use crate::clean;
use crate::engine::{Engine, Glance, Life, Page, Session, World};
use crate::snapshot::{Flat, Refs, Tree, View};
use octo_toolkit::{CallContext, Caller, Chromium, Kind, Principal, ToolError};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// Session of callers that name none.
const USUAL: &str = "default";
/// Letters of a session's name.
const LONGEST: usize = 64;

type Key = (Principal, String);

/// A session's memory ends with it.
struct Kept {
    life: Life,
    memory: Arc<tokio::sync::Mutex<Memory>>,
}

/// Every tool of the toolbox has one.
#[derive(Clone)]
pub struct Browser(Arc<Inner>);

struct Inner {
    engine: Engine,
    settings: Settings,
    memories: Mutex<HashMap<Key, Kept>>,
}

/// What a session has shown to its caller.
#[derive(Default)]
pub struct Memory {
    pub refs: Refs,
    pages: HashMap<String, Seen>,
    /// The page that was read last, and what it looked like then.
    last: Mutex<Option<(Appearance, Arc<Tree>)>>,
}

/// All that the tree of a page depends on and that is quick to ask for: elements, attributes, texts, boxes, values, focus. Most of
/// the time of a look goes into the tree itself.
#[derive(PartialEq)]
struct Appearance {
    document: Arc<str>,
    layout: String,
    states: Value,
}

/// A longer layout is not kept.
const MAX_LAYOUT: usize = 8 << 20;

/// What elements are in that neither attributes nor layout tell.
const STATES: &str = r"(() => {
    const states = [], roots = [document];
    for (let at = 0; at < roots.length; at++) {
        states.push([...roots[at].querySelectorAll('*')].indexOf(roots[at].activeElement));
        for (const e of roots[at].querySelectorAll('*')) if (e.shadowRoot) roots.push(e.shadowRoot);
    }
    for (const e of document.querySelectorAll('input,select,textarea,button,fieldset,object,output'))
        states.push((e.indeterminate ? 1 : 0) + (e.validity && !e.validity.valid ? 2 : 0) + (e.matches(':disabled') ? 4 : 0) + (e.validationMessage?.length ?? 0) * 8);
    return states.join();
})()";

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
    pub tree: Arc<Tree>,
    /// Tab and document, for refs.
    pub document: Arc<str>,
    pub url: String,
    pub title: String,
    /// What the caller must know of it.
    pub note: Option<String>,
}

impl Browser {
    pub fn new(engine: Engine, settings: Settings) -> Self {
        Self(Arc::new(Inner { engine, settings, memories: Mutex::default() }))
    }

    /// How many sessions are remembered.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.memories().len()
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The caller's session, which is made if there is none.
    pub async fn open(
        &self,
        chromium: &Chromium,
        name: Option<&str>,
        cx: &CallContext,
    ) -> Result<Open, ToolError> {
        let (session, memory) = self.hold(chromium, name, cx).await?;
        let page = session.page().await?;
        Ok(Open { session, page, memory })
    }

    /// The same for who leaves the page anyway, and need not be told that it has crashed.
    pub async fn open_anew(
        &self,
        chromium: &Chromium,
        name: Option<&str>,
        cx: &CallContext,
    ) -> Result<Open, ToolError> {
        let (session, memory) = self.hold(chromium, name, cx).await?;
        let page = session.page_anew().await?;
        Ok(Open { session, page, memory })
    }

    /// Waits until no other call uses the session; one that was closed meanwhile is made again.
    async fn hold(
        &self,
        chromium: &Chromium,
        name: Option<&str>,
        cx: &CallContext,
    ) -> Result<(Session, OwnedMutexGuard<Memory>), ToolError> {
        let name = named(name)?;
        loop {
            let session = self.0.engine.session(chromium, &cx.caller, name).await?;
            let memory = self.memory(&cx.caller, name, &session).lock_owned().await;
            if session.is_open() {
                return Ok((session, memory));
            }
        }
    }

    /// Closes a session and forgets all of it; false when there was none.
    pub async fn close(&self, name: Option<&str>, cx: &CallContext) -> Result<bool, ToolError> {
        let name = named(name)?;
        let closed = self.0.engine.close(&cx.caller, name).await;
        self.memories().remove(&key(&cx.caller, name));
        Ok(closed)
    }

    fn memory(&self, caller: &Caller, name: &str, session: &Session) -> Arc<tokio::sync::Mutex<Memory>> {
        let mut memories = self.memories();
        let (key, life) = (key(caller, name), session.life());
        if let Some(kept) = memories.get(&key).filter(|kept| kept.life == life) {
            return Arc::clone(&kept.memory);
        }
        memories.retain(|_, kept| !kept.life.is_over());
        let memory = Arc::default();
        memories.insert(key, Kept { life, memory: Arc::clone(&memory) });
        memory
    }

    fn memories(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Kept>> {
        self.0.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(caller: &Caller, name: &str) -> Key {
    (caller.principal.clone(), name.to_owned())
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
    /// Looks at the active tab. A page that looks as it did the last time is not read again.
    pub async fn look(&self) -> Result<Look, ToolError> {
        self.look_at(true).await
    }

    /// Reads the active tab, whether it looks different or not.
    pub async fn look_anew(&self) -> Result<Look, ToolError> {
        self.look_at(false).await
    }

    async fn look_at(&self, reuse: bool) -> Result<Look, ToolError> {
        if let Some(nodes) = self.page.heavy().await? {
            return self.glance(nodes).await;
        }
        let document = self.document();
        let may_be_known = reuse && self.last().as_ref().is_some_and(|(then, _)| then.document == document);
        if may_be_known {
            let (now, place) = tokio::join!(self.appearance(), self.page.location());
            let known = self
                .last()
                .as_ref()
                .filter(|(then, _)| now.as_ref() == Some(then))
                .map(|(_, tree)| Arc::clone(tree));
            if let Some(tree) = known {
                return Ok(self.looked(tree, place?, None));
            }
        }
        self.read().await
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(Appearance, Arc<Tree>)>> {
        self.memory.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the page looks now; none when that does not tell all.
    async fn appearance(&self) -> Option<Appearance> {
        let page = &self.page;
        let document = self.document();
        let states = page.evaluate(STATES, World::Isolated, Duration::from_secs(2));
        let (layout, states) = tokio::join!(page.layout(), states);
        Some(Appearance { document, layout: layout.ok()?, states: states.ok()? })
    }

    /// Reads the page.
    async fn read(&self) -> Result<Look, ToolError> {
        let page = &self.page;
        // How it looks is asked first: a change between the two makes the next look read again.
        let (now, frames, size, place) =
            tokio::join!(self.appearance(), page.ax_trees(), page.viewport(), page.location());
        let frames = match frames {
            Err(error) if error.kind == Kind::TooLarge => return self.glance(0).await,
            frames => frames?,
        };
        // Without a layout all is taken as not shown: the order of the page counts then.
        let layout = now.as_ref().and_then(|now| serde_json::from_str::<Value>(&now.layout).ok());
        let view = match (layout, size, frames.first()) {
            (Some(layout), Ok(size), Some(main)) => View::of(&layout, &main.session, size),
            _ => View::default(),
        };
        let tree = Arc::new(Tree::of(&frames, &view));
        let whole = page.is_one_document();
        let now =
            now.filter(|now| whole && now.layout.len() <= MAX_LAYOUT && now.document == self.document());
        *self.last() = now.map(|now| (now, Arc::clone(&tree)));
        Ok(self.looked(tree, place?, None))
    }

    fn document(&self) -> Arc<str> {
        format!("{}/{}", self.page.id(), self.page.document()).into()
    }

    /// A page that is too large to be read whole, as far as the viewport shows it.
    async fn glance(&self, nodes: u64) -> Result<Look, ToolError> {
        let (glance, place) = tokio::join!(self.page.glance(), self.page.location());
        let Glance { tree, shown, clickable } = glance?;
        let (shown, clickable) = (shown.into_iter().collect(), clickable.into_iter().collect());
        let view = View { shown, clickable, ..View::default() };
        let size = if nodes > 0 { format!(" ({nodes} nodes)") } else { String::new() };
        let note = format!(
            "The page is too large to be read whole{size}: only what the viewport shows is listed, with names that are \
             guessed. browser_scroll goes further; a selector or browser_execute_js finds the rest."
        );
        Ok(self.looked(Arc::new(Tree::of(&[tree], &view)), place?, Some(note)))
    }

    fn looked(&self, tree: Arc<Tree>, (url, title): (String, String), note: Option<String>) -> Look {
        Look {
            tree,
            document: self.document(),
            url: clean::line(&url),
            title: clean::cut(&clean::line(&title), 200),
            note,
        }
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
