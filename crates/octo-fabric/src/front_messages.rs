//! Messages to all fronts, one of which may take it.

use crate::address::front_messages;
use crate::frame::Frame;
use crate::node::Node;
use crate::{BusError, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use octo_model::{BoxFuture, Json};
use octo_ports::random_id::new_id;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// Kinds of messages.
const MESSAGE: u8 = 50;
const TAKEN: u8 = 51;
/// Messages that one front handles at the same time.
const MAX_CONCURRENT_MESSAGES: usize = 64;

#[derive(Serialize, Deserialize)]
struct Envelope {
    /// The process that sent it, which gets it, too.
    sender: String,
    message: Json,
}

/// Handles a message; returns whether it was for this front alone.
pub type FrontMessageHandler = Box<dyn Fn(Json) -> BoxFuture<'static, bool> + Send + Sync>;

/// Sends messages to the other fronts.
pub struct FrontMessages {
    node: Arc<Node>,
    /// Distinguishes this process from others of the same name.
    sender: String,
}

/// Handles messages of the other fronts, until it is dropped.
pub struct FrontMessageServer(
    #[expect(dead_code, reason = "ends the task when dropped")] AbortOnDropHandle<()>,
);

impl FrontMessages {
    pub fn new(node: &Arc<Node>) -> Result<Self, BusError> {
        let sender = new_id("").map_err(|error| BusError::Refused(error.to_string()))?;
        Ok(Self { node: Arc::clone(node), sender })
    }

    /// Sends a message without waiting for whom it is for.
    pub async fn send(&self, message: Json) -> Result<(), BusError> {
        let frame = self.frame(message)?;
        self.node.bus().publish(Message::new(front_messages(), None, frame)).await
    }

    /// Returns whether a front has taken the message within `wait`.
    pub async fn offer(&self, message: Json, wait: Duration) -> Result<bool, BusError> {
        let frame = self.frame(message)?;
        let mut address = self.node.reply_address(&front_messages())?;
        let request = Message::new(front_messages(), Some(address.subject.clone()), frame);
        self.node.bus().publish(request).await?;
        let deadline = tokio::time::Instant::now() + wait;
        while let Ok(Some(reply)) = tokio::time::timeout_at(deadline, address.receiver.recv()).await {
            if reply.no_responders {
                return Ok(false);
            }
            if matches!(Frame::decode(reply.payload), Ok(Frame::Whole { kind: TAKEN, .. })) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn frame(&self, message: Json) -> Result<Bytes, BusError> {
        let envelope = Envelope { sender: self.sender.clone(), message };
        let body = serde_json::to_vec(&envelope).map_err(|error| BusError::Refused(error.to_string()))?;
        let frame = Frame::Whole { sequence: 0, kind: MESSAGE, body: body.into() }.encode();
        if frame.len() > self.node.bus().max_payload() {
            return Err(BusError::TooLarge(frame.len()));
        }
        Ok(frame)
    }

    /// Handles the messages of others.
    pub async fn serve(&self, handler: FrontMessageHandler) -> Result<FrontMessageServer, BusError> {
        let messages = self.node.bus().subscribe(&front_messages(), None).await?;
        let (node, sender) = (Arc::clone(&self.node), self.sender.clone());
        let task = tokio::spawn(async move {
            let handle = |message| handle(&node, &sender, &handler, message);
            messages.for_each_concurrent(MAX_CONCURRENT_MESSAGES, handle).await;
        });
        Ok(FrontMessageServer(AbortOnDropHandle::new(task)))
    }
}

async fn handle(node: &Arc<Node>, sender: &str, handler: &FrontMessageHandler, message: Message) {
    let Ok(Frame::Whole { kind: MESSAGE, body, .. }) = Frame::decode(message.payload) else { return };
    let Ok(envelope) = serde_json::from_slice::<Envelope>(&body) else { return };
    if envelope.sender == sender || !handler(envelope.message).await {
        return;
    }
    if let Some(reply) = message.reply {
        let taken = Frame::Whole { sequence: 0, kind: TAKEN, body: Bytes::new() };
        // Without it, the message is sent again.
        let _ = node.bus().publish(Message::new(reply, None, taken.encode())).await;
    }
}
