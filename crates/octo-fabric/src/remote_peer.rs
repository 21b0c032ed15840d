//! The client of a call that runs on another node than the client's frontend.

use crate::call_message::Notification;
use octo_model::{BoxFuture, JsonObject};
use octo_toolkit::{AskError, Peer};
use tokio::sync::{mpsc, oneshot};

/// Messages to the client that wait to be sent. Further notifications are dropped.
const MAX_WAITING_MESSAGES: usize = 64;

pub(crate) struct RemotePeer {
    capabilities: JsonObject,
    client: u64,
    messages: mpsc::Sender<PeerMessage>,
}

/// A message to the client.
pub(crate) enum PeerMessage {
    Notification(Notification),
    Question { method: String, params: JsonObject, answer: oneshot::Sender<Result<JsonObject, AskError>> },
    TaskStarted,
}

impl RemotePeer {
    pub(crate) fn messages(&self) -> mpsc::Sender<PeerMessage> {
        self.messages.clone()
    }

    pub(crate) fn new(capabilities: JsonObject, client: u64) -> (Self, mpsc::Receiver<PeerMessage>) {
        let (messages, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        (Self { capabilities, client, messages }, receiver)
    }
}

/// Sends a question over a running call and waits for the answer.
pub(crate) async fn ask(
    messages: &mpsc::Sender<PeerMessage>,
    method: &str,
    params: JsonObject,
) -> Result<JsonObject, AskError> {
    let (answer, answered) = oneshot::channel();
    let question = PeerMessage::Question { method: method.to_owned(), params, answer };
    messages.send(question).await.map_err(|_| AskError::Gone)?;
    answered.await.unwrap_or(Err(AskError::Gone))
}

impl Peer for RemotePeer {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn notify(&self, method: &str, params: JsonObject) {
        let notification = Notification { method: method.to_owned(), params };
        let _ = self.messages.try_send(PeerMessage::Notification(notification));
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(ask(&self.messages, method, params))
    }

    fn task_started(&self) {
        let _ = self.messages.try_send(PeerMessage::TaskStarted);
    }

    fn key(&self) -> u64 {
        self.client
    }
}
