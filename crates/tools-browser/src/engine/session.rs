//! Sessions: browser contexts with their tabs and downloads.

use super::browser::{Browser, TABS};
use super::tab::{Gone, Tab};
use super::{DialogPolicy, Download, DownloadState, Life, Page, Session, TabInfo, WaitUntil};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How many downloads are remembered.
const DOWNLOADS: usize = 50;
/// A download that grows beyond this is cancelled.
const LARGEST_DOWNLOAD: u64 = 100 << 20;
/// All that waits to be taken has no more bytes than this.
const ALL_DOWNLOADS: u64 = 500 << 20;
/// How long a tab may take to open.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the browser's events know of a session.
pub(super) struct Context {
    pub id: String,
    inside: Mutex<Inside>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct Inside {
    tabs: Vec<Arc<Tab>>,
    /// Of the active tab.
    active: String,
    /// The tab that was last brought to the front.
    front: String,
    downloads: VecDeque<Download>,
    policy: DialogPolicy,
    /// Why the active tab is no more, until its caller was told.
    lost: Option<Gone>,
}

impl Context {
    fn new(id: String) -> Self {
        Self { id, inside: Mutex::default(), changed: watch::Sender::new(0) }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn change<T>(&self, with: impl FnOnce(&mut Inside) -> T) -> T {
        let result = with(&mut self.inside());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    pub fn policy(&self) -> DialogPolicy {
        self.inside().policy.clone()
    }

    /// False when there are too many tabs.
    pub fn add(&self, tab: Arc<Tab>) -> bool {
        self.change(|inside| {
            let room = inside.tabs.len() < TABS;
            if room {
                inside.active.clone_from(&tab.id);
                // Chromium shows a new tab in front.
                inside.front.clone_from(&tab.id);
                inside.tabs.push(tab);
            }
            room
        })
    }

    pub fn forget(&self, tab: &str) {
        self.change(|inside| {
            let Some(at) = inside.tabs.iter().position(|known| known.id == tab) else { return };
            let removed = inside.tabs.remove(at);
            if inside.active == tab {
                inside.lost = inside.lost.or(removed.state().gone.filter(|why| *why != Gone::Closed));
                let next = inside.tabs.get(at.saturating_sub(1)).map(|tab| tab.id.clone());
                inside.active = next.unwrap_or_default();
            }
        });
    }

    pub fn has_frame(&self, frame: &str) -> bool {
        self.inside().tabs.iter().any(|tab| tab.id == frame || tab.state().frames.contains_key(frame))
    }

    /// Why the active tab is no more, if that was not said yet.
    fn lost(&self) -> Option<Gone> {
        let crashed = {
            let inside = self.inside();
            let active = inside.tabs.iter().find(|tab| tab.id == inside.active);
            active.filter(|tab| tab.state().gone.is_some_and(|why| why != Gone::Closed)).cloned()
        };
        if let Some(tab) = crashed {
            tab.wire.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
            self.forget(&tab.id);
        }
        self.change(|inside| inside.lost.take())
    }

    /// False when there is no room for another one, until some are taken.
    pub fn download(&self, id: String, url: String, name: String) -> bool {
        let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
        self.change(|inside| {
            if inside.downloads.len() >= DOWNLOADS {
                inside.downloads.retain(|download| download.state != DownloadState::Cancelled);
            }
            let room = inside.downloads.len() < DOWNLOADS;
            if room {
                inside.downloads.push_back(Download {
                    id,
                    url,
                    name,
                    bytes: 0,
                    state: DownloadState::Running,
                });
            }
            room
        })
    }

    /// True when it has become too large, or all together have.
    pub fn progress(&self, id: &str, bytes: u64, state: DownloadState) -> bool {
        self.change(|inside| {
            let Some(download) = inside.downloads.iter_mut().find(|download| download.id == id) else {
                return false;
            };
            (download.bytes, download.state) = (bytes, state);
            let all: u64 = inside.downloads.iter().map(|download| download.bytes).sum();
            state == DownloadState::Running && (bytes > LARGEST_DOWNLOAD || all > ALL_DOWNLOADS)
        })
    }
}

/// A session as the engine holds it.
pub(super) struct Held {
    pub browser: Arc<Browser>,
    pub context: Arc<Context>,
    pub used: Mutex<Instant>,
    closed: AtomicBool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeContext {
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeTarget {
    target_id: String,
}

impl Held {
    pub async fn new(browser: Arc<Browser>) -> Result<Self, ToolError> {
        let made: MadeContext =
            browser.wire.call(None, "Target.createBrowserContext", json!({"disposeOnDetach": true})).await?;
        let context = Arc::new(Context::new(made.browser_context_id));
        browser.add(Arc::clone(&context));
        let held =
            Self { browser, context, used: Mutex::new(Instant::now()), closed: AtomicBool::new(false) };
        match held.set_up().await {
            Ok(()) => Ok(held),
            Err(error) => {
                held.close().await;
                Err(error)
            }
        }
    }

    async fn set_up(&self) -> Result<(), ToolError> {
        let folder = self.browser.launched.download_dir(&self.context.id)?;
        let downloads = json!({
            "behavior": "allowAndName",
            "browserContextId": self.context.id,
            "downloadPath": folder.to_string_lossy(),
            "eventsEnabled": true,
        });
        self.browser.wire.call::<Value>(None, "Browser.setDownloadBehavior", downloads).await?;
        if let Some(credentials) = self.browser.launched.credentials() {
            self.learn(credentials.page).await?;
        }
        Ok(())
    }

    /// Shows the browser the proxy's own page, where it is asked for the password, which it keeps for this context.
    async fn learn(&self, page: &str) -> Result<(), ToolError> {
        let tab = self.open().await?;
        let wire = &self.browser.wire;
        let patterns = json!([{"urlPattern": format!("{page}*")}]);
        let enable = json!({"handleAuthRequests": true, "patterns": patterns});
        wire.call::<Value>(Some(&tab.session), "Fetch.enable", enable).await?;
        let page = Page { held: None, tab: Arc::clone(&tab), browser: Arc::clone(&self.browser) }
            .go(page, WaitUntil::DomContentLoaded, PATIENCE)
            .await?;
        if page.status != Some(200) {
            return Err(ToolError::internal(format!("the proxy's own page answered {:?}", page.status)));
        }
        wire.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
        self.context.forget(&tab.id);
        Ok(())
    }

    async fn open(&self) -> Result<Arc<Tab>, ToolError> {
        if self.context.inside().tabs.len() >= TABS {
            return Err(ToolError::new(Kind::Conflict, format!("There are {TABS} tabs already."))
                .hint("Close a tab that is no longer needed."));
        }
        let params = json!({"url": "about:blank", "browserContextId": self.context.id, "newWindow": true});
        let made: MadeTarget = self.browser.wire.call(None, "Target.createTarget", params).await?;
        let deadline = Instant::now() + PATIENCE;
        let mut changed = self.context.changed.subscribe();
        let tab = loop {
            changed.mark_unchanged();
            let found = self.context.inside().tabs.iter().find(|tab| tab.id == made.target_id).cloned();
            if let Some(tab) = found {
                break tab;
            }
            if tokio::time::timeout_at(deadline.into(), changed.changed()).await.is_err() {
                return Err(ToolError::new(Kind::Timeout, "The tab did not open.").hint("Try again."));
            }
        };
        tab.wait(deadline, |state| if state.ready { Ok(()) } else { Err(None) }).await?;
        Ok(tab)
    }

    pub fn touch(&self) {
        if let Ok(mut used) = self.used.lock() {
            *used = Instant::now();
        }
    }

    pub fn idle(&self) -> Duration {
        self.used.lock().map_or(Duration::ZERO, |used| used.elapsed())
    }

    pub async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let params = json!({"browserContextId": self.context.id});
        let _ = self.browser.wire.call::<Value>(None, "Target.disposeBrowserContext", params).await;
        self.browser.remove(&self.context.id);
    }
}

impl Session {
    /// False once it was closed, or its browser has ended.
    pub fn is_open(&self) -> bool {
        !self.0.closed.load(Ordering::SeqCst) && self.0.browser.is_alive()
    }

    pub fn life(&self) -> Life {
        Life(Arc::downgrade(&self.0))
    }

    /// The active tab; an empty one is opened when there is none. That a page has crashed is said once.
    pub async fn page(&self) -> Result<Page, ToolError> {
        match self.0.context.lost() {
            Some(why) => Err(why.error()),
            None => self.page_anew().await,
        }
    }

    /// The active tab, also when the page that was there has crashed.
    pub async fn page_anew(&self) -> Result<Page, ToolError> {
        self.0.touch();
        self.0.context.lost();
        let active = {
            let inside = self.0.context.inside();
            let active = inside.tabs.iter().find(|tab| tab.id == inside.active);
            active.filter(|tab| tab.check().is_ok()).cloned()
        };
        let Some(tab) = active else { return self.open_tab().await };
        let deadline = Instant::now() + PATIENCE;
        tab.wait(deadline, |state| if state.ready { Ok(()) } else { Err(None) }).await?;
        self.show(&tab).await;
        Ok(self.of(tab))
    }

    fn of(&self, tab: Arc<Tab>) -> Page {
        Page { held: Some(Arc::clone(&self.0)), tab, browser: Arc::clone(&self.0.browser) }
    }

    /// A tab behind another one draws nothing.
    async fn show(&self, tab: &Tab) {
        let hidden = self.0.context.change(|inside| {
            let hidden = inside.front != tab.id;
            inside.front.clone_from(&tab.id);
            hidden
        });
        if hidden {
            let _ = tab.wire.call::<Value>(Some(&tab.session), "Page.bringToFront", json!({})).await;
        }
    }

    /// In the order in which they were opened. Tabs that pages open are among them, and become active.
    pub async fn tabs(&self) -> Result<Vec<TabInfo>, ToolError> {
        self.0.touch();
        let (tabs, active) = {
            let inside = self.0.context.inside();
            (inside.tabs.clone(), inside.active.clone())
        };
        let mut listed = Vec::new();
        for tab in tabs {
            let (url, title) = self.of(Arc::clone(&tab)).location().await.unwrap_or_else(|_| {
                let state = tab.state();
                (state.url.clone(), state.title.clone())
            });
            listed.push(TabInfo { id: tab.id.clone(), url, title, active: tab.id == active });
        }
        Ok(listed)
    }

    /// Opens an empty tab, which becomes active.
    pub async fn open_tab(&self) -> Result<Page, ToolError> {
        self.0.touch();
        self.0.open().await.map(|tab| self.of(tab))
    }

    /// Makes the tab at this place active.
    pub async fn select_tab(&self, index: usize) -> Result<Page, ToolError> {
        let tab = self.at(index)?;
        self.0.context.change(|inside| inside.active.clone_from(&tab.id));
        self.show(&tab).await;
        Ok(self.of(tab))
    }

    /// Closes the tab at this place; its neighbour becomes active.
    pub async fn close_tab(&self, index: usize) -> Result<(), ToolError> {
        let tab = self.at(index)?;
        let params = json!({"targetId": tab.id});
        tab.wire.call::<Value>(None, "Target.closeTarget", params).await?;
        self.0.context.forget(&tab.id);
        Ok(())
    }

    fn at(&self, index: usize) -> Result<Arc<Tab>, ToolError> {
        self.0.touch();
        let inside = self.0.context.inside();
        inside.tabs.get(index).cloned().ok_or_else(|| {
            ToolError::not_found(format!("There is no tab {index}; there are {}.", inside.tabs.len()))
                .hint("List the tabs; the first has the index 0.")
        })
    }

    /// Newest last; at most 50.
    pub fn downloads(&self) -> Vec<Download> {
        self.0.context.inside().downloads.iter().cloned().collect()
    }

    /// Waits until a download has ended, and gives its bytes; the file leaves the quarantine.
    pub async fn take_download(&self, id: &str, timeout: Duration) -> Result<(Download, Vec<u8>), ToolError> {
        self.0.touch();
        let deadline = Instant::now() + timeout;
        let mut changed = self.0.context.changed.subscribe();
        let download = loop {
            changed.mark_unchanged();
            let found = self.downloads().into_iter().find(|download| download.id == id);
            match found {
                None => {
                    return Err(
                        ToolError::not_found("There is no such download.").hint("List the downloads.")
                    );
                }
                Some(found) if found.state == DownloadState::Complete => break found,
                Some(found) if found.state == DownloadState::Cancelled => {
                    return Err(ToolError::unavailable("The download was broken off.")
                        .hint(format!("Try again; at most {LARGEST_DOWNLOAD} bytes are taken.")));
                }
                Some(_) => {}
            }
            if !self.0.browser.is_alive() {
                return Err(
                    ToolError::unavailable("The browser has ended.").hint("Navigate and download again.")
                );
            }
            if tokio::time::timeout_at(deadline.into(), changed.changed()).await.is_err() {
                return Err(ToolError::new(Kind::Timeout, "The download is not complete yet.")
                    .hint("Ask again with a longer timeout."));
            }
        };
        let bytes = self.0.browser.launched.take_download(&self.0.context.id, id, LARGEST_DOWNLOAD).await?;
        self.0.context.change(|inside| inside.downloads.retain(|download| download.id != id));
        Ok((download, bytes))
    }

    /// How dialogs of all tabs are answered from now on.
    pub fn answer_dialogs(&self, policy: DialogPolicy) {
        let tabs = self.0.context.change(|inside| {
            inside.policy.clone_from(&policy);
            inside.tabs.clone()
        });
        for tab in tabs {
            tab.change(|state| state.policy.clone_from(&policy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_that_wait_to_be_taken_are_bounded_in_number_and_size() {
        let context = Context::new("c".to_owned());
        let begin = |id: usize| context.download(id.to_string(), String::new(), "a\u{7}b".to_owned());
        let taken = (0..80).filter(|id| begin(*id)).count();
        assert_eq!(taken, DOWNLOADS);
        assert_eq!(context.inside().downloads.front().unwrap().name, "ab");
        // One that was broken off makes room.
        assert!(!context.progress("7", 10, DownloadState::Cancelled));
        assert!(begin(80) && !begin(81));
        assert!(context.progress("8", LARGEST_DOWNLOAD + 1, DownloadState::Running));
        for id in 9..14 {
            let large = context.progress(&id.to_string(), LARGEST_DOWNLOAD, DownloadState::Complete);
            assert!(!large, "{id} is complete");
        }
        assert!(context.progress("15", 1_000, DownloadState::Running), "all together are too large");
    }
}
