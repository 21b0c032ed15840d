//! Peers: the client's end of a call, in each era.

use crate::client_context::{ClientContext, required_capability};
use crate::legacy_session::Session;
use crate::shared_fronts::ParkedCall;
use octo_model::{CallId, Json, JsonObject};
use octo_toolkit::{AskError, BoxFuture, Peer};
use octo_wire::Level;
use octo_wire::{Message, meta};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};

/// Outgoing messages of one stream. Notifications are dropped if it is full; responses and requests wait.
pub type Outbox = mpsc::Sender<Message>;

pub const LOG_METHOD: &str = "notifications/message";

/// Whether a notification may be sent: log messages only at the level that the client requested.
pub fn passes_log_level(method: &str, params: &JsonObject, level: Option<Level>) -> bool {
    if method != LOG_METHOD {
        return true;
    }
    let of_message = params.text("level").and_then(|text| Level::parse(&text));
    matches!((level, of_message), (Some(wanted), Some(level)) if level >= wanted)
}

/// Message of a progress notification, or its numbers.
fn progress_text(progress: &JsonObject) -> String {
    let number = |key: &str| progress.get(key).map(|value| value.as_str().to_owned());
    let numbers = || match (number("progress").unwrap_or_default(), number("total")) {
        (done, Some(total)) => format!("{done} of {total}"),
        (done, None) => done,
    };
    progress.text("message").filter(|message| !message.is_empty()).unwrap_or_else(numbers)
}

fn can_ask(capabilities: &JsonObject, method: &str, params: &JsonObject) -> bool {
    let Some(declared) = required_capability(method).and_then(|ability| capabilities.get(ability)) else {
        return false;
    };
    !is_url_elicitation(method, params) || declared.member("url").is_some()
}

/// Whether a question sends a person to a URL, which only some clients support.
fn is_url_elicitation(method: &str, params: &JsonObject) -> bool {
    method == "elicitation/create" && params.text("mode").as_deref() == Some("url")
}

/// Only the legacy era has an id for such a question, and a notification when it is complete.
const ELICITATION_ID: &str = "elicitationId";
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// A legacy client: it can be asked within a call.
pub struct LegacyPeer {
    pub session: Arc<Session>,
    pub out: Outbox,
}

impl Peer for LegacyPeer {
    fn capabilities(&self) -> &JsonObject {
        &self.session.client.capabilities
    }

    fn notify(&self, method: &str, params: JsonObject) {
        if passes_log_level(method, &params, self.session.level()) {
            let _ = self.out.try_send(Message::Notification { method: method.to_owned(), params });
        }
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(self.ask_parked(method, params, None))
    }

    fn key(&self) -> u64 {
        self.session.client.key
    }
}

impl LegacyPeer {
    /// Asks on behalf of a call that another front could continue.
    pub async fn ask_parked(
        &self,
        method: &str,
        mut params: JsonObject,
        parked: Option<&ParkedCall>,
    ) -> Result<JsonObject, AskError> {
        if !can_ask(self.capabilities(), method, &params) {
            return Err(AskError::Unable);
        }
        if is_url_elicitation(method, &params) && params.get(ELICITATION_ID).is_none() {
            params.set(ELICITATION_ID, CallId::fresh().to_string().as_str());
        }
        self.session.ask(&self.out, method, params, parked).await
    }
}

/// A question that waits for the client's next request.
pub struct Question {
    pub method: String,
    pub params: JsonObject,
    pub answer: oneshot::Sender<Result<JsonObject, AskError>>,
}

impl Question {
    /// As an entry of `inputRequests`.
    pub fn to_json(&self) -> Json {
        JsonObject::new().with("method", self.method.as_str()).with("params", self.params.clone()).to_json()
    }
}

/// A modern client: a question ends its request, and the answer comes with the next one.
pub struct ModernPeer {
    pub client: ClientContext,
    /// Changes when a suspended call resumes under another request.
    pub out: Mutex<Outbox>,
    pub questions: mpsc::UnboundedSender<Question>,
    /// Whether the client requested progress notifications.
    pub wants_progress: bool,
    /// Latest progress, as text.
    pub progress_text: watch::Sender<String>,
    /// Whether the call goes on as a task of a server.
    pub is_upstream_task: AtomicBool,
}

impl ModernPeer {
    pub fn new(
        client: &ClientContext,
        params: &JsonObject,
        out: Outbox,
    ) -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (ask, questions) = mpsc::unbounded_channel();
        let wants_progress = params.inner("_meta", meta::PROGRESS_TOKEN).is_some();
        let (client, out, progress_text) = (client.clone(), Mutex::new(out), watch::Sender::default());
        let is_upstream_task = AtomicBool::default();
        (Self { client, out, questions: ask, wants_progress, progress_text, is_upstream_task }, questions)
    }

    pub fn redirect(&self, out: Outbox) {
        *self.out.lock().unwrap_or_else(PoisonError::into_inner) = out;
    }
}

impl Peer for ModernPeer {
    fn capabilities(&self) -> &JsonObject {
        &self.client.capabilities
    }

