//! Memory for messages of servers, from the first byte until they are processed. All servers together have a budget; a
//! message that does not fit waits for its turn.

use crate::error::{UpstreamError, UpstreamResult};
use bytes::Bytes;
use octo_admission::ReceiveBudget;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Messages up to this size need no permission.
const SMALL_BYTES: usize = 256 << 10;
/// Each message above that takes this much until it needs more.
const MEDIUM_BYTES: usize = 2 << 20;
const MEDIUM_BUDGET_BYTES: usize = 16 << 20;
/// Bytes of all messages that are larger still, and so of the largest one.
pub(crate) const LARGE_BUDGET_BYTES: usize = 64 << 20;
/// A server that takes longer to send a message that needs permission loses it if others wait.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
const WAITING_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A message that is kept for longer no longer counts: it would keep out all others.
const MAX_HOLD_TIME: Duration = Duration::from_secs(60);
/// A message that waits for longer is lost: its server sends more than is processed.
const MAX_WAIT_TIME: Duration = Duration::from_secs(120);
/// Medium messages that one server sends at the same time; its further ones wait.
const MEDIUM_MESSAGES_PER_SERVER: usize = 2;

/// The budget of some servers.
#[derive(Clone)]
pub struct MessageMemory(Arc<Budgets>);

struct Budgets {
    medium: Budget,
    large: Budget,
}

/// Bytes for messages of one class, and how many messages wait for some.
struct Budget {
    bytes: ReceiveBudget,
    waiting: AtomicUsize,
}

impl Budget {
    fn new(bytes: usize) -> Self {
        Self { bytes: ReceiveBudget::new(bytes), waiting: AtomicUsize::new(0) }
    }

    async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let _waiting = WaitingMessage::new(&self.waiting);
        self.bytes.reserve(bytes).await
    }

    fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

impl MessageMemory {
    pub(crate) fn new() -> Self {
        let [medium, large] = [MEDIUM_BUDGET_BYTES, LARGE_BUDGET_BYTES].map(Budget::new);
        Self(Arc::new(Budgets { medium, large }))
    }

    /// The budget of all servers of this process.
    pub fn of_process() -> Self {
        static OF_PROCESS: LazyLock<MessageMemory> = LazyLock::new(MessageMemory::new);
        OF_PROCESS.clone()
    }
}

/// Limits of the messages of one server.
#[derive(Clone)]
pub(crate) struct ReceiveLimit {
    pub(crate) max_bytes: usize,
    memory: MessageMemory,
    share: Arc<ServerShare>,
}

/// What one server may have at a time, so that it cannot keep others out.
struct ServerShare {
    medium: Arc<Semaphore>,
    /// One large message.
    turn: Arc<Semaphore>,
    waiting_for_turn: AtomicUsize,
}

impl ServerShare {
    fn new() -> Self {
        let [medium, turn] =
            [MEDIUM_MESSAGES_PER_SERVER, 1].map(|messages| Arc::new(Semaphore::new(messages)));
        Self { medium, turn, waiting_for_turn: AtomicUsize::new(0) }
    }

    async fn take_turn(&self) -> Option<OwnedSemaphorePermit> {
        let _waiting = WaitingMessage::new(&self.waiting_for_turn);
        Arc::clone(&self.turn).acquire_owned().await.ok()
    }

    fn is_turn_awaited(&self) -> bool {
        self.waiting_for_turn.load(Ordering::Relaxed) > 0
    }
}

impl ReceiveLimit {
    pub(crate) fn new(max_bytes: usize, memory: MessageMemory) -> Self {
        let max_bytes = max_bytes.min(LARGE_BUDGET_BYTES);
        Self { max_bytes, memory, share: Arc::new(ServerShare::new()) }
    }

    /// Memory for the next message.
    pub(crate) fn next_message(&self) -> ReservedMemory {
        ReservedMemory {
            limit: self.clone(),
            medium_share: None,
            medium: None,
            large: None,
            since: Instant::now(),
        }
    }
}

/// Memory for one message.
pub(crate) struct ReservedMemory {
    limit: ReceiveLimit,
    /// Kept until the message is large or complete, so that few messages of a server wait for their turn.
    medium_share: Option<OwnedSemaphorePermit>,
    medium: Option<OwnedSemaphorePermit>,
    large: Option<LargeMessage>,
    /// When the last permission was given.
    since: Instant,
}

