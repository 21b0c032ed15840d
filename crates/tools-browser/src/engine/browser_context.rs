//! Sessions: browser contexts with their tabs and downloads.

use super::browser_process::{BrowserProcess, MAX_TABS};
use super::tab::{LossReason, Tab};
use super::{DialogPolicy, Download, DownloadState, Page, Session, TabInfo, WaitUntil, WeakSession};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Maximum number of downloads per session.
const MAX_DOWNLOADS: usize = 50;
/// Maximum size of a download; a larger one is cancelled.
const MAX_DOWNLOAD_BYTES: u64 = 100 << 20;
/// Maximum size of all downloads in quarantine.
const MAX_TOTAL_DOWNLOAD_BYTES: u64 = 500 << 20;
/// Maximum time to open a tab.
const TAB_OPEN_TIMEOUT: Duration = Duration::from_secs(15);

/// Part of a session that browser events update.
pub(super) struct BrowserContext {
    pub id: String,
    state: Mutex<ContextState>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct ContextState {
    tabs: Vec<Arc<Tab>>,
    /// Id of the active tab.
    active_tab: String,
    /// Id of the tab that was last brought to the front.
    front_tab: String,
    downloads: VecDeque<Download>,
    policy: DialogPolicy,
    /// Why the active tab was lost, until it is reported to the caller.
    tab_loss: Option<LossReason>,
}

impl BrowserContext {
    fn new(id: String) -> Self {
        Self { id, state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, ContextState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn change<T>(&self, with: impl FnOnce(&mut ContextState) -> T) -> T {
        let result = with(&mut self.state());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    pub fn policy(&self) -> DialogPolicy {
        self.state().policy.clone()
    }

    /// False if there are too many tabs.
    pub fn add_tab(&self, tab: Arc<Tab>) -> bool {
        self.change(|inside| {
            let has_room = inside.tabs.len() < MAX_TABS;
            if has_room {
                inside.active_tab.clone_from(&tab.id);
                // Chromium opens a new tab in front.
                inside.front_tab.clone_from(&tab.id);
                inside.tabs.push(tab);
            }
            has_room
        })
    }

    pub fn remove_tab(&self, tab: &str) {
        self.change(|inside| {
            let Some(at) = inside.tabs.iter().position(|known| known.id == tab) else { return };
            let removed = inside.tabs.remove(at);
            if inside.active_tab == tab {
                inside.tab_loss =
                    inside.tab_loss.or(removed.state().loss.filter(|why| *why != LossReason::Closed));
                let next = inside.tabs.get(at.saturating_sub(1)).map(|tab| tab.id.clone());
                inside.active_tab = next.unwrap_or_default();
            }
        });
    }

    pub fn has_frame(&self, frame: &str) -> bool {
        self.state().tabs.iter().any(|tab| tab.id == frame || tab.state().frames.contains_key(frame))
    }

    /// Why the active tab was lost, if that was not reported yet.
    fn take_tab_loss(&self) -> Option<LossReason> {
        let crashed = {
            let inside = self.state();
            let active = inside.tabs.iter().find(|tab| tab.id == inside.active_tab);
            active.filter(|tab| tab.state().loss.is_some_and(|why| why != LossReason::Closed)).cloned()
        };
        if let Some(tab) = crashed {
            tab.cdp.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
            self.remove_tab(&tab.id);
        }
        self.change(|inside| inside.tab_loss.take())
    }

    /// False if there are too many downloads, until some are taken.
    pub fn add_download(&self, id: String, url: String, name: String) -> bool {
        let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
        self.change(|inside| {
            if inside.downloads.len() >= MAX_DOWNLOADS {
                inside.downloads.retain(|download| download.state != DownloadState::Cancelled);
            }
            let has_room = inside.downloads.len() < MAX_DOWNLOADS;
            if has_room {
                inside.downloads.push_back(Download {
                    id,
                    url,
                    name,
                    bytes: 0,
                    state: DownloadState::Running,
                });
            }
            has_room
        })
    }

    /// True if it, or all downloads together, exceed the size limit.
    pub fn update_download(&self, id: &str, bytes: u64, state: DownloadState) -> bool {
        self.change(|inside| {
            let Some(download) = inside.downloads.iter_mut().find(|download| download.id == id) else {
                return false;
            };
            (download.bytes, download.state) = (bytes, state);
            let all: u64 = inside.downloads.iter().map(|download| download.bytes).sum();
            state == DownloadState::Running && (bytes > MAX_DOWNLOAD_BYTES || all > MAX_TOTAL_DOWNLOAD_BYTES)
        })
    }
}

/// Session data owned by the engine.
pub(super) struct SessionInner {
    pub browser: Arc<BrowserProcess>,
    pub context: Arc<BrowserContext>,
    pub last_used: Mutex<Instant>,
    closed: AtomicBool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateContextResult {
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateTargetResult {
    target_id: String,
}

impl SessionInner {
    pub async fn new(browser: Arc<BrowserProcess>) -> Result<Self, ToolError> {
        let created: CreateContextResult =
            browser.cdp.call(None, "Target.createBrowserContext", json!({"disposeOnDetach": true})).await?;
        let context = Arc::new(BrowserContext::new(created.browser_context_id));
        browser.add_context(Arc::clone(&context));
        let session =
            Self { browser, context, last_used: Mutex::new(Instant::now()), closed: AtomicBool::new(false) };
        match session.set_up().await {
            Ok(()) => Ok(session),
            Err(error) => {
                session.close().await;
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
        self.browser.cdp.call::<Value>(None, "Browser.setDownloadBehavior", downloads).await?;
        if let Some(credentials) = self.browser.launched.credentials() {
            self.authenticate_proxy(credentials.page).await?;
        }
        Ok(())
    }

    /// Opens the proxy's own page, which requests the password; the browser keeps it for this context.
    async fn authenticate_proxy(&self, page: &str) -> Result<(), ToolError> {
        let tab = self.new_tab().await?;
        let wire = &self.browser.cdp;
        let patterns = json!([{"urlPattern": format!("{page}*")}]);
        let enable = json!({"handleAuthRequests": true, "patterns": patterns});
        wire.call::<Value>(Some(&tab.session), "Fetch.enable", enable).await?;
        let page = Page { session: None, tab: Arc::clone(&tab), browser: Arc::clone(&self.browser) }
            .load(page, WaitUntil::DomContentLoaded, TAB_OPEN_TIMEOUT)
            .await?;
        if page.status != Some(200) {
            return Err(ToolError::internal(format!("the proxy's own page returned {:?}", page.status)));
        }
        wire.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
        self.context.remove_tab(&tab.id);
        Ok(())
    }

    async fn new_tab(&self) -> Result<Arc<Tab>, ToolError> {
        if self.context.state().tabs.len() >= MAX_TABS {
            return Err(ToolError::new(Kind::Conflict, format!("The limit of {MAX_TABS} tabs is reached."))
                .hint("Close a tab that is no longer needed."));
        }
        let params = json!({"url": "about:blank", "browserContextId": self.context.id, "newWindow": true});
        let created: CreateTargetResult = self.browser.cdp.call(None, "Target.createTarget", params).await?;
        let deadline = Instant::now() + TAB_OPEN_TIMEOUT;
        let mut changed = self.context.changed.subscribe();
        let tab = loop {
            changed.mark_unchanged();
            let found = self.context.state().tabs.iter().find(|tab| tab.id == created.target_id).cloned();
            if let Some(tab) = found {
                break tab;
            }
            if tokio::time::timeout_at(deadline.into(), changed.changed()).await.is_err() {
                return Err(
                    ToolError::new(Kind::Timeout, "Timed out while opening the tab.").hint("Try again.")
                );
            }
        };
        tab.wait_for(deadline, |state| if state.ready { Ok(()) } else { Err(None) }).await?;
        Ok(tab)
    }

    pub fn touch(&self) {
        if let Ok(mut used) = self.last_used.lock() {
            *used = Instant::now();
        }
    }

    pub fn idle_time(&self) -> Duration {
        self.last_used.lock().map_or(Duration::ZERO, |used| used.elapsed())
    }

    pub async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let params = json!({"browserContextId": self.context.id});
        let _ = self.browser.cdp.call::<Value>(None, "Target.disposeBrowserContext", params).await;
        self.browser.remove_context(&self.context.id);
    }
}

impl Session {
    /// False if it was closed or its browser has exited.
    pub fn is_open(&self) -> bool {
        !self.0.closed.load(Ordering::SeqCst) && self.0.browser.is_alive()
    }

    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// The active tab; opens an empty one if there is none. A crash of the page is reported once.
    pub async fn page(&self) -> Result<Page, ToolError> {
        match self.0.context.take_tab_loss() {
            Some(why) => Err(why.error()),
            None => self.page_ignoring_crash().await,
        }
    }

    /// The active tab, even if its page has crashed.
    pub async fn page_ignoring_crash(&self) -> Result<Page, ToolError> {
        self.0.touch();
        self.0.context.take_tab_loss();
        let active = {
            let inside = self.0.context.state();
            let active = inside.tabs.iter().find(|tab| tab.id == inside.active_tab);
            active.filter(|tab| tab.check().is_ok()).cloned()
        };
        let Some(tab) = active else { return self.open_tab().await };
        let deadline = Instant::now() + TAB_OPEN_TIMEOUT;
        tab.wait_for(deadline, |state| if state.ready { Ok(()) } else { Err(None) }).await?;
        self.bring_to_front(&tab).await;
        Ok(self.page_for(tab))
    }

    fn page_for(&self, tab: Arc<Tab>) -> Page {
        Page { session: Some(Arc::clone(&self.0)), tab, browser: Arc::clone(&self.0.browser) }
    }

    /// Brings a tab to the front: tabs in the background are not rendered.
    async fn bring_to_front(&self, tab: &Tab) {
        let hidden = self.0.context.change(|inside| {
            let hidden = inside.front_tab != tab.id;
            inside.front_tab.clone_from(&tab.id);
            hidden
        });
        if hidden {
            let _ = tab.cdp.call::<Value>(Some(&tab.session), "Page.bringToFront", json!({})).await;
        }
    }

    /// Tabs in the order in which they were opened. Tabs opened by pages are included and become active.
    pub async fn tabs(&self) -> Result<Vec<TabInfo>, ToolError> {
        self.0.touch();
        let (tabs, active) = {
            let inside = self.0.context.state();
            (inside.tabs.clone(), inside.active_tab.clone())
        };
        let mut listed = Vec::new();
        for tab in tabs {
            let (url, title) = self.page_for(Arc::clone(&tab)).location().await.unwrap_or_else(|_| {
                let state = tab.state();
                (state.url.clone(), state.title.clone())
            });
            listed.push(TabInfo { id: tab.id.clone(), url, title, active: tab.id == active });
        }
        Ok(listed)
    }

    /// Opens an empty tab and activates it.
    pub async fn open_tab(&self) -> Result<Page, ToolError> {
        self.0.touch();
        self.0.new_tab().await.map(|tab| self.page_for(tab))
    }

    /// Activates the tab at this index.
    pub async fn select_tab(&self, index: usize) -> Result<Page, ToolError> {
        let tab = self.tab_at(index)?;
        self.0.context.change(|inside| inside.active_tab.clone_from(&tab.id));
        self.bring_to_front(&tab).await;
        Ok(self.page_for(tab))
    }

    /// Closes the tab at this index and activates its neighbour.
    pub async fn close_tab(&self, index: usize) -> Result<(), ToolError> {
        let tab = self.tab_at(index)?;
        let params = json!({"targetId": tab.id});
        tab.cdp.call::<Value>(None, "Target.closeTarget", params).await?;
        self.0.context.remove_tab(&tab.id);
        Ok(())
    }

    fn tab_at(&self, index: usize) -> Result<Arc<Tab>, ToolError> {
        self.0.touch();
        let inside = self.0.context.state();
        inside.tabs.get(index).cloned().ok_or_else(|| {
            ToolError::not_found(format!("Tab {index} not found; there are {}.", inside.tabs.len()))
                .hint("List the tabs; indexes start at 0.")
        })
    }

    /// Downloads, newest last; at most 50.
    pub fn downloads(&self) -> Vec<Download> {
        self.0.context.state().downloads.iter().cloned().collect()
    }

    /// Waits until a download has completed and returns its bytes; the file leaves the quarantine.
    pub async fn take_download(&self, id: &str, timeout: Duration) -> Result<(Download, Vec<u8>), ToolError> {
        self.0.touch();
        let deadline = Instant::now() + timeout;
        let mut changed = self.0.context.changed.subscribe();
        let download = loop {
            changed.mark_unchanged();
            let found = self.downloads().into_iter().find(|download| download.id == id);
            match found {
                None => {
                    return Err(ToolError::not_found("Download not found.").hint("List the downloads."));
                }
                Some(found) if found.state == DownloadState::Complete => break found,
                Some(found) if found.state == DownloadState::Cancelled => {
                    return Err(ToolError::unavailable("The download was cancelled.")
                        .hint(format!("Try again; the limit is {MAX_DOWNLOAD_BYTES} bytes.")));
                }
                Some(_) => {}
            }
            if !self.0.browser.is_alive() {
                return Err(
                    ToolError::unavailable("The browser has exited.").hint("Navigate and download again.")
                );
            }
            if tokio::time::timeout_at(deadline.into(), changed.changed()).await.is_err() {
                return Err(ToolError::new(Kind::Timeout, "The download is not complete yet.")
                    .hint("Try again with a longer timeout."));
            }
        };
        let bytes = self.0.browser.launched.take_download(&self.0.context.id, id, MAX_DOWNLOAD_BYTES).await?;
        self.0.context.change(|inside| inside.downloads.retain(|download| download.id != id));
        Ok((download, bytes))
    }

    /// Sets how dialogs of all tabs are answered.
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
        let context = BrowserContext::new("c".to_owned());
        let begin = |id: usize| context.add_download(id.to_string(), String::new(), "a\u{7}b".to_owned());
        let taken = (0..80).filter(|id| begin(*id)).count();
        assert_eq!(taken, MAX_DOWNLOADS);
        assert_eq!(context.state().downloads.front().unwrap().name, "ab");
        // A cancelled one makes room.
        assert!(!context.update_download("7", 10, DownloadState::Cancelled));
        assert!(begin(80) && !begin(81));
        assert!(context.update_download("8", MAX_DOWNLOAD_BYTES + 1, DownloadState::Running));
        for id in 9..14 {
            let large = context.update_download(&id.to_string(), MAX_DOWNLOAD_BYTES, DownloadState::Complete);
            assert!(!large, "{id} is complete");
        }
        assert!(context.update_download("15", 1_000, DownloadState::Running), "all together are too large");
    }
}