    fn notify(&self, method: &str, params: JsonObject) {
        if method == ELICITATION_COMPLETE {
            return;
        }
        let progress = method == "notifications/progress";
        if progress {
            self.progress_text.send_replace(progress_text(&params));
        }
        if (!progress || self.wants_progress) && passes_log_level(method, &params, self.client.level) {
            let out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = out.try_send(Message::Notification { method: method.to_owned(), params });
        }
    }

    fn ask<'a>(
        &'a self,
        method: &'a str,
        mut params: JsonObject,
    ) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async move {
            if !can_ask(self.capabilities(), method, &params) {
                return Err(AskError::Unable);
            }
            if is_url_elicitation(method, &params) {
                params.remove(ELICITATION_ID);
            }
            let (answer, answered) = oneshot::channel();
            let question = Question { method: method.to_owned(), params, answer };
            self.questions.send(question).map_err(|_| AskError::Gone)?;
            answered.await.unwrap_or(Err(AskError::Gone))
        })
    }

    fn task_started(&self) {
        self.is_upstream_task.store(true, Ordering::Relaxed);
    }

    fn key(&self) -> u64 {
        self.client.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_calls::mcp_fixture::modern_client;
    use octo_model::RpcError;
    use octo_wire::Revision;
    use serde_json::{Value, json};

    const CREATE: &str = "elicitation/create";

    fn question(name: Option<&str>) -> JsonObject {
        let mut params = json!({"mode": "url", "url": "https://x.test/", "message": "m"});
        if let Some(name) = name {
            params[ELICITATION_ID] = json!(name);
        }
        Json::from(params).members().unwrap()
    }

    fn value(params: &JsonObject) -> Value {
        params.to_json().to().unwrap()
    }

    #[tokio::test]
    async fn an_address_is_shown_only_by_clients_that_said_they_can() {
        for (elicitation, form, url) in [
            (json!({}), true, false),
            (json!({"form": {}}), true, false),
            (json!({"url": {}}), true, true),
            (json!({"form": {}, "url": {}}), true, true),
        ] {
            let capabilities = Json::from(json!({"elicitation": elicitation})).members().unwrap();
            assert_eq!(can_ask(&capabilities, CREATE, &JsonObject::new()), form, "{elicitation}");
            assert_eq!(can_ask(&capabilities, CREATE, &question(None)), url, "{elicitation}");
        }
        assert!(!can_ask(&JsonObject::new(), CREATE, &question(None)));
    }

    #[tokio::test]
    async fn a_modern_client_hears_no_names_and_no_ends_of_such_questions() {
        let (out, mut sent) = mpsc::channel(4);
        let client = modern_client("anna", json!({"elicitation": {"url": {}}}));
        let (peer, mut questions) = ModernPeer::new(&client, &JsonObject::new(), out);
        let answered = async {
            let question = questions.recv().await.unwrap();
            let shown = value(&question.params);
            question.answer.send(Ok(JsonObject::new().with("action", "accept"))).unwrap();
            shown
        };
        let (answer, shown) = tokio::join!(peer.ask(CREATE, question(Some("e1"))), answered);
        assert_eq!(shown, json!({"mode": "url", "url": "https://x.test/", "message": "m"}));
        assert_eq!(answer.unwrap().text("action").as_deref(), Some("accept"));
        peer.notify(ELICITATION_COMPLETE, JsonObject::new().with(ELICITATION_ID, "e1"));
        peer.notify("notifications/other", JsonObject::new());
        let Message::Notification { method, .. } = sent.recv().await.unwrap() else { panic!("no notice") };
        assert_eq!(method, "notifications/other");
    }

    #[tokio::test]
    async fn a_legacy_client_hears_both() {
        let (out, mut sent) = mpsc::channel(4);
        let client = ClientContext {
            revision: Revision::NEWEST_LEGACY,
            ..modern_client("anna", json!({"elicitation": {"url": {}}}))
        };
        let peer = LegacyPeer { session: Session::new(client), out };
        for given in [Some("e1"), None] {
            let answered = async {
                let Message::Request { id, params, .. } = sent.recv().await.unwrap() else {
                    panic!("no request")
                };
                let no = RpcError { code: 1, message: "no".to_owned(), data: None };
                peer.session.resolve_question(id.to_number().unwrap(), Err(no));
                params.text(ELICITATION_ID)
            };
            let (answer, name) = tokio::join!(peer.ask(CREATE, question(given)), answered);
            assert!(matches!(answer, Err(AskError::Refused(_))));
            assert!(name.is_some_and(|name| given.is_none_or(|given| given == name) && !name.is_empty()));
        }
        peer.notify(ELICITATION_COMPLETE, JsonObject::new().with(ELICITATION_ID, "e1"));
        let Message::Notification { method, params } = sent.recv().await.unwrap() else {
            panic!("no notice")
        };
        assert_eq!((method.as_str(), value(&params)), (ELICITATION_COMPLETE, json!({"elicitationId": "e1"})));
    }
}
