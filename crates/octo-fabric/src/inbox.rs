//! Replies to a node: one subscription, shared by all of its calls.

use crate::address::{inbox_of, scope_of};
use crate::frame::Frame;
use crate::{Bus, BusError, Message, Subject};
use futures_util::{FutureExt, StreamExt};
use octo_ports::random_id::new_id;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// Messages that wait for one call. A sender that does not wait for credit loses its call.
const MAX_WAITING_MESSAGES: usize = 256;

type Receivers = Mutex<HashMap<Arc<str>, mpsc::Sender<Message>>>;

pub(crate) struct Inbox {
    /// Nobody can guess it, nor the token of a call.
    subject: Subject,
    receivers: Arc<Receivers>,
    _dispatcher: AbortOnDropHandle<()>,
}

/// The part of an inbox that belongs to one call.
pub(crate) struct ReplyAddress {
    pub(crate) subject: Subject,
    pub(crate) receiver: mpsc::Receiver<Message>,
    token: Arc<str>,
    receivers: Arc<Receivers>,
}

impl Inbox {
    pub(crate) async fn open(bus: &Arc<dyn Bus>, node: &str) -> Result<Self, BusError> {
        let subject = inbox_of(node).child(random_token()?);
        let mut messages = bus.subscribe(&subject.child("*").child("*"), None).await?;
        let receivers: Arc<Receivers> = Arc::default();
        let (bus, known) = (Arc::clone(bus), Arc::clone(&receivers));
        let dispatcher = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                dispatch(message, &known, bus.as_ref());
            }
        });
        Ok(Self { subject, receivers, _dispatcher: AbortOnDropHandle::new(dispatcher) })
    }

    /// An address for the replies to a message to `to`.
    pub(crate) fn reply_address(&self, to: &Subject) -> Result<ReplyAddress, BusError> {
        let token: Arc<str> = random_token()?.into();
        let (sender, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        lock(&self.receivers).insert(Arc::clone(&token), sender);
        let (subject, receivers) =
            (self.subject.child(scope_of(to)).child(&token), Arc::clone(&self.receivers));
        Ok(ReplyAddress { subject, receiver, token, receivers })
    }
}

impl Drop for ReplyAddress {
    fn drop(&mut self) {
        lock(&self.receivers).remove(&self.token);
    }
}

fn dispatch(message: Message, receivers: &Receivers, bus: &dyn Bus) {
    let token = message.subject.last_token().to_owned();
    let mut receivers = lock(receivers);
    if let Some(receiver) = receivers.get(token.as_str()) {
        if receiver.try_send(message).is_err() {
            // The call has lost a message; without a sender it ends.
            receivers.remove(token.as_str());
        }
        return;
    }
    drop(receivers);
    // Not awaited: the sender asks again.
    if let Some(reply) = message.reply {
        let _ = bus.publish(Message::new(reply, None, Frame::Gone.encode())).now_or_never();
    }
}

fn random_token() -> Result<String, BusError> {
    new_id("").map_err(|error| BusError::Refused(error.to_string()))
}

fn lock(receivers: &Receivers) -> MutexGuard<'_, HashMap<Arc<str>, mpsc::Sender<Message>>> {
    receivers.lock().unwrap_or_else(PoisonError::into_inner)
}
