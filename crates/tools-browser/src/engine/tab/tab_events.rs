//! Browser events of a tab.

use super::{
    BACKGROUND_REQUEST_KINDS, Frame, InFlightRequest, LossReason, NAVIGATION_START_TIMEOUT, Tab, TabState,
};
use crate::engine::cdp_connection::Event;
use crate::engine::ring_buffer::truncate;
use crate::engine::{ConsoleLine, Dialog, DialogPolicy, Node, Request, url_scheme};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of tracked frames.
const MAX_FRAMES: usize = 500;
/// Maximum number of tracked pending requests.
const MAX_IN_FLIGHT: usize = 2_000;
/// Time between the start of a navigation and the event of its request.
const REQUEST_START_GRACE: Duration = Duration::from_millis(1_200);
/// Dialog rate above which a tab is closed.
const MAX_DIALOG_RATE: (u32, Duration) = (40, Duration::from_secs(10));
/// Kinds of requests made by scripts.
const SCRIPT_REQUEST_KINDS: [&str; 4] = ["XHR", "Fetch", "WebSocket", "EventSource"];

#[derive(Deserialize)]
struct FrameInfo {
    id: String,
    #[serde(rename = "parentId")]
    parent: Option<String>,
    #[serde(rename = "loaderId")]
    loader: String,
    url: String,
}

