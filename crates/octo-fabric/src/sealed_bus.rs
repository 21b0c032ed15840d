//! A bus whose messages are encrypted and prove that their sender has the key of the fleet.
//!
//! The key of a message is that of the service that its subject names. Subject and reply address are bound to it, so that
//! a recorded message is of no use at another address; at the same one it is taken once. What does not prove its sender
//! is dropped before anything reads it.

pub mod fleet_keys;

use crate::address::scope_of;
use crate::fleet_metrics::count_refused_message;
use crate::{Bus, BusError, BusState, Message, MessageStream, Subject, Subscription};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use bytes::{BufMut, Bytes, BytesMut};
use fleet_keys::{FleetKeys, KEY_LEN, derive};
use futures_util::{Stream, StreamExt};
use octo_grants::Clock;
use octo_model::BoxFuture;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// First byte of a sealed message. Frames begin with the version of the protocol instead.
const SEALED: u8 = 0xf1;
const TAG_LEN: usize = 16;
const SESSION_LEN: usize = 24;
const HEADER_LEN: usize = 1 + SESSION_LEN + 8;
/// Bytes that a sealed message has more than its payload.
const OVERHEAD: usize = HEADER_LEN + TAG_LEN;

/// Messages of one sender that may arrive later than a younger one.
const WINDOW_BITS: u64 = 4096;
const WINDOW_WORDS: usize = (WINDOW_BITS / 64) as usize;
/// Senders that one subscription remembers, for each service.
const MAX_SENDERS: usize = 16_384;
/// Messages that are refused before other tasks take their turn.
const MAX_REFUSALS_PER_TURN: usize = 64;
/// How often refused messages are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

pub struct SealedBus {
    bus: Arc<dyn Bus>,
    shared: Arc<Shared>,
}

struct Shared {
    keys: FleetKeys,
    senders: Mutex<HashMap<Box<str>, Arc<Sender>>>,
    reported: Mutex<Option<Instant>>,
}

impl SealedBus {
    pub fn new(bus: Arc<dyn Bus>, keys: FleetKeys) -> Self {
        let shared = Shared { keys, senders: Mutex::default(), reported: Mutex::default() };
        Self { bus, shared: Arc::new(shared) }
    }
}

impl Bus for SealedBus {
    fn publish<'a>(&'a self, message: Message) -> BoxFuture<'a, Result<(), BusError>> {
        Box::pin(async move {
            let payload = self.shared.seal(&message)?;
            self.bus.publish(Message { payload, ..message }).await
        })
    }

    fn subscribe<'a>(
        &'a self,
        subject: &'a Subject,
        group: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Subscription, BusError>> {
        Box::pin(async move {
            let messages = self.bus.subscribe(subject, group).await?;
            let (shared, known) = (Arc::clone(&self.shared), KnownSenders::default());
            Ok(Box::new(SealedSubscription { messages, shared, known }) as Subscription)
        })
    }

    fn state(&self) -> watch::Receiver<BusState> {
        self.bus.state()
    }

    fn max_payload(&self) -> usize {
        self.bus.max_payload().saturating_sub(OVERHEAD)
    }
}

impl Shared {
    fn seal(&self, message: &Message) -> Result<Bytes, BusError> {
        let sender = self.sender(scope_of(&message.subject))?;
        sender.seal(message).ok_or_else(|| BusError::Refused("the message was not sealed".to_owned()))
    }

    fn sender(&self, scope: &str) -> Result<Arc<Sender>, BusError> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(scope) {
            return Ok(Arc::clone(sender));
        }
        let no_key = || BusError::Refused(format!("this node has no key for `{scope}`"));
        let sender = self.keys.of_scope(scope).and_then(|key| Sender::new(&key)).ok_or_else(no_key)?;
        let sender = Arc::new(sender);
        senders.insert(scope.into(), Arc::clone(&sender));
        Ok(sender)
    }

    fn report_refusal(&self, subject: &Subject) {
        count_refused_message();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
            *reported = Some(Instant::now());
            tracing::warn!(
                %subject,
                "messages on the bus were refused: their sender has not the key of this fleet, or they were repeated"
            );
        }
    }
}

/// What this process sends for one service.
struct Sender {
    key: LessSafeKey,
    session: [u8; SESSION_LEN],
    sent: AtomicU64,
}

