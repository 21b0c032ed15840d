//! State of a tab, updated by browser events.

mod tab_events;

use super::cdp_connection::CdpConnection;
use super::ring_buffer::RingBuffer;
use super::{ConsoleLine, Dialog, DialogPolicy, Node, Request};
use octo_toolkit::{Kind, ToolError};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Requests that do not prevent a page from settling.
const BACKGROUND_REQUEST_KINDS: [&str; 5] = ["WebSocket", "EventSource", "Ping", "Media", "Prefetch"];

/// Maximum time for a requested navigation to start.
pub(super) const NAVIGATION_START_TIMEOUT: Duration = Duration::from_millis(2_500);

pub(super) struct Tab {
    /// Chromium's `targetId`, which is also the main frame's id.
    pub id: String,
    /// Session of the main frame.
    pub session: Arc<str>,
    pub cdp: Arc<CdpConnection>,
    state: Mutex<TabState>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct TabState {
    /// Set once its events are enabled.
    pub ready: bool,
    /// Why it can no longer be used.
    pub loss: Option<LossReason>,
    pub url: String,
    pub title: String,
    pub frames: HashMap<String, Frame>,
    /// Loader id of the main frame's document.
    pub loader: String,
    pub content_loaded: bool,
    pub loaded: bool,
    /// Whether its scripts have made requests.
    pub has_script_requests: bool,
    /// When a navigation of the main frame was last requested, until it has happened.
    pub pending_navigation: Option<Instant>,
    /// Number of navigations of the main frame, including those within a document.
    pub navigation_count: u64,
    /// Status of the newest main document.
    pub status: Option<u16>,
    /// Pending requests, by Chromium's id.
    pub in_flight: HashMap<String, InFlightRequest>,
    /// When the last request started or ended.
    pub last_network_activity: Option<Instant>,
    pub policy: DialogPolicy,
    pub dialogs: RingBuffer<Dialog>,
    /// Start of the current dialog count, and the count.
    pub dialog_burst: Option<(Instant, u32)>,
    pub console: RingBuffer<ConsoleLine>,
    pub requests: RingBuffer<Request>,
    /// Data of the drag that the mouse has started, while drags are intercepted.
    pub drag_data: Option<Value>,
    /// The field that the page last requested files for.
    pub file_chooser: Option<(u64, Node)>,
}

/// Why a session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossReason {
    Closed,
    Crashed,
    /// Closed by the hub, because it kept opening dialogs.
    DialogFlood,
    /// A frame in another process went away, or that process crashed.
    FrameClosed,
    FrameCrashed,
}

impl LossReason {
    pub fn error(self) -> ToolError {
        let again = "Open it again with browser_navigate, or another page.";
        match self {
            Self::Closed => ToolError::not_found("The tab is closed.")
                .hint("List the open tabs with browser_tabs, or open a page with browser_navigate."),
            Self::Crashed => {
                ToolError::unavailable("The page has crashed; it may have used too much memory.").hint(again)
            }
            Self::DialogFlood => {
                ToolError::unavailable("The page kept opening dialogs, so its tab was closed.").hint(again)
            }
            Self::FrameClosed | Self::FrameCrashed => {
                ToolError::not_found("The frame that contains the element is gone.")
                    .hint("Take a new snapshot and use its refs.")
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub session: Arc<str>,
    pub parent: Option<String>,
    pub url: String,
    /// Order in which frames were added.
    pub serial: u64,
}

pub(super) struct InFlightRequest {
    pub serial: u64,
    pub since: Instant,
    pub is_background: bool,
    /// The document that made the request.
    pub loader: String,
}

/// Copy of a frame's state.
#[derive(Debug, Clone)]
pub(super) struct FrameSnapshot {
    pub id: String,
    pub session: Arc<str>,
    pub parent: Option<String>,
    pub url: String,
}

impl TabState {
    /// All frames, `main` first, parents before children.
    fn frames_in_order(&self, main: &str) -> Vec<FrameSnapshot> {
        let mut frames: Vec<_> = self.frames.iter().collect();
        frames.sort_by_key(|(id, frame)| (*id != main, frame.serial));
        let snapshot = |(id, frame): (&String, &Frame)| FrameSnapshot {
            id: id.clone(),
            session: Arc::clone(&frame.session),
            parent: frame.parent.clone(),
            url: frame.url.clone(),
        };
        frames.into_iter().map(snapshot).collect()
    }

    /// Whether pending requests keep the page from settling; requests older than `age` are assumed to never end.
    pub fn is_busy(&self, age: Duration) -> bool {
        self.in_flight.values().any(|request| !request.is_background && request.since.elapsed() < age)
    }
}

impl Tab {
    pub fn new(id: String, session: Arc<str>, wire: Arc<CdpConnection>, policy: DialogPolicy) -> Self {
        let state = TabState { policy, ..TabState::default() };
        Self { id, session, cdp: wire, state: Mutex::new(state), changed: watch::Sender::new(0) }
    }

    pub fn state(&self) -> MutexGuard<'_, TabState> {
        // A panic while holding the lock leaves no inconsistent state that matters.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// All frames, the main one first, parents before children.
    pub fn frames(&self) -> Vec<FrameSnapshot> {
        self.state().frames_in_order(&self.id)
    }

    pub fn change<T>(&self, with: impl FnOnce(&mut TabState) -> T) -> T {
        let result = with(&mut self.state());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    /// Marks the tab as lost and fails all pending commands.
    pub fn mark_lost(&self, why: LossReason) {
        self.change(|state| state.loss = state.loss.or(Some(why)));
        self.cdp.fail_session(&self.session, why);
    }

    pub fn check(&self) -> Result<(), ToolError> {
        self.state().loss.map_or(Ok(()), |why| Err(why.error()))
    }

    /// Waits until `done` returns a value. `done` may also return when to check again although nothing has changed.
    pub async fn wait_for<T>(
        &self,
        deadline: Instant,
        mut done: impl FnMut(&TabState) -> Result<T, Option<Instant>>,
    ) -> Result<T, ToolError> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            self.check()?;
            let retry_at = match done(&self.state()) {
                Ok(result) => return Ok(result),
                Err(again) => again.unwrap_or(deadline).min(deadline),
            };
            if Instant::now() >= deadline {
                return Err(ToolError::new(Kind::Timeout, "Timed out waiting for the page."));
            }
            let _ = tokio::time::timeout_at(retry_at.into(), changed.changed()).await;
        }
    }
}
