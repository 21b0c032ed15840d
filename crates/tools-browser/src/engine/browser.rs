//! One browser process: its wire, its contexts and tabs, and what its events lead to.

use super::session::Context;
use super::tab::{Gone, State, Tab};
use super::wire::{Event, Wire};
use super::{DownloadState, scheme};
use octo_toolkit::chromium::RunningBrowser;
use octo_toolkit::{Chromium, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// A page may not open more tabs than this.
pub(super) const TABS: usize = 20;

/// Width and height of what a page thinks is shown of it.
const VIEW: (u32, u32) = (1_280, 720);

pub(super) struct Browser {
    pub wire: Arc<Wire>,
    pub launched: RunningBrowser,
    routes: Mutex<Routes>,
}

#[derive(Default)]
struct Routes {
    contexts: HashMap<String, Arc<Context>>,
    /// By session, those of frames in other processes included.
    tabs: HashMap<Arc<str>, Arc<Tab>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
    target_info: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
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
struct Changed {
    target_info: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tree {
    frame_tree: Branch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    frame: Frame,
    #[serde(default)]
    child_frames: Vec<Branch>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    id: String,
    parent_id: Option<String>,
    url: String,
}

impl Branch {
    /// Events may have told more of a frame already.
    fn add(self, state: &mut State, session: &Arc<str>) {
        let Frame { id, parent_id, url } = self.frame;
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
struct Detached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Downloading {
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

impl Browser {
    pub async fn start(chromium: &Chromium) -> Result<Arc<Self>, ToolError> {
        let launched = chromium.start().await?;
        let (to, from) = launched.pipes()?;
        let wire = Wire::new(to);
        let browser = Arc::new(Self { wire: Arc::clone(&wire), launched, routes: Mutex::default() });
        let hearing = Arc::downgrade(&browser);
        tokio::spawn(async move {
            let hear = |event: Event<'_>| {
                if let Some(browser) = hearing.upgrade() {
                    browser.hear(&event);
                }
            };
            wire.read(from, hear).await;
        });
        match browser.set_up().await {
            Ok(()) => {
                tracing::info!(sandbox = chromium.sandbox(), "a browser was started");
                Ok(browser)
            }
            Err(error) => {
                let complaints = browser.launched.stderr_text();
                Err(ToolError::unavailable("The browser could not be started.")
                    .hint("Try again; if it stays, ask the operator to look at the hub's log.")
                    .detail(format!("{error}; {complaints}")))
            }
        }
    }

    async fn set_up(&self) -> Result<(), ToolError> {
        let pages = json!([{"type": "page", "exclude": false}, {"exclude": true}]);
        self.wire
            .call::<Value>(None, "Target.setDiscoverTargets", json!({"discover": true, "filter": pages}))
            .await?;
        let attach =
            json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": pages});
        self.wire.call::<Value>(None, "Target.setAutoAttach", attach).await?;
        Ok(())
    }

    pub fn is_alive(&self) -> bool {
        self.wire.is_open()
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn add(&self, context: Arc<Context>) {
        self.routes().contexts.insert(context.id.clone(), context);
    }

    pub fn remove(&self, context: &str) {
        self.routes().contexts.remove(context);
    }

    fn hear(&self, event: &Event<'_>) {
        match event.method {
            "Target.attachedToTarget" => {
                if let Some(attached) = event.read() {
                    self.attached(event.session, attached);
                }
            }
            "Target.detachedFromTarget" => {
                if let Some(Detached { session_id }) = event.read() {
                    self.detached(&session_id);
                }
            }
            "Target.targetInfoChanged" => {
                if let Some(Changed { target_info }) = event.read() {
                    self.changed(target_info);
                }
            }
            "Browser.downloadWillBegin" | "Browser.downloadProgress" => {
                if let Some(downloading) = event.read() {
                    self.downloading(event.method.ends_with("Begin"), downloading);
                }
            }
            "Fetch.authRequired" | "Fetch.requestPaused" => self.prove(event),
            _ => {
                let of = event.session.and_then(|session| {
                    let routes = self.routes();
                    routes
                        .tabs
                        .get_key_value(session)
                        .map(|(session, tab)| (Arc::clone(session), Arc::clone(tab)))
                });
                if let Some((session, tab)) = of {
                    tab.hear(&session, event);
                }
            }
        }
    }

    fn attached(&self, parent: Option<&str>, attached: Attached) {
        let Attached { session_id, target_info: target } = attached;
        let session_id: Arc<str> = session_id.into();
        let go_on = |session: &str| {
            self.wire.post(Some(session), "Runtime.runIfWaitingForDebugger", json!({}));
        };
        if target.kind == "iframe" {
            let tab = parent.and_then(|parent| self.routes().tabs.get(parent).cloned());
            if let Some(tab) = tab {
                self.routes().tabs.insert(Arc::clone(&session_id), Arc::clone(&tab));
                tab.change(|state| state.add_frame(target.target_id, &session_id, None, target.url));
                self.listen(&tab, session_id, false);
            } else {
                go_on(&session_id);
            }
            return;
        }
        let context = self.routes().contexts.get(&target.browser_context_id).cloned();
        let Some(context) = context.filter(|_| target.kind == "page") else { return go_on(&session_id) };
        let policy = context.policy();
        let tab = Tab::new(target.target_id, Arc::clone(&session_id), Arc::clone(&self.wire), policy);
        let tab = Arc::new(tab);
        if scheme::is_forbidden(&target.url) || !context.add(Arc::clone(&tab)) {
            self.wire.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
            return go_on(&session_id);
        }
        self.routes().tabs.insert(Arc::clone(&session_id), Arc::clone(&tab));
        self.listen(&tab, session_id, true);
    }

    /// Asks for the events of a session, and lets it go on only then, so that none is missed.
    fn listen(&self, tab: &Arc<Tab>, session: Arc<str>, main: bool) {
        // A page's workers are made to wait as well, whatever the filter says; only who is told of them can let them go on.
        let of_pages = json!([
            {"type": "iframe", "exclude": false},
            {"type": "worker", "exclude": false},
            {"exclude": true},
        ]);
        let attach =
            json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": of_pages});
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
            ("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
            ("Network.enable", json!({"maxTotalBufferSize": 1 << 20, "maxResourceBufferSize": 1 << 19})),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            ("Target.setAutoAttach", attach),
        ] {
            self.wire.post(Some(&session), method, params);
        }
        if main {
            // Pages behave as if they were looked at, and keys reach them, also while another tab is in front.
            self.wire.post(Some(&session), "Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
            let view = json!({"width": VIEW.0, "height": VIEW.1, "deviceScaleFactor": 1, "mobile": false});
            self.wire.post(Some(&session), "Emulation.setDeviceMetricsOverride", view);
        }
        let (tab, wire) = (Arc::clone(tab), Arc::clone(&self.wire));
        tokio::spawn(async move {
            // What was there before the events were asked for. A page that waits may answer only when it goes on.
            let tree = wire.send(Some(&session), "Page.getFrameTree", json!({})).await;
            wire.post(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
            let tree = match tree {
                Ok(tree) => tree.get::<Tree>().await,
                Err(error) => Err(error),
            };
            match tree {
                Ok(Tree { frame_tree }) => tab.change(|state| {
                    frame_tree.add(state, &session);
                    state.ready |= main;
                }),
                Err(_) if main => tab.gone(Gone::Closed),
                Err(_) => {}
            }
        });
    }

    fn detached(&self, session: &str) {
        let removed = self.routes().tabs.remove(session);
        let Some(tab) = removed else { return };
        if *tab.session == *session {
            tab.gone(Gone::Closed);
            for context in self.routes().contexts.values() {
                context.forget(&tab.id);
            }
        } else {
            tab.change(|state| state.frames.retain(|_, frame| *frame.session != *session));
            self.wire.lose(session, Gone::Frame);
        }
    }

    fn changed(&self, target: Target) {
        let tab = self.routes().tabs.values().find(|tab| tab.id == target.target_id).cloned();
        if let Some(tab) = tab {
            if scheme::is_forbidden(&target.url) {
                self.wire.post(None, "Target.closeTarget", json!({"targetId": tab.id}));
            }
            tab.change(|state| {
                state.title = target.title;
                if state.url.is_empty() {
                    state.url = target.url;
                }
            });
        }
    }

    fn downloading(&self, begins: bool, downloading: Downloading) {
        let contexts: Vec<_> = self.routes().contexts.values().cloned().collect();
        if !begins {
            let state = match downloading.state.as_str() {
                "completed" => DownloadState::Complete,
                "canceled" => DownloadState::Cancelled,
                _ => DownloadState::Running,
            };
            for context in &contexts {
                let too_large = context.progress(&downloading.guid, downloading.received_bytes as u64, state);
                if too_large {
                    let cancel = json!({"guid": downloading.guid, "browserContextId": context.id});
                    self.wire.post(None, "Browser.cancelDownload", cancel);
                }
            }
            return;
        }
        let frame = downloading.frame_id.unwrap_or_default();
        // A link that opens a tab only to download has closed it by now.
        let of = contexts.iter().find(|context| context.has_frame(&frame)).or(match contexts.as_slice() {
            [only] => Some(only),
            _ => None,
        });
        match of {
            Some(context) => {
                let Downloading { guid, url, suggested_filename, .. } = downloading;
                if !context.download(guid.clone(), url, suggested_filename) {
                    let cancel = json!({"guid": guid, "browserContextId": context.id});
                    self.wire.post(None, "Browser.cancelDownload", cancel);
                }
            }
            None => self.wire.post(None, "Browser.cancelDownload", json!({"guid": downloading.guid})),
        }
    }

    /// Answers the proxy's question for its password, which is asked once in every context.
    fn prove(&self, event: &Event<'_>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Asked {
            request_id: String,
        }
        let Some(Asked { request_id }) = event.read() else { return };
        if event.method == "Fetch.requestPaused" {
            return self.wire.post(event.session, "Fetch.continueRequest", json!({"requestId": request_id}));
        }
        let answer = match self.launched.credentials() {
            Some(known) => {
                json!({"response": "ProvideCredentials", "username": known.user, "password": known.password})
            }
            None => json!({"response": "CancelAuth"}),
        };
        let params = json!({"requestId": request_id, "authChallengeResponse": answer});
        self.wire.post(event.session, "Fetch.continueWithAuth", params);
    }
}