impl Sender {
    /// A random id, and the time, by which a receiver that cannot remember all senders forgets the oldest.
    fn new(scope_key: &[u8; KEY_LEN]) -> Option<Self> {
        let mut session = [0; SESSION_LEN];
        let (id, begun) = session.split_at_mut(SESSION_LEN - 8);
        rand::fill(id).ok()?;
        let now = Clock::system().now().as_millisecond();
        begun.copy_from_slice(&u64::try_from(now).unwrap_or(0).to_be_bytes());
        Some(Self { key: session_key(scope_key, &session)?, session, sent: AtomicU64::new(0) })
    }

    fn seal(&self, message: &Message) -> Option<Bytes> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let mut text = BytesMut::with_capacity(OVERHEAD + message.payload.len());
        text.put_u8(SEALED);
        text.put_slice(&self.session);
        text.put_u64(number);
        let mut body = text.split_off(HEADER_LEN);
        body.put_slice(&message.payload);
        self.key.seal_in_place_append_tag(nonce(number), bound_to(message), &mut body).ok()?;
        text.unsplit(body);
        Some(text.freeze())
    }
}

fn session_key(scope_key: &[u8; KEY_LEN], session: &[u8; SESSION_LEN]) -> Option<LessSafeKey> {
    let key = derive(scope_key, &[b"session 1 ", session])?;
    UnboundKey::new(&AES_256_GCM, &key).ok().map(LessSafeKey::new)
}

/// A session has its own key, so that its numbers are unique for the key.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    let (_, low) = nonce.split_at_mut(NONCE_LEN - 8);
    low.copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// No subject contains a zero byte.
fn bound_to(message: &Message) -> Aad<Vec<u8>> {
    let reply = message.reply.as_ref().map_or("", Subject::as_str);
    Aad::from([message.subject.as_str().as_bytes(), &[0], reply.as_bytes()].concat())
}

/// The senders of one subscription, by service.
#[derive(Default)]
struct KnownSenders(HashMap<Box<str>, Scope>);

struct Scope {
    key: [u8; KEY_LEN],
    sessions: HashMap<[u8; SESSION_LEN], Session>,
    /// Begin of the youngest session that was forgotten. Older ones that are not known are refused.
    forgotten: u64,
    received: u64,
}

struct Session {
    key: LessSafeKey,
    window: ReplayWindow,
    /// When it was last heard of, in messages of the scope.
    last_received: u64,
}

impl KnownSenders {
    /// The payload, if the sender has the key and this message was not received before.
    fn open(&mut self, keys: &FleetKeys, message: &Message) -> Option<Bytes> {
        let name = scope_of(&message.subject);
        // Whoever may send as one service cannot have another one answered.
        if message.reply.as_ref().is_some_and(|reply| scope_of(reply) != name) {
            return None;
        }
        let text = message.payload.as_ref();
        let (header, body) = text.split_at_checked(HEADER_LEN)?;
        let (mark, header) = header.split_first()?;
        let session: [u8; SESSION_LEN] = header.get(..SESSION_LEN)?.try_into().ok()?;
        let number = u64::from_be_bytes(header.get(SESSION_LEN..)?.try_into().ok()?);
        if *mark != SEALED {
            return None;
        }
        let sealed = Sealed { number, body, message };
        let (opened, scope) = match self.0.get_mut(name) {
            Some(scope) => match scope.sessions.get(&session) {
                Some(known) => (sealed.open(&known.key)?, scope),
                None => {
                    let key = session_key(&scope.key, &session)?;
                    let opened = sealed.open(&key)?;
                    scope.remember(session, key)?;
                    (opened, scope)
                }
            },
            // Names are remembered only of senders that have their key.
            None => {
                let mut scope = Scope::new(keys.of_scope(name)?);
                let key = session_key(&scope.key, &session)?;
                let opened = sealed.open(&key)?;
                scope.remember(session, key)?;
                (opened, self.0.entry(name.into()).or_insert(scope))
            }
        };
        scope.received += 1;
        let known = scope.sessions.get_mut(&session)?;
        known.last_received = scope.received;
        known.window.accept(number).then_some(opened)
    }
}

struct Sealed<'a> {
    number: u64,
    body: &'a [u8],
    message: &'a Message,
}

impl Sealed<'_> {
    fn open(&self, key: &LessSafeKey) -> Option<Bytes> {
        let mut body = self.body.to_vec();
        let len = key.open_in_place(nonce(self.number), bound_to(self.message), &mut body).ok()?.len();
        body.truncate(len);
        Some(body.into())
    }
}

impl Scope {
    fn new(key: [u8; KEY_LEN]) -> Self {
        Self { key, sessions: HashMap::new(), forgotten: 0, received: 0 }
    }

