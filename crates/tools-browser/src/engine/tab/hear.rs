//! Events of the browser that concern a tab.

use super::{ENDLESS, Flying, Frame, Gone, LEAVING, State, Tab};
use crate::engine::rings::cut;
use crate::engine::wire::Event;
use crate::engine::{ConsoleLine, Dialog, DialogPolicy, Node, Request, scheme};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More frames than this are not followed.
const FRAMES: usize = 500;
/// More requests than this at once are not followed.
const FLYING: usize = 2_000;
/// How long a request may take to be heard of once its navigation has begun.
const GRACE: Duration = Duration::from_millis(1_200);
/// More dialogs than this within the time are no dialogue any more.
const FLOOD: (u32, Duration) = (40, Duration::from_secs(10));
/// Requests of a page that runs by its scripts.
const LIVELY: [&str; 4] = ["XHR", "Fetch", "WebSocket", "EventSource"];

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
struct OfFrame {
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
struct Intercepted {
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChooserOpened {
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
struct OfRequest {
    request_id: String,
    request: Option<Asked>,
    response: Option<Answered>,
    redirect_response: Option<Answered>,
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
struct Asked {
    url: String,
    method: String,
}

#[derive(Deserialize)]
struct Answered {
    status: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called {
    #[serde(rename = "type")]
    kind: String,
    args: Vec<Remote>,
    stack_trace: Option<Stack>,
}

#[derive(Deserialize)]
struct Remote {
    value: Option<Value>,
    description: Option<String>,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    call_frames: Vec<Place>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    url: String,
    line_number: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thrown {
    exception_details: Details,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    text: String,
    exception: Option<Remote>,
    url: Option<String>,
    line_number: i64,
}

#[derive(Deserialize)]
struct Logged {
    entry: Entry,
}

#[derive(Deserialize)]
struct Entry {
    level: String,
    text: String,
    url: Option<String>,
}

impl Tab {
    /// Takes note of an event of one of the tab's sessions.
    pub fn hear(&self, session: &Arc<str>, event: &Event<'_>) {
        match event.method.split_once('.') {
            Some(("Page", name)) => self.hear_page(session, name, event),
            Some(("Network", name)) => self.hear_network(session, name, event),
            Some(("Runtime" | "Log", name)) => self.hear_console(name, event),
            Some(("Input", "dragIntercepted")) => {
                if let Some(Intercepted { data }) = event.read() {
                    self.change(|state| state.dragged = Some(data));
                }
            }
            Some(("Inspector", "targetCrashed")) if *session == self.session => self.gone(Gone::Crashed),
            Some(("Inspector", "targetCrashed")) => self.wire.lose(session, Gone::FrameCrashed),
            Some(("Inspector", "targetReloadedAfterCrash")) => self.wire.found(session),
            _ => {}
        }
    }

    fn hear_page(&self, session: &Arc<str>, name: &str, event: &Event<'_>) {
        match name {
            "frameNavigated" => {
                if let Some(FrameNavigated { frame }) = event.read() {
                    self.navigated(session, frame);
                }
            }
            "fileChooserOpened" => {
                if let Some(ChooserOpened { backend_node_id: Some(id) }) = event.read() {
                    let field = Node { session: Arc::clone(session), id };
                    self.change(|state| {
                        let many = state.chooser.as_ref().map_or(0, |(many, _)| *many);
                        state.chooser = Some((many + 1, field));
                    });
                }
            }
            "javascriptDialogOpening" => {
                if let Some(dialog) = event.read() {
                    self.answer(session, dialog);
                }
            }
            _ => {
                if let Some(of) = event.read::<OfFrame>() {
                    self.change(|state| state.frame_event(&self.id, session, name, of));
                }
            }
        }
    }

    fn navigated(&self, session: &Arc<str>, frame: FrameInfo) {
        if scheme::is_forbidden(&frame.url) {
            tracing::warn!(url = frame.url, "a page went where no page may go; its tab is closed");
            self.wire.post(None, "Target.closeTarget", json!({"targetId": self.id}));
        }
        self.change(|state| {
            if frame.id == self.id {
                state.url.clone_from(&frame.url);
                state.moves += 1;
                state.leaving = None;
                state.start_document(&frame.loader);
                // Frames of the document before are gone; those of the new one come after this.
                state.frames.retain(|id, _| *id == frame.id);
            }
            state.add_frame(frame.id, session, frame.parent, frame.url);
        });
    }

    fn answer(&self, session: &Arc<str>, dialog: DialogOpening) {
        let (accepted, text, endless) = self.change(|state| {
            let accepted = match &state.policy {
                DialogPolicy::Careful => matches!(dialog.kind.as_str(), "alert" | "beforeunload"),
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
                message: cut(dialog.message),
                accepted,
            });
            (accepted, text, state.flooded())
        });
        let mut params = json!({"accept": accepted});
        if let (Some(text), Value::Object(members)) = (text, &mut params) {
            members.insert("promptText".to_owned(), text.into());
        }
        self.wire.post(Some(session), "Page.handleJavaScriptDialog", params);
        if endless {
            tracing::warn!("a page shows dialogs without end; its tab is closed");
            self.wire.post(Some(session), "Runtime.terminateExecution", json!({}));
            self.wire.post(None, "Target.closeTarget", json!({"targetId": self.id}));
            self.gone(Gone::Flooding);
        }
    }

    fn hear_network(&self, session: &Arc<str>, name: &str, event: &Event<'_>) {
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
        if let Some(of) = event.read::<OfRequest>() {
            self.change(|state| state.request_event(&self.id, session, name, of));
        }
    }

    fn hear_console(&self, name: &str, event: &Event<'_>) {
        let line = match name {
            "consoleAPICalled" => event.read::<Called>().map(|called| {
                let words: Vec<String> = called.args.into_iter().map(Remote::text).collect();
                let place = called.stack_trace.and_then(|stack| stack.call_frames.into_iter().next());
                let place = place.map(|place| format!("{}:{}", place.url, place.line_number + 1));
                ConsoleLine { serial: 0, level: called.kind, text: cut(words.join(" ")), place }
            }),
            "exceptionThrown" => event.read::<Thrown>().map(|Thrown { exception_details: details }| {
                let text = details.exception.and_then(|thrown| thrown.description).unwrap_or(details.text);
                let place = details.url.map(|url| format!("{url}:{}", details.line_number + 1));
                ConsoleLine { serial: 0, level: "exception".to_owned(), text: cut(text), place }
            }),
            "entryAdded" => event.read::<Logged>().map(|Logged { entry }| ConsoleLine {
                serial: 0,
                level: entry.level,
                text: cut(entry.text),
                place: entry.url,
            }),
            _ => None,
        };
        if let Some(line) = line {
            self.change(|state| state.console.push(line));
        }
    }
}

impl Remote {
    fn text(self) -> String {
        match (self.value, self.description) {
            (Some(Value::String(text)), _) => text,
            (Some(value), _) => value.to_string(),
            (None, Some(description)) => description,
            (None, None) => self.kind,
        }
    }
}

impl State {
    pub fn add_frame(&mut self, id: String, session: &Arc<str>, parent: Option<String>, url: String) {
        let serial = self.frames.values().map(|frame| frame.serial + 1).max().unwrap_or(0);
        let serial = self.frames.get(&id).map_or(serial, |frame| frame.serial);
        let parent = parent.or_else(|| self.frames.get(&id)?.parent.clone());
        if self.frames.len() < FRAMES {
            self.frames.insert(id, Frame { session: Arc::clone(session), parent, url, serial });
        }
    }

    /// Counts a dialog; true when there are more than a person would bear.
    fn flooded(&mut self) -> bool {
        let (since, count) =
            self.flood.filter(|(since, _)| since.elapsed() < FLOOD.1).unwrap_or((Instant::now(), 0));
        self.flood = Some((since, count + 1));
        count + 1 > FLOOD.0
    }

    fn start_document(&mut self, loader: &str) {
        if self.loader != loader {
            loader.clone_into(&mut self.loader);
            (self.content_loaded, self.loaded, self.lively) = (false, false, false);
            self.flying.retain(|_, request| request.loader == loader);
            self.stirred = Some(Instant::now());
        }
    }

    fn frame_event(&mut self, main: &str, session: &Arc<str>, name: &str, of: OfFrame) {
        let is_main = of.frame_id == main;
        match name {
            "frameAttached" => self.add_frame(of.frame_id, session, of.parent_frame_id, String::new()),
            // It goes on in another process.
            "frameDetached" if of.reason == "swap" => {}
            "frameDetached" => drop(self.frames.remove(&of.frame_id)),
            "navigatedWithinDocument" => {
                if is_main {
                    self.url.clone_from(&of.url);
                    self.moves += 1;
                }
                if let Some(frame) = self.frames.get_mut(&of.frame_id) {
                    frame.url = of.url;
                }
            }
            "frameRequestedNavigation" | "frameScheduledNavigation" if is_main => {
                self.leaving = Some(Instant::now())
            }
            // It has begun, or was given up. Its request is heard of another way, which may take a moment longer.
            "frameClearedScheduledNavigation" if is_main => {
                self.leaving = Instant::now().checked_sub(LEAVING.saturating_sub(GRACE));
            }
            "frameStoppedLoading" if is_main => self.leaving = None,
            "lifecycleEvent" if is_main => {
                if of.name == "init" || self.loader.is_empty() {
                    self.start_document(&of.loader_id);
                }
                if of.loader_id == self.loader {
                    self.content_loaded |= matches!(of.name.as_str(), "DOMContentLoaded" | "load");
                    self.loaded |= of.name == "load";
                }
            }
            _ => {}
        }
    }

    fn request_event(&mut self, main: &str, session: &Arc<str>, name: &str, of: OfRequest) {
        let flying = self.flying.get(&of.request_id).map(|request| request.serial);
        let mut known = flying.and_then(|serial| self.requests.get_mut(serial));
        match name {
            "requestWillBeSent" | "webSocketCreated" => {
                if let (Some(known), Some(before)) = (known, &of.redirect_response) {
                    (known.status, known.done) = (Some(before.status), true);
                }
                let kind = if name == "webSocketCreated" { "WebSocket".to_owned() } else { of.kind };
                let asked = of.request.unwrap_or(Asked { url: of.url, method: "GET".to_owned() });
                // Addresses that carry their content were never sent anywhere.
                if asked.url.starts_with("data:") || self.flying.len() > FLYING {
                    return;
                }
                let endless = ENDLESS.contains(&kind.as_str());
                self.lively |= LIVELY.contains(&kind.as_str());
                let serial = self.requests.push(Request {
                    serial: 0,
                    session: Arc::clone(session),
                    id: of.request_id.clone(),
                    method: asked.method,
                    url: cut(asked.url),
                    kind,
                    status: None,
                    failed: None,
                    bytes: 0,
                    done: false,
                });
                self.flying.insert(
                    of.request_id,
                    Flying { serial, since: Instant::now(), endless, loader: of.loader_id },
                );
            }
            "responseReceived" | "webSocketHandshakeResponseReceived" => {
                let status = of.response.map(|response| response.status);
                if let Some(known) = &mut known {
                    known.status = status;
                }
                if of.kind == "Document" && of.frame_id.as_deref() == Some(main) {
                    self.status = status;
                }
            }
            "webSocketFrameError" => {
                if let Some(known) = known {
                    known.failed = Some(of.error_message);
                }
            }
            // The end, well or not.
            _ => {
                if let Some(known) = known {
                    known.done = true;
                    known.bytes = of.encoded_data_length as u64;
                    if name == "loadingFailed" {
                        known.failed = Some(of.error_text);
                    }
                }
                self.flying.remove(&of.request_id);
            }
        }
        self.stirred = Some(Instant::now());
    }
}
