//! What a legacy client and we know of each other: one HTTP session, or one stdio connection.

use crate::client::Client;
use crate::eventlog::EventLog;
use crate::peer::Outbox;
use octo_hub::{MAX_SUBSCRIPTIONS, Subscription};
use octo_model::{JsonObject, RpcError};
use octo_toolkit::AskError;
use octo_wire::Level;
use octo_wire::{Id, Message};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Streams of a session that a client can come back to, unless more of them are under way.
const MAX_STREAMS: usize = 16;

type Answer = Result<JsonObject, RpcError>;

pub struct Session {
    pub client: Client,
    transient: bool,
    pub closed: CancellationToken,
    /// Whether the stream for notices is open; there is only one.
    pub listening: AtomicBool,
    inner: Mutex<Inner>,
    next: AtomicU64,
    /// Requests and streams under way.
    busy: AtomicU32,
    begun: Instant,
    seen_ms: AtomicU64,
}

#[derive(Default)]
struct Inner {
    introduced: bool,
    level: Option<Level>,
    asked: HashMap<u64, oneshot::Sender<Answer>>,
    running: HashMap<Id, CancellationToken>,
    subscriptions: HashMap<String, Subscription>,
    streams: HashMap<u64, Arc<EventLog>>,
}

impl Session {
    pub fn new(client: Client) -> Arc<Self> {
        Self::made(client, false)
    }

    /// For one request of a client that names no session.
    pub fn transient(client: Client) -> Arc<Self> {
        Self::made(client, true)
    }

    fn made(client: Client, transient: bool) -> Arc<Self> {
        Arc::new(Self {
            client,
            transient,
            closed: CancellationToken::new(),
            listening: AtomicBool::new(false),
            inner: Mutex::default(),
            next: AtomicU64::new(1),
            busy: AtomicU32::new(0),
            begun: Instant::now(),
            seen_ms: AtomicU64::new(0),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn level(&self) -> Option<Level> {
        self.inner().level
    }

    pub fn set_level(&self, level: Level) {
        self.inner().level = Some(level);
    }

    /// A number that is used once in this session.
    pub fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks the client on a stream of a call; forgets the question when nobody waits any more.
    pub async fn ask(&self, out: &Outbox, method: &str, params: JsonObject) -> Result<JsonObject, AskError> {
        let number = self.fresh();
        let (answer, answered) = oneshot::channel();
        self.inner().asked.insert(number, answer);
        let _forget = Forget { session: self, number };
        let request = Message::Request { id: Id::number(number), method: method.to_owned(), params };
        out.send(request).await.map_err(|_| AskError::Gone)?;
        tokio::select! {
            answer = answered => answer.map_err(|_| AskError::Gone)?.map_err(AskError::Refused),
            () = self.closed.cancelled() => Err(AskError::Gone),
        }
    }

    /// Takes the client's answer to one of our questions.
    pub fn answered(&self, id: Option<&Id>, answer: Answer) {
        let Some(number) = id.and_then(Id::to_number) else {
            return;
        };
        let waiting = self.inner().asked.remove(&number);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Notes a request so that it can be cancelled by its id.
    pub fn began(self: &Arc<Self>, id: &Id) -> Under {
        let cancel = CancellationToken::new();
        self.inner().running.insert(id.clone(), cancel.clone());
        self.busy.fetch_add(1, Ordering::AcqRel);
        Under { session: Arc::clone(self), id: Some(id.clone()), cancel }
    }

    /// Keeps the session alive while a stream is open.
    pub fn occupied(self: &Arc<Self>) -> Under {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Under { session: Arc::clone(self), id: None, cancel: CancellationToken::new() }
    }

    pub fn cancel(&self, id: &Id) {
        if let Some(cancel) = self.inner().running.get(id) {
            cancel.cancel();
        }
    }

    /// Whether it ends with its request, since no client can name it again.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    pub fn may_subscribe(&self) -> bool {
        !self.transient && self.inner().subscriptions.len() < MAX_SUBSCRIPTIONS
    }

    /// Keeps a subscription until it is ended or the session is gone. One too many, made meanwhile, ends at once.
    pub fn subscribe(&self, uri: String, subscription: Subscription) {
        let mut inner = self.inner();
        if inner.subscriptions.len() < MAX_SUBSCRIPTIONS && !self.closed.is_cancelled() {
            inner.subscriptions.insert(uri, subscription);
        }
    }

    pub fn unsubscribe(&self, uri: &str) -> Option<Subscription> {
        self.inner().subscriptions.remove(uri)
    }

    pub fn subscribes(&self, uri: &str) -> bool {
        self.inner().subscriptions.contains_key(uri)
    }

    pub fn keep_stream(&self, number: u64, log: &Arc<EventLog>) {
        let mut inner = self.inner();
        inner.streams.retain(|_, log| !log.is_stale());
        while inner.streams.len() >= MAX_STREAMS {
            // The oldest has the smallest number.
            let oldest = inner.streams.iter().filter(|(_, log)| log.is_finished()).map(|(number, _)| *number);
            match oldest.min() {
                Some(oldest) => drop(inner.streams.remove(&oldest)),
                None => break,
            }
        }
        inner.streams.insert(number, Arc::clone(log));
    }

    /// Forgets the streams that no client comes back for any more.
    pub fn sweep_streams(&self) {
        self.inner().streams.retain(|_, log| !log.is_stale());
    }

    pub fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        self.inner().streams.get(&number).cloned()
    }

    pub fn seen(&self) {
        let since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.seen_ms.store(since, Ordering::Relaxed);
    }

    pub fn is_idle(&self, limit: Duration) -> bool {
        let seen = Duration::from_millis(self.seen_ms.load(Ordering::Relaxed));
        self.busy.load(Ordering::Acquire) == 0 && self.begun.elapsed().saturating_sub(seen) > limit
    }

    /// Whether the client has introduced itself; the session before the handshake is nobody's.
    pub fn has_shaken_hands(&self) -> bool {
        self.inner().introduced
    }

    pub fn shake_hands(&self) {
        self.inner().introduced = true;
    }

    /// Ends everything that runs for this client.
    pub fn close(&self) {
        self.closed.cancel();
        let running: Vec<CancellationToken> =
            self.inner().running.drain().map(|(_, cancel)| cancel).collect();
        running.iter().for_each(CancellationToken::cancel);
    }

    /// Takes every subscription out of the session.
    pub fn take_subscriptions(&self) -> Vec<Subscription> {
        self.inner().subscriptions.drain().map(|(_, subscription)| subscription).collect()
    }
}

struct Forget<'a> {
    session: &'a Session,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.session.inner().asked.remove(&self.number);
    }
}

/// A request or stream under way.
pub struct Under {
    session: Arc<Session>,
    id: Option<Id>,
    pub cancel: CancellationToken,
}

impl Drop for Under {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.session.inner().running.remove(id);
        }
        self.session.seen();
        self.session.busy.fetch_sub(1, Ordering::AcqRel);
    }
}
