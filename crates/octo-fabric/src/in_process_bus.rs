//! The bus of a single process.

use crate::{Bus, BusError, BusState, Message, MessageStream, Subject, Subscription};
use bytes::Bytes;
use futures_util::Stream;
use octo_model::BoxFuture;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, watch};

/// Messages that wait for one subscriber; more are dropped, as by a server.
const MAX_WAITING_MESSAGES: usize = 65_536;
const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// Delivers messages between the subscribers of one process.
pub struct InProcessBus {
    subscribers: Arc<Mutex<Subscribers>>,
    state: watch::Sender<BusState>,
}

#[derive(Default)]
struct Subscribers {
    by_id: BTreeMap<u64, Subscriber>,
    last_id: u64,
    /// Number of messages so far, which selects the member of a group.
    deliveries: usize,
}

struct Subscriber {
    pattern: Subject,
    group: Option<String>,
    sender: mpsc::Sender<Message>,
}

impl Default for InProcessBus {
    fn default() -> Self {
        Self { subscribers: Arc::default(), state: watch::Sender::new(BusState::Connected(1)) }
    }
}

impl InProcessBus {
    fn deliver(&self, message: Message) -> Result<(), BusError> {
        if message.payload.len() > MAX_PAYLOAD_BYTES {
            return Err(BusError::TooLarge(message.payload.len()));
        }
        let receivers = lock(&self.subscribers).receivers(message.subject.as_str());
        match &message.reply {
            Some(reply) if receivers.is_empty() => {
                let answer = Message::new(reply.clone(), None, Bytes::new());
                let receivers = lock(&self.subscribers).receivers(reply.as_str());
                send_to_all(&receivers, &Message { no_responders: true, ..answer });
            }
            _ => send_to_all(&receivers, &message),
        }
        Ok(())
    }
}

fn send_to_all(receivers: &[mpsc::Sender<Message>], message: &Message) {
    for receiver in receivers {
        let _ = receiver.try_send(message.clone());
    }
}

impl Subscribers {
    /// All subscribers without a group, and one of each group.
    fn receivers(&mut self, subject: &str) -> Vec<mpsc::Sender<Message>> {
        self.deliveries = self.deliveries.wrapping_add(1);
        let mut groups: BTreeMap<&str, Vec<&Subscriber>> = BTreeMap::new();
        let mut receivers = Vec::new();
        for subscriber in self.by_id.values().filter(|it| matches(it.pattern.as_str(), subject)) {
            match &subscriber.group {
                Some(group) => groups.entry(group).or_default().push(subscriber),
                None => receivers.push(subscriber.sender.clone()),
            }
        }
        let selected = groups.values().filter_map(|members| members.get(self.deliveries % members.len()));
        receivers.extend(selected.map(|member| member.sender.clone()));
        receivers
    }
}

fn matches(pattern: &str, subject: &str) -> bool {
    let (mut patterns, mut tokens) = (pattern.split('.'), subject.split('.'));
    loop {
        match (patterns.next(), tokens.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some(pattern), Some(token)) if pattern == "*" || pattern == token => {}
            _ => return false,
        }
    }
}

fn lock(subscribers: &Mutex<Subscribers>) -> MutexGuard<'_, Subscribers> {
    subscribers.lock().unwrap_or_else(PoisonError::into_inner)
}

struct InProcessSubscription {
    id: u64,
    receiver: mpsc::Receiver<Message>,
    subscribers: Weak<Mutex<Subscribers>>,
}

impl Stream for InProcessSubscription {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        self.receiver.poll_recv(cx)
    }
}

impl InProcessSubscription {
    fn remove(&self) {
        if let Some(subscribers) = self.subscribers.upgrade() {
            lock(&subscribers).by_id.remove(&self.id);
        }
    }
}

impl MessageStream for InProcessSubscription {
    fn drain(&mut self) -> BoxFuture<'_, ()> {
        self.remove();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for InProcessSubscription {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Bus for InProcessBus {
    fn publish<'a>(&'a self, message: Message) -> BoxFuture<'a, Result<(), BusError>> {
        Box::pin(std::future::ready(self.deliver(message)))
    }

    fn subscribe<'a>(
        &'a self,
        subject: &'a Subject,
        group: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Subscription, BusError>> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        let mut subscribers = lock(&self.subscribers);
        subscribers.last_id += 1;
        let id = subscribers.last_id;
        let subscriber = Subscriber { pattern: subject.clone(), group: group.map(str::to_owned), sender };
        subscribers.by_id.insert(id, subscriber);
        let subscribers = Arc::downgrade(&self.subscribers);
        let subscription: Subscription = Box::new(InProcessSubscription { id, receiver, subscribers });
        Box::pin(std::future::ready(Ok(subscription)))
    }

    fn state(&self) -> watch::Receiver<BusState> {
        self.state.subscribe()
    }

    fn max_payload(&self) -> usize {
        MAX_PAYLOAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let rows = [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.b", "a", false),
            ("a", "a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
        ];
        for (pattern, subject, expected) in rows {
            assert_eq!(matches(pattern, subject), expected, "{pattern} {subject}");
        }
    }
}