#[derive(Deserialize)]
struct FrameNavigated {
    frame: FrameInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameEvent {
    frame_id: String,
    parent_frame_id: Option<String>,
    #[serde(default)]
    url: String,
    #[serde(default)]
    loader_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct DragIntercepted {
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileChooserOpened {
    backend_node_id: Option<i64>,
}

#[derive(Deserialize)]
struct DialogOpening {
    message: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestEvent {
    request_id: String,
    request: Option<RequestInfo>,
    response: Option<ResponseInfo>,
    redirect_response: Option<ResponseInfo>,
    #[serde(rename = "type", default)]
    kind: String,
    frame_id: Option<String>,
    #[serde(default)]
    loader_id: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    encoded_data_length: f64,
    #[serde(default)]
    error_text: String,
    #[serde(default)]
    error_message: String,
}

#[derive(Deserialize)]
struct RequestInfo {
    url: String,
    method: String,
}

#[derive(Deserialize)]
struct ResponseInfo {
    status: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConsoleApiCalled {
    #[serde(rename = "type")]
    kind: String,
    args: Vec<ConsoleArgument>,
    stack_trace: Option<StackTrace>,
}

#[derive(Deserialize)]
struct ConsoleArgument {
    value: Option<Value>,
    description: Option<String>,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StackTrace {
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    url: String,
    line_number: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExceptionThrown {
    exception_details: ExceptionDetails,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExceptionDetails {
    text: String,
    exception: Option<ConsoleArgument>,
    url: Option<String>,
    line_number: i64,
}

#[derive(Deserialize)]
struct LogEntryAdded {
    entry: LogEntry,
}

#[derive(Deserialize)]
struct LogEntry {
    level: String,
    text: String,
    url: Option<String>,
}

impl Tab {
    /// Handles an event of one of the tab's sessions.
    pub fn handle_event(&self, session: &Arc<str>, event: &Event<'_>) {
        match event.method.split_once('.') {
            Some(("Page", name)) => self.handle_page_event(session, name, event),
            Some(("Network", name)) => self.handle_network_event(session, name, event),
            Some(("Runtime" | "Log", name)) => self.handle_console_event(name, event),
            Some(("Input", "dragIntercepted")) => {
                if let Some(DragIntercepted { data }) = event.read() {
                    self.change(|state| state.drag_data = Some(data));
                }
            }
            Some(("Inspector", "targetCrashed")) if *session == self.session => {
                self.mark_lost(LossReason::Crashed)
            }
            Some(("Inspector", "targetCrashed")) => self.cdp.fail_session(session, LossReason::FrameCrashed),
            Some(("Inspector", "targetReloadedAfterCrash")) => self.cdp.restore_session(session),
            _ => {}
        }
    }

    fn handle_page_event(&self, session: &Arc<str>, name: &str, event: &Event<'_>) {
        match name {
            "frameNavigated" => {
                if let Some(FrameNavigated { frame }) = event.read() {
                    self.on_frame_navigated(session, frame);
                }
            }
            "fileChooserOpened" => {
                if let Some(FileChooserOpened { backend_node_id: Some(id) }) = event.read() {
                    let field = Node { session: Arc::clone(session), id };
                    self.change(|state| {
                        let many = state.file_chooser.as_ref().map_or(0, |(many, _)| *many);
                        state.file_chooser = Some((many + 1, field));
                    });
                }
            }
            "javascriptDialogOpening" => {
                if let Some(dialog) = event.read() {
                    self.answer_dialog(session, dialog);
                }
            }
            _ => {
                if let Some(of) = event.read::<FrameEvent>() {
                    self.change(|state| state.frame_event(&self.id, session, name, of));
                }
            }
        }
    }

    fn on_frame_navigated(&self, session: &Arc<str>, frame: FrameInfo) {
        if url_scheme::is_forbidden(&frame.url) {
            tracing::warn!(url = frame.url, "page navigated to a forbidden URL; closing its tab");
            self.cdp.post(None, "Target.closeTarget", json!({"targetId": self.id}));
        }
        self.change(|state| {
            if frame.id == self.id {
                state.url.clone_from(&frame.url);
                state.navigation_count += 1;
                state.pending_navigation = None;
                state.start_document(&frame.loader);
                // Frames of the previous document are gone; those of the new one are reported after this.
                state.frames.retain(|id, _| *id == frame.id);
            }
            state.add_frame(frame.id, session, frame.parent, frame.url);
        });
    }

    fn answer_dialog(&self, session: &Arc<str>, dialog: DialogOpening) {
        let (accepted, text, endless) = self.change(|state| {
            let accepted = match &state.policy {
                DialogPolicy::AcceptAlerts => matches!(dialog.kind.as_str(), "alert" | "beforeunload"),
                DialogPolicy::Accept(_) => true,
                DialogPolicy::Dismiss => false,
            };
            let text = match &state.policy {
                DialogPolicy::Accept(Some(text)) if dialog.kind == "prompt" => Some(text.clone()),
                _ => None,
            };
            state.dialogs.push(Dialog {
                serial: 0,
                kind: dialog.kind,
                message: truncate(dialog.message),
                accepted,
            });
            (accepted, text, state.count_dialog())
        });
        let mut params = json!({"accept": accepted});
        if let (Some(text), Value::Object(members)) = (text, &mut params) {
            members.insert("promptText".to_owned(), text.into());
        }
        self.cdp.post(Some(session), "Page.handleJavaScriptDialog", params);
        if endless {
            tracing::warn!("page keeps opening dialogs; closing its tab");
            self.cdp.post(Some(session), "Runtime.terminateExecution", json!({}));
            self.cdp.post(None, "Target.closeTarget", json!({"targetId": self.id}));
            self.mark_lost(LossReason::DialogFlood);
        }
    }

    fn handle_network_event(&self, session: &Arc<str>, name: &str, event: &Event<'_>) {
        let known = matches!(
            name,
            "requestWillBeSent"
                | "responseReceived"
                | "loadingFinished"
                | "loadingFailed"
                | "webSocketCreated"
                | "webSocketHandshakeResponseReceived"
                | "webSocketFrameError"
                | "webSocketClosed"
        );
        if !known {
            return;
        }
        if let Some(of) = event.read::<RequestEvent>() {
            self.change(|state| state.request_event(&self.id, session, name, of));
        }
    }

    fn handle_console_event(&self, name: &str, event: &Event<'_>) {
        let line = match name {
            "consoleAPICalled" => event.read::<ConsoleApiCalled>().map(|called| {
                let words: Vec<String> = called.args.into_iter().map(ConsoleArgument::text).collect();
                let place = called.stack_trace.and_then(|stack| stack.call_frames.into_iter().next());
                let place = place.map(|place| format!("{}:{}", place.url, place.line_number + 1));
                ConsoleLine {
                    serial: 0,
                    level: called.kind,
                    text: truncate(words.join(" ")),
                    location: place,
                }
            }),
            "exceptionThrown" => {
                event.read::<ExceptionThrown>().map(|ExceptionThrown { exception_details: details }| {
                    let text =
                        details.exception.and_then(|thrown| thrown.description).unwrap_or(details.text);
                    let place = details.url.map(|url| format!("{url}:{}", details.line_number + 1));
                    ConsoleLine {
                        serial: 0,
                        level: "exception".to_owned(),
                        text: truncate(text),
                        location: place,
                    }
                })
            }
            "entryAdded" => event.read::<LogEntryAdded>().map(|LogEntryAdded { entry }| ConsoleLine {
                serial: 0,
                level: entry.level,
                text: truncate(entry.text),
                location: entry.url,
            }),
            _ => None,
        };
        if let Some(line) = line {
            self.change(|state| state.console.push(line));
        }
    }
}

impl ConsoleArgument {
    fn text(self) -> String {
        match (self.value, self.description) {
            (Some(Value::String(text)), _) => text,
            (Some(value), _) => value.to_string(),
            (None, Some(description)) => description,
            (None, None) => self.kind,
        }
    }
}

impl TabState {
    pub fn add_frame(&mut self, id: String, session: &Arc<str>, parent: Option<String>, url: String) {
        let serial = self.frames.values().map(|frame| frame.serial + 1).max().unwrap_or(0);
        let serial = self.frames.get(&id).map_or(serial, |frame| frame.serial);
        let parent = parent.or_else(|| self.frames.get(&id)?.parent.clone());
        if self.frames.len() < MAX_FRAMES {
            self.frames.insert(id, Frame { session: Arc::clone(session), parent, url, serial });
        }
    }

    /// Counts a dialog; true if the rate limit is exceeded.
    fn count_dialog(&mut self) -> bool {
        let (since, count) = self
            .dialog_burst
            .filter(|(since, _)| since.elapsed() < MAX_DIALOG_RATE.1)
            .unwrap_or((Instant::now(), 0));
        self.dialog_burst = Some((since, count + 1));
        count + 1 > MAX_DIALOG_RATE.0
    }

    fn start_document(&mut self, loader: &str) {
        if self.loader != loader {
            loader.clone_into(&mut self.loader);
            (self.content_loaded, self.loaded, self.has_script_requests) = (false, false, false);
            self.in_flight.retain(|_, request| request.loader == loader);
            self.last_network_activity = Some(Instant::now());
        }
    }

    fn frame_event(&mut self, main: &str, session: &Arc<str>, name: &str, event: FrameEvent) {
        let is_main = event.frame_id == main;
        match name {
            "frameAttached" => self.add_frame(event.frame_id, session, event.parent_frame_id, String::new()),
            // It continues in another process.
            "frameDetached" if event.reason == "swap" => {}
            "frameDetached" => drop(self.frames.remove(&event.frame_id)),
            "navigatedWithinDocument" => {
                if is_main {
                    self.url.clone_from(&event.url);
                    self.navigation_count += 1;
                }
                if let Some(frame) = self.frames.get_mut(&event.frame_id) {
                    frame.url = event.url;
                }
            }
            "frameRequestedNavigation" | "frameScheduledNavigation" if is_main => {
                self.pending_navigation = Some(Instant::now())
            }
            // The navigation has started or was abandoned. The event of its request may arrive a moment later.
            "frameClearedScheduledNavigation" if is_main => {
                self.pending_navigation =
                    Instant::now().checked_sub(NAVIGATION_START_TIMEOUT.saturating_sub(REQUEST_START_GRACE));
            }
            "frameStoppedLoading" if is_main => self.pending_navigation = None,
            "lifecycleEvent" if is_main => {
                if event.name == "init" || self.loader.is_empty() {
                    self.start_document(&event.loader_id);
                }
                if event.loader_id == self.loader {
                    self.content_loaded |= matches!(event.name.as_str(), "DOMContentLoaded" | "load");
                    self.loaded |= event.name == "load";
                }
            }
            _ => {}
        }
    }

    fn request_event(&mut self, main: &str, session: &Arc<str>, name: &str, event: RequestEvent) {
        let known_serial = self.in_flight.get(&event.request_id).map(|request| request.serial);
        let mut known = known_serial.and_then(|serial| self.requests.get_mut(serial));
        match name {
            "requestWillBeSent" | "webSocketCreated" => {
                if let (Some(known), Some(before)) = (known, &event.redirect_response) {
                    (known.status, known.done) = (Some(before.status), true);
                }
                let kind = if name == "webSocketCreated" { "WebSocket".to_owned() } else { event.kind };
                let info = event.request.unwrap_or(RequestInfo { url: event.url, method: "GET".to_owned() });
                // data: URLs are not sent anywhere.
                if info.url.starts_with("data:") || self.in_flight.len() > MAX_IN_FLIGHT {
                    return;
                }
                let endless = BACKGROUND_REQUEST_KINDS.contains(&kind.as_str());
                self.has_script_requests |= SCRIPT_REQUEST_KINDS.contains(&kind.as_str());
                let serial = self.requests.push(Request {
                    serial: 0,
                    session: Arc::clone(session),
                    id: event.request_id.clone(),
                    method: info.method,
                    url: truncate(info.url),
                    kind,
                    status: None,
                    error: None,
                    bytes: 0,
                    done: false,
                });
                self.in_flight.insert(
                    event.request_id,
                    InFlightRequest {
                        serial,
                        since: Instant::now(),
                        is_background: endless,
                        loader: event.loader_id,
                    },
                );
            }
            "responseReceived" | "webSocketHandshakeResponseReceived" => {
                let status = event.response.map(|response| response.status);
                if let Some(known) = &mut known {
                    known.status = status;
                }
                if event.kind == "Document" && event.frame_id.as_deref() == Some(main) {
                    self.status = status;
                }
            }
            "webSocketFrameError" => {
                if let Some(known) = known {
                    known.error = Some(event.error_message);
                }
            }
            // Finished or failed.
            _ => {
                if let Some(known) = known {
                    known.done = true;
                    known.bytes = event.encoded_data_length as u64;
                    if name == "loadingFailed" {
                        known.error = Some(event.error_text);
                    }
                }
                self.in_flight.remove(&event.request_id);
            }
        }
        self.last_network_activity = Some(Instant::now());
    }
}
