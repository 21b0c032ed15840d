//! The way back to a client, in each era.

use crate::client::{Client, ability_for};
use crate::session::Session;
use octo_model::{Json, Members};
use octo_toolkit::{Ask, BoxFuture, Peer};
use octo_wire::Level;
use octo_wire::{Message, meta};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};

/// What leaves for a client on one stream. Notices are dropped when it is full, answers and questions wait.
pub type Outbox = mpsc::Sender<Message>;

/// Log messages are sent only to clients that asked for their level.
fn wanted(method: &str, params: &Members, level: Option<Level>) -> bool {
    if method != "notifications/message" {
        return true;
    }
    let of_message = params.text("level").and_then(|text| Level::parse(&text));
    matches!((level, of_message), (Some(wanted), Some(level)) if level >= wanted)
}

/// The message of a notice of progress, or its numbers.
fn in_words(progress: &Members) -> String {
    let number = |key: &str| progress.get(key).map(|value| value.as_str().to_owned());
    let numbers = || match (number("progress").unwrap_or_default(), number("total")) {
        (done, Some(total)) => format!("{done} of {total}"),
        (done, None) => done,
    };
    progress.text("message").filter(|message| !message.is_empty()).unwrap_or_else(numbers)
}

fn able(capabilities: &Members, method: &str) -> bool {
    ability_for(method).is_some_and(|ability| capabilities.get(ability).is_some())
}

/// A legacy client: it can be asked in the middle of a call.
pub struct LegacyPeer {
    pub session: Arc<Session>,
    pub out: Outbox,
}

impl Peer for LegacyPeer {
    fn capabilities(&self) -> &Members {
        &self.session.client.capabilities
    }

    fn notify(&self, method: &str, params: Members) {
        if wanted(method, &params, self.session.level()) {
            let _ = self.out.try_send(Message::Notification { method: method.to_owned(), params });
        }
    }

    fn ask<'a>(&'a self, method: &'a str, params: Members) -> BoxFuture<'a, Result<Members, Ask>> {
        Box::pin(async move {
            if !able(self.capabilities(), method) {
                return Err(Ask::Unable);
            }
            self.session.ask(&self.out, method, params).await
        })
    }

    fn key(&self) -> u64 {
        self.session.client.key
    }
}

/// A question that waits for the client's next request.
pub struct Question {
    pub method: String,
    pub params: Members,
    pub answer: oneshot::Sender<Result<Members, Ask>>,
}

impl Question {
    /// As it stands in `inputRequests`.
    pub fn to_json(&self) -> Json {
        Members::new().with("method", self.method.as_str()).with("params", self.params.clone()).to_json()
    }
}

/// A modern client: a question ends its request, and the answer comes with the next one.
pub struct ModernPeer {
    pub client: Client,
    /// Changes when a parked call goes on under another request.
    pub out: Mutex<Outbox>,
    pub questions: mpsc::UnboundedSender<Question>,
    /// Whether the client wants to hear how far the call is.
    pub progress: bool,
    /// How far the call is, in words.
    pub told: watch::Sender<String>,
}

impl ModernPeer {
    pub fn new(client: &Client, params: &Members, out: Outbox) -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (ask, questions) = mpsc::unbounded_channel();
        let progress = params.inner("_meta", meta::PROGRESS_TOKEN).is_some();
        let (client, out, told) = (client.clone(), Mutex::new(out), watch::Sender::default());
        (Self { client, out, questions: ask, progress, told }, questions)
    }

    pub fn redirect(&self, out: Outbox) {
        *self.out.lock().unwrap_or_else(PoisonError::into_inner) = out;
    }
}

impl Peer for ModernPeer {
    fn capabilities(&self) -> &Members {
        &self.client.capabilities
    }

    fn notify(&self, method: &str, params: Members) {
        let progress = method == "notifications/progress";
        if progress {
            self.told.send_replace(in_words(&params));
        }
        if (!progress || self.progress) && wanted(method, &params, self.client.level) {
            let out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = out.try_send(Message::Notification { method: method.to_owned(), params });
        }
    }

    fn ask<'a>(&'a self, method: &'a str, params: Members) -> BoxFuture<'a, Result<Members, Ask>> {
        Box::pin(async move {
            if !able(self.capabilities(), method) {
                return Err(Ask::Unable);
            }
            let (answer, answered) = oneshot::channel();
            let question = Question { method: method.to_owned(), params, answer };
            self.questions.send(question).map_err(|_| Ask::Gone)?;
            answered.await.unwrap_or(Err(Ask::Gone))
        })
    }

    fn key(&self) -> u64 {
        self.client.key
    }
}