struct LargeMessage {
    _turn: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl ReservedMemory {
    /// Waits until the message may have this size. `whole` is its final size, if known.
    pub(crate) async fn reserve(&mut self, size: usize, whole: Option<usize>) -> UpstreamResult<()> {
        let max_bytes = self.limit.max_bytes;
        let expected = whole.unwrap_or(size).max(size);
        if expected > max_bytes {
            return Err(UpstreamError::TooLarge(max_bytes));
        }
        if self.large.is_some() || expected <= SMALL_BYTES {
            return Ok(());
        }
        if expected <= MEDIUM_BYTES && self.medium.is_some() {
            return Ok(());
        }
        let reserved = tokio::time::timeout(MAX_WAIT_TIME, async {
            if expected <= MEDIUM_BYTES {
                self.reserve_medium().await
            } else {
                self.reserve_large(whole.unwrap_or(max_bytes)).await
            }
        })
        .await;
        match reserved {
            Ok(Some(())) => self.since = Instant::now(),
            Ok(None) => return Err(UpstreamError::TooLarge(max_bytes)),
            Err(_) => {
                let why = "the server has too many large messages at once";
                return Err(UpstreamError::ConnectionLost(why.to_owned()));
            }
        }
        Ok(())
    }

    async fn reserve_medium(&mut self) -> Option<()> {
        if self.medium_share.is_none() {
            self.medium_share = Some(Arc::clone(&self.limit.share.medium).acquire_owned().await.ok()?);
        }
        self.medium = Some(self.limit.memory.0.medium.reserve(MEDIUM_BYTES).await?);
        Some(())
    }

    /// Memory of other servers is not used meanwhile.
    async fn reserve_large(&mut self, bytes: usize) -> Option<()> {
        self.medium = None;
        let turn = self.limit.share.take_turn().await?;
        let bytes = self.limit.memory.0.large.reserve(bytes).await?;
        self.large = Some(LargeMessage { _turn: turn, _bytes: bytes });
        self.medium_share = None;
        Some(())
    }

    /// Bytes that a buffer should have room for, once a large message has its turn.
    pub(crate) fn capacity(&self) -> Option<usize> {
        self.large.as_ref().map(|_| self.limit.max_bytes)
    }

    /// Waits for a part of the message. One that needed permission and comes slowly fails while others wait.
    pub(crate) async fn receive<T>(&self, part: impl Future<Output = T>) -> UpstreamResult<T> {
        let budgets = &self.limit.memory.0;
        let share = &self.limit.share;
        let is_awaited = || match &self.large {
            Some(_) => budgets.large.is_awaited() || share.is_turn_awaited(),
            None => budgets.medium.is_awaited(),
        };
        if self.medium.is_none() && self.large.is_none() {
            return Ok(part.await);
        }
        let mut part = pin!(part);
        loop {
            if self.since.elapsed() > MESSAGE_TIMEOUT && is_awaited() {
                return Err(UpstreamError::Timeout(MESSAGE_TIMEOUT));
            }
            if let Ok(part) = tokio::time::timeout(WAITING_CHECK_INTERVAL, &mut part).await {
                return Ok(part);
            }
        }
    }

    /// The message, whose memory stays reserved until its last part is dropped.
    pub(crate) fn hold(mut self, message: Bytes) -> Bytes {
        if self.medium.is_none() && self.large.is_none() {
            return message;
        }
        self.medium_share = None;
        let reserved = Arc::new(Mutex::new(Some(self)));
        let weak = Arc::downgrade(&reserved);
        tokio::spawn(async move {
            tokio::time::sleep(MAX_HOLD_TIME).await;
            if let Some(reserved) = weak.upgrade() {
                reserved.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
        });
        Bytes::from_owner(HeldMessage { message, _reserved: reserved })
    }
}

struct HeldMessage {
    message: Bytes,
    _reserved: Arc<Mutex<Option<ReservedMemory>>>,
}

impl AsRef<[u8]> for HeldMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

/// Counts a message that waits.
struct WaitingMessage<'a>(&'a AtomicUsize);

impl<'a> WaitingMessage<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitingMessage<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const LARGE: usize = 40 << 20;

    #[tokio::test]
    async fn large_messages_of_all_servers_take_turns() {
        let memory = MessageMemory::new();
        let [one, other] = [(); 2].map(|()| ReceiveLimit::new(LARGE_BUDGET_BYTES, memory.clone()));
        let mut first = one.next_message();
        first.reserve(LARGE, Some(LARGE)).await.unwrap();
        let mut second = other.next_message();
        assert!(second.reserve(LARGE, Some(LARGE)).now_or_never().is_none(), "one at a time");
        let mut small = other.next_message();
        small.reserve(SMALL_BYTES, None).now_or_never().unwrap().unwrap();
        let mut medium = other.next_message();
        medium.reserve(MEDIUM_BYTES, None).now_or_never().unwrap().unwrap();
        // It counts as long as any part of it is left.
        let held = first.hold(Bytes::from(vec![b'x'; 10]));
        let part = held.slice(2..3);
        drop(held);
        assert!(second.reserve(LARGE, Some(LARGE)).now_or_never().is_none());
        drop(part);
        second.reserve(LARGE, Some(LARGE)).await.unwrap();
    }