    /// Remembers a sender that has proved itself, unless it may be one that was forgotten.
    fn remember(&mut self, session: [u8; SESSION_LEN], key: LessSafeKey) -> Option<()> {
        let begun = |session: &[u8; SESSION_LEN]| {
            let last = session.last_chunk::<8>().copied().unwrap_or_default();
            u64::from_be_bytes(last)
        };
        if self.forgotten > 0 && begun(&session) <= self.forgotten {
            return None;
        }
        if self.sessions.len() >= MAX_SENDERS
            && let Some(quiet) = self.sessions.iter().min_by_key(|(_, known)| known.last_received)
        {
            let quiet = *quiet.0;
            self.sessions.remove(&quiet);
            self.forgotten = self.forgotten.max(begun(&quiet));
        }
        self.sessions.insert(session, Session { key, window: ReplayWindow::default(), last_received: 0 });
        Some(())
    }
}

/// Which of the last messages of a sender have arrived.
struct ReplayWindow {
    highest: u64,
    seen: Box<[u64; WINDOW_WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { highest: 0, seen: Box::new([0; WINDOW_WORDS]) }
    }
}

impl ReplayWindow {
    /// Whether the message is new. It is not the next time.
    fn accept(&mut self, number: u64) -> bool {
        if self.highest.saturating_sub(number) >= WINDOW_BITS {
            return false;
        }
        if number > self.highest {
            if number - self.highest >= WINDOW_BITS {
                self.seen.fill(0);
            } else {
                (self.highest + 1..=number).for_each(|skipped| *self.word(skipped) &= !bit(skipped));
            }
            self.highest = number;
        }
        let word = self.word(number);
        let is_new = *word & bit(number) == 0;
        *word |= bit(number);
        is_new
    }

    #[expect(clippy::indexing_slicing, reason = "the remainder is below the length")]
    fn word(&mut self, number: u64) -> &mut u64 {
        &mut self.seen[(number % WINDOW_BITS / 64) as usize]
    }
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

struct SealedSubscription {
    messages: Subscription,
    shared: Arc<Shared>,
    known: KnownSenders,
}

impl Stream for SealedSubscription {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        let Self { messages, shared, known } = &mut *self;
        for _ in 0..MAX_REFUSALS_PER_TURN {
            let Poll::Ready(next) = messages.poll_next_unpin(cx) else { return Poll::Pending };
            let Some(message) = next else { return Poll::Ready(None) };
            // The bus itself says so.
            if message.no_responders {
                return Poll::Ready(Some(Message { payload: Bytes::new(), ..message }));
            }
            match known.open(&shared.keys, &message) {
                Some(payload) => return Poll::Ready(Some(Message { payload, ..message })),
                None => shared.report_refusal(&message.subject),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl MessageStream for SealedSubscription {
    fn drain(&mut self) -> BoxFuture<'_, ()> {
        self.messages.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_new_once_and_in_any_order_within_the_window() {
        let mut window = ReplayWindow::default();
        for number in [1, 3, 2, 5, WINDOW_BITS, 4] {
            assert!(window.accept(number), "{number}");
            assert!(!window.accept(number), "{number}");
        }
        assert!(window.accept(WINDOW_BITS + 5));
        assert!(!window.accept(5), "it is before the window");
        assert!(window.accept(6));
        assert!(window.accept(10 * WINDOW_BITS) && !window.accept(WINDOW_BITS + 6));
        assert!(window.accept(10 * WINDOW_BITS - 1));
        assert!(window.accept(u64::MAX) && !window.accept(u64::MAX) && window.accept(u64::MAX - 1));
    }

    #[test]
    fn senders_that_were_forgotten_are_not_heard_again() {
        let keys = FleetKeys::parse(&octo_model::Secret::new("s".repeat(32))).unwrap();
        let key = keys.of_scope("a").unwrap();
        let mut scope = Scope::new(key);
        let session = |number: u64| {
            let mut session = [0; SESSION_LEN];
            session[..8].copy_from_slice(&number.to_be_bytes());
            session[SESSION_LEN - 8..].copy_from_slice(&(number + 1).to_be_bytes());
            session
        };
        let count = MAX_SENDERS as u64;
        let mut remember = |number| {
            let session = session(number);
            scope.remember(session, session_key(&key, &session).unwrap())?;
            scope.received += 1;
            scope.sessions.get_mut(&session)?.last_received = scope.received;
            Some(())
        };
        assert!((0..=count).all(|number| remember(number).is_some()));
        assert_eq!(remember(0), None, "it was the quietest");
        assert!(remember(count + 1).is_some());
        assert_eq!(remember(1), None);
        assert!(scope.sessions.len() <= MAX_SENDERS);
    }
}
