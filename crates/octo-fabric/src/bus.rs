//! The port between nodes: addressed messages, delivered at most once.

use bytes::Bytes;
use futures_util::Stream;
use octo_model::BoxFuture;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// Address of messages: tokens separated by dots. In a subscription, `*` is any token, and a final `>` is one or
/// more of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject(Arc<str>);

impl Subject {
    pub fn new(subject: impl Into<Arc<str>>) -> Self {
        Self(subject.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The subject with one more token.
    pub(crate) fn child(&self, token: impl fmt::Display) -> Self {
        Self::new(format!("{}.{token}", self.0))
    }

    pub(crate) fn last_token(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(_, token)| token)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone)]
pub struct Message {
    pub subject: Subject,
    /// Where replies go.
    pub reply: Option<Subject>,
    pub payload: Bytes,
    /// The bus itself answers that nobody received the message which named this subject for replies.
    pub no_responders: bool,
}

impl Message {
    pub fn new(subject: Subject, reply: Option<Subject>, payload: Bytes) -> Self {
        Self { subject, reply, payload, no_responders: false }
    }
}

/// Why a message was not sent. Nobody has received it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    #[error("the message bus is not connected")]
    Disconnected,
    #[error("the message of {0} bytes is larger than the message bus allows")]
    TooLarge(usize),
    #[error("the message bus accepts no messages at the moment")]
    Busy,
    #[error("{0}")]
    Invalid(&'static str),
    #[error("the message bus refused the request: {0}")]
    Refused(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusState {
    /// The number increases with every connection.
    Connected(u64),
    Disconnected,
    /// The server accepts anybody without credentials, so it is not used.
    Open,
}

/// Messages of a subscription; it ends when it is dropped.
pub type Subscription = Box<dyn MessageStream>;

pub trait MessageStream: Stream<Item = Message> + Send + Unpin {
    /// Ends the subscription at the bus. The stream ends after the messages that were delivered before.
    fn drain(&mut self) -> BoxFuture<'_, ()>;
}

/// Messages of one sender to one receiver arrive in order. A message may be lost, if the connection of either is.
pub trait Bus: Send + Sync {
    /// Fails at once if the bus is not connected.
    fn publish<'a>(&'a self, message: Message) -> BoxFuture<'a, Result<(), BusError>>;

    /// Of the subscriptions of one group, one gets each message.
    fn subscribe<'a>(
        &'a self,
        subject: &'a Subject,
        group: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Subscription, BusError>>;

    fn state(&self) -> watch::Receiver<BusState>;

    /// Maximum bytes of a message.
    fn max_payload(&self) -> usize;
}