    #[tokio::test]
    async fn one_server_has_one_large_message() {
        let limit = ReceiveLimit::new(LARGE_BUDGET_BYTES, MessageMemory::new());
        let mut first = limit.next_message();
        first.reserve(MEDIUM_BYTES + 1, Some(MEDIUM_BYTES + 1)).await.unwrap();
        let mut second = limit.next_message();
        assert!(second.reserve(MEDIUM_BYTES + 1, Some(MEDIUM_BYTES + 1)).now_or_never().is_none());
        drop(first);
        second.reserve(MEDIUM_BYTES + 1, Some(MEDIUM_BYTES + 1)).await.unwrap();
    }

    #[tokio::test]
    async fn what_will_be_too_large_is_refused_before_it_is_read() {
        let limit = ReceiveLimit::new(1000, MessageMemory::new());
        let refused = limit.next_message().reserve(1, Some(1001)).await;
        assert!(matches!(refused, Err(UpstreamError::TooLarge(1000))));
        assert!(limit.next_message().reserve(1001, None).await.is_err());
        limit.next_message().reserve(1000, None).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_message_fails_only_while_others_wait() {
        let memory = MessageMemory::new();
        let [slow, other] = [(); 2].map(|()| ReceiveLimit::new(LARGE_BUDGET_BYTES, memory.clone()));
        let mut first = slow.next_message();
        first.reserve(LARGE, None).await.unwrap();
        first.receive(tokio::time::sleep(MESSAGE_TIMEOUT * 3)).await.unwrap();
        let waits = tokio::spawn(async move { other.next_message().reserve(LARGE, None).await });
        let failed = first.receive(std::future::pending::<()>()).await;
        assert!(matches!(failed, Err(UpstreamError::Timeout(_))));
        drop(first);
        waits.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn slow_messages_of_one_server_keep_out_no_other_server() {
        const MESSAGES: usize = 9;
        let memory = MessageMemory::new();
        let [slow, other] = [(); 2].map(|()| ReceiveLimit::new(LARGE_BUDGET_BYTES, memory.clone()));
        let stalled: Vec<_> = (0..MESSAGES)
            .map(|_| {
                let limit = slow.clone();
                tokio::spawn(async move {
                    let mut message = limit.next_message();
                    message.reserve(MEDIUM_BYTES, None).await?;
                    message.reserve(MEDIUM_BYTES + 1, None).await?;
                    message.receive(std::future::pending::<()>()).await
                })
            })
            .collect();
        for _ in 0..MESSAGES * 3 {
            tokio::task::yield_now().await;
        }
        other.next_message().reserve(MEDIUM_BYTES, None).now_or_never().unwrap().unwrap();
        // Each that has its turn loses it while another one waits.
        for message in stalled.into_iter().take(MESSAGES - 1) {
            assert!(matches!(message.await.unwrap(), Err(UpstreamError::Timeout(_))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn medium_messages_of_one_server_leave_room_for_others() {
        let memory = MessageMemory::new();
        let [slow, other] = [(); 2].map(|()| ReceiveLimit::new(LARGE_BUDGET_BYTES, memory.clone()));
        let [mut first, mut second, mut third] = [(); 3].map(|()| slow.next_message());
        first.reserve(MEDIUM_BYTES, None).await.unwrap();
        second.reserve(MEDIUM_BYTES, None).await.unwrap();
        assert!(third.reserve(MEDIUM_BYTES, None).now_or_never().is_none());
        other.next_message().reserve(MEDIUM_BYTES, None).now_or_never().unwrap().unwrap();
        // A complete one counts no longer as one that the server sends.
        let _kept = first.hold(Bytes::from_static(b"x"));
        third.reserve(MEDIUM_BYTES, None).now_or_never().unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_does_not_wait_forever_for_its_turn() {
        let limit = ReceiveLimit::new(LARGE_BUDGET_BYTES, MessageMemory::new());
        let mut first = limit.next_message();
        first.reserve(LARGE, Some(LARGE)).await.unwrap();
        let refused = limit.next_message().reserve(LARGE, Some(LARGE)).await;
        let Err(UpstreamError::ConnectionLost(why)) = &refused else { panic!("{refused:?}") };
        assert!(why.contains("too many large messages"), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_for_long_keeps_nobody_out() {
        let limit = ReceiveLimit::new(LARGE_BUDGET_BYTES, MessageMemory::new());
        let mut first = limit.next_message();
        first.reserve(LARGE, None).await.unwrap();
        let _kept = first.hold(Bytes::from_static(b"x"));
        limit.next_message().reserve(LARGE, None).await.unwrap();
    }
}
