//! A browser process: its connection, contexts and tabs, and event handling.

use super::browser_context::BrowserContext;
use super::cdp_connection::{CdpConnection, Event};
use super::tab::{LossReason, Tab, TabState};
use super::{DownloadState, url_scheme};
use octo_toolkit::chromium::RunningBrowser;
use octo_toolkit::{Chromium, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of tabs per session.
pub(super) const MAX_TABS: usize = 20;

/// Width and height of the emulated viewport.
const VIEWPORT_SIZE: (u32, u32) = (1_280, 720);

pub(super) struct BrowserProcess {
    pub cdp: Arc<CdpConnection>,
    pub launched: RunningBrowser,
    routes: Mutex<Routes>,
}

#[derive(Default)]
struct Routes {
    contexts: HashMap<String, Arc<BrowserContext>>,
    /// By DevTools session, including those of frames in other processes.
    tabs: HashMap<Arc<str>, Arc<Tab>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedToTarget {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    #[serde(rename = "type")]
    kind: String,
    url: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfoChanged {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTreeResult {
    frame_tree: FrameBranch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameBranch {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameBranch>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    parent_id: Option<String>,
    url: String,
}

impl FrameBranch {
    /// Adds a frame unless events have already reported it.
    fn add(self, state: &mut TabState, session: &Arc<str>) {
        let FrameInfo { id, parent_id, url } = self.frame;
        if state.frames.get(&id).is_none_or(|known| known.url.is_empty()) {
            state.add_frame(id, session, parent_id, url);
        }
        for child in self.child_frames {
            child.add(state, session);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetachedFromTarget {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadEvent {
    guid: String,
    frame_id: Option<String>,
    #[serde(default)]
    url: String,
    #[serde(default)]
    suggested_filename: String,
    #[serde(default)]
    received_bytes: f64,
    #[serde(default)]
    state: String,
}

impl BrowserProcess {
    pub async fn start(chromium: &Chromium) -> Result<Arc<Self>, ToolError> {
        let launched = chromium.start().await?;
        let (to, from) = launched.pipes()?;
        let wire = CdpConnection::new(to);
        let browser = Arc::new(Self { cdp: Arc::clone(&wire), launched, routes: Mutex::default() });
        let weak_browser = Arc::downgrade(&browser);
        tokio::spawn(async move {
            let on_event = |event: Event<'_>| {
                if let Some(browser) = weak_browser.upgrade() {
                    browser.handle_event(&event);
                }
            };
            wire.read(from, on_event).await;
        });
        match browser.enable_discovery().await {
            Ok(()) => {
                tracing::info!(sandbox = chromium.sandbox(), "browser started");
                Ok(browser)
            }
            Err(error) => {
                let complaints = browser.launched.stderr_text();
                Err(ToolError::unavailable("The browser could not be started.")
                    .hint("Try again; if the problem persists, ask the operator to check the hub's log.")
                    .detail(format!("{error}; {complaints}")))
            }
        }
    }

    async fn enable_discovery(&self) -> Result<(), ToolError> {
        let pages = json!([{"type": "page", "exclude": false}, {"exclude": true}]);
        self.cdp
            .call::<Value>(None, "Target.setDiscoverTargets", json!({"discover": true, "filter": pages}))
            .await?;
        let attach =
            json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": pages});
        self.cdp.call::<Value>(None, "Target.setAutoAttach", attach).await?;
        Ok(())
    }

    pub fn is_alive(&self) -> bool {
        self.cdp.is_open()
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn add_context(&self, context: Arc<BrowserContext>) {
        self.routes().contexts.insert(context.id.clone(), context);
    }

    pub fn remove_context(&self, context: &str) {
        self.routes().contexts.remove(context);
    }

    fn handle_event(&self, event: &Event<'_>) {
        match event.method {
            "Target.attachedToTarget" => {
                if let Some(attached) = event.read() {
                    self.on_attached(event.session, attached);
                }
            }
            "Target.detachedFromTarget" => {
                if let Some(DetachedFromTarget { session_id }) = event.read() {
                    self.on_detached(&session_id);
                }
            }
            "Target.targetInfoChanged" => {
                if let Some(TargetInfoChanged { target_info }) = event.read() {
                    self.on_target_changed(target_info);
                }
            }
            "Browser.downloadWillBegin" | "Browser.downloadProgress" => {
                if let Some(downloading) = event.read() {
                    self.on_download(event.method.ends_with("Begin"), downloading);
                }
            }
            "Fetch.authRequired" | "Fetch.requestPaused" => self.answer_proxy_auth(event),
            _ => {
                let owner = event.session.and_then(|session| {
                    let routes = self.routes();
                    routes
                        .tabs
                        .get_key_value(session)
                        .map(|(session, tab)| (Arc::clone(session), Arc::clone(tab)))
                });
                if let Some((session, tab)) = owner {
                    tab.handle_event(&session, event);
                }
            }
        }
    }

    fn on_attached(&self, parent: Option<&str>, attached: AttachedToTarget) {
        let AttachedToTarget { session_id, target_info: target } = attached;
        let session_id: Arc<str> = session_id.into();
        let resume = |session: &str| {
            self.cdp.post(Some(session), "Runtime.runIfWaitingForDebugger", json!({}));
        };
        if target.kind == "iframe" {
            let tab = parent.and_then(|parent| self.routes().tabs.get(parent).cloned());
            if let Some(tab) = tab {
                self.routes().tabs.insert(Arc::clone(&session_id), Arc::clone(&tab));
                tab.change(|state| state.add_frame(target.target_id, &session_id, None, target.url));
                self.enable_events(&tab, session_id, false);
            } else {
                resume(&session_id);
            }
            return;
        }
        let context = self.routes().contexts.get(&target.browser_context_id).cloned();
        let Some(context) = context.filter(|_| target.kind == "page") else { return resume(&session_id) };
        let policy = context.policy();
        let tab = Tab::new(target.target_id, Arc::clone(&session_id), Arc::clone(&self.cdp), policy);
        let tab = Arc::new(tab);
        if url_scheme::is_forbidden(&target.url) || !context.add_tab(Arc::clone(&tab)) {
            self.cdp.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
            return resume(&session_id);
        }
        self.routes().tabs.insert(Arc::clone(&session_id), Arc::clone(&tab));
        self.enable_events(&tab, session_id, true);
    }

    /// Subscribes to the events of a session and only then resumes it, so that none is missed.
    fn enable_events(&self, tab: &Arc<Tab>, session: Arc<str>, main: bool) {
        // A page's workers are paused as well, whatever the filter; only an attached session can resume them.
        let page_filter = json!([
            {"type": "iframe", "exclude": false},
            {"type": "worker", "exclude": false},
            {"exclude": true},
        ]);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": page_filter});
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
            ("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
            ("Network.enable", json!({"maxTotalBufferSize": 1 << 20, "maxResourceBufferSize": 1 << 19})),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            ("Target.setAutoAttach", attach),
        ] {
            self.cdp.post(Some(&session), method, params);
        }
        if main {
            // Pages behave as if focused, and receive keys, even if another tab is in front.
            self.cdp.post(Some(&session), "Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
            let view = json!({"width": VIEWPORT_SIZE.0, "height": VIEWPORT_SIZE.1, "deviceScaleFactor": 1, "mobile": false});
            self.cdp.post(Some(&session), "Emulation.setDeviceMetricsOverride", view);
        }
        let (tab, wire) = (Arc::clone(tab), Arc::clone(&self.cdp));
        tokio::spawn(async move {
            // Frames that existed before the subscription. A paused page may reply only after it is resumed.
            let tree = wire.send(Some(&session), "Page.getFrameTree", json!({})).await;
            wire.post(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
            let tree = match tree {
                Ok(tree) => tree.get::<FrameTreeResult>().await,
                Err(error) => Err(error),
            };
            match tree {
                Ok(FrameTreeResult { frame_tree }) => tab.change(|state| {
                    frame_tree.add(state, &session);
                    state.ready |= main;
                }),
                Err(_) if main => tab.mark_lost(LossReason::Closed),
                Err(_) => {}
            }
        });
    }

    fn on_detached(&self, session: &str) {
        let removed = self.routes().tabs.remove(session);
        let Some(tab) = removed else { return };
        if *tab.session == *session {
            tab.mark_lost(LossReason::Closed);
            for context in self.routes().contexts.values() {
                context.remove_tab(&tab.id);
            }
        } else {
            tab.change(|state| state.frames.retain(|_, frame| *frame.session != *session));
            self.cdp.fail_session(session, LossReason::FrameClosed);
        }
    }

    fn on_target_changed(&self, target: TargetInfo) {
        let tab = self.routes().tabs.values().find(|tab| tab.id == target.target_id).cloned();
        if let Some(tab) = tab {
            if url_scheme::is_forbidden(&target.url) {
                self.cdp.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
            }
            tab.change(|state| {
                state.title = target.title;
                if state.url.is_empty() {
                    state.url = target.url;
                }
            });
        }
    }

    fn on_download(&self, begins: bool, downloading: DownloadEvent) {
        let contexts: Vec<_> = self.routes().contexts.values().cloned().collect();
        if !begins {
            let state = match downloading.state.as_str() {
                "completed" => DownloadState::Complete,
                "canceled" => DownloadState::Cancelled,
                _ => DownloadState::Running,
            };
            for context in &contexts {
                let too_large =
                    context.update_download(&downloading.guid, downloading.received_bytes as u64, state);
                if too_large {
                    let cancel = json!({"guid": downloading.guid, "browserContextId": context.id});
                    self.cdp.post(None, "Browser.cancelDownload", cancel);
                }
            }
            return;
        }
        let frame = downloading.frame_id.unwrap_or_default();
        // A link that opens a tab only for a download has closed it by now.
        let owner = contexts.iter().find(|context| context.has_frame(&frame)).or(match contexts.as_slice() {
            [only] => Some(only),
            _ => None,
        });
        match owner {
            Some(context) => {
                let DownloadEvent { guid, url, suggested_filename, .. } = downloading;
                if !context.add_download(guid.clone(), url, suggested_filename) {
                    let cancel = json!({"guid": guid, "browserContextId": context.id});
                    self.cdp.post(None, "Browser.cancelDownload", cancel);
                }
            }
            None => self.cdp.post(None, "Browser.cancelDownload", json!({"guid": downloading.guid})),
        }
    }

    /// Answers the proxy's authentication request, which occurs once per context.
    fn answer_proxy_auth(&self, event: &Event<'_>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct AuthRequest {
            request_id: String,
        }
        let Some(AuthRequest { request_id }) = event.read() else { return };
        if event.method == "Fetch.requestPaused" {
            return self.cdp.post(event.session, "Fetch.continueRequest", json!({"requestId": request_id}));
        }
        let answer = match self.launched.credentials() {
            Some(known) => {
                json!({"response": "ProvideCredentials", "username": known.user, "password": known.password})
            }
            None => json!({"response": "CancelAuth"}),
        };
        let params = json!({"requestId": request_id, "authChallengeResponse": answer});
        self.cdp.post(event.session, "Fetch.continueWithAuth", params);
    }
}
