//! Queue between calls and the writer thread: everything queued becomes one group, written together.

use super::record_codec;
use crate::{AuditBacklog, CallEnded, CallStarted, Port, StoreError, StoreResult};
use std::cell::Cell;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Maximum queued records before further calls are refused: more than calls can run at once.
const MAX_QUEUED_OPENINGS: usize = 1 << 13;
/// The same while a write takes longer than `SLOW_WRITE`, so that clients learn soon that nothing is written.
const MAX_OPENINGS_BEHIND_SLOW_WRITE: usize = 256;
const SLOW_WRITE: Duration = Duration::from_secs(2);
/// Maximum queued records before ends of calls are dropped, when nothing could be written for long.
const MAX_QUEUED_RECORDS: usize = 1 << 18;
/// How long the end of a call may wait to be grouped with others. No caller waits for it.
const GROUP_DELAY: Duration = Duration::from_millis(2);
/// The same after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Larger buffers, left by a burst, are freed.
const MAX_RETAINED_BYTES: usize = 1 << 20;

/// The callers whose records are written together, and the outcome.
#[derive(Default)]
pub struct Group {
    outcome: OnceLock<Result<(), Arc<str>>>,
    done: Notify,
}

impl Group {
    pub fn finish(&self, outcome: Result<(), Arc<str>>) {
        let _ = self.outcome.set(outcome);
        self.done.notify_waiters();
    }

    pub async fn wait(&self) -> Result<(), Arc<str>> {
        // Created before the check, so that a completion in between is not missed.
        let done = self.done.notified();
        if let Some(outcome) = self.outcome.get() {
            return outcome.clone();
        }
        done.await;
        self.outcome.get().cloned().unwrap_or_else(|| Err("the group was abandoned".into()))
    }
}

/// Queued records.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    openings: usize,
    pub group: Arc<Group>,
    /// A caller waits for the group.
    is_awaited: bool,
    /// When its first record was queued.
    since: Option<Instant>,
}

struct Entry {
    end: usize,
    is_opening: bool,
}

impl Batch {
    fn add(&mut self, record: &[u8], opens: bool) {
        self.since.get_or_insert_with(Instant::now);
        self.bytes.extend_from_slice(record);
        self.entries.push(Entry { end: self.bytes.len(), is_opening: opens });
        self.openings += usize::from(opens);
        self.is_awaited |= opens;
    }

    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.entries().map(|(record, _)| record)
    }

    fn entries(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.entries.iter().scan(0, |start, entry| {
            let record = self.bytes.get(*start..entry.end).unwrap_or_default();
            *start = entry.end;
            Some((record, entry.is_opening))
        })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of records that no caller waits for.
    pub fn ends(&self) -> usize {
        self.entries.len() - self.openings
    }

    /// Age of its first record.
    pub fn age(&self) -> Duration {
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_RETAINED_BYTES);
        self.entries.clear();
        self.openings = 0;
        self.group = Arc::default();
        self.is_awaited = false;
        self.since = None;
    }
}

/// What wakes the writer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriterWait {
    Awake,
    /// Only records that a caller waits for; others are picked up after the group delay.
    Lingering,
    /// Everything.
    Idle,
}

struct State {
    batch: Batch,
    /// Records that are being written, and when the first of them was queued.
    in_flight: (usize, Option<Instant>),
    /// When the current write started.
    write_start: Option<Instant>,
    wait: WriterWait,
    /// Why records are no longer accepted.
    closed: Option<&'static str>,
    group_delay: Duration,
}

impl State {
    fn max_openings(&self) -> usize {
        let is_slow = self.write_start.is_some_and(|start| start.elapsed() > SLOW_WRITE);
        if is_slow { MAX_OPENINGS_BEHIND_SLOW_WRITE } else { MAX_QUEUED_OPENINGS }
    }
}

pub struct RecordQueue {
    state: Mutex<State>,
    wake: Condvar,
}

impl Default for RecordQueue {
    fn default() -> Self {
        let state = State {
            batch: Batch::default(),
            in_flight: (0, None),
            write_start: None,
            wait: WriterWait::Awake,
            closed: None,
            group_delay: GROUP_DELAY,
        };
        Self { state: Mutex::new(state), wake: Condvar::new() }
    }
}

impl RecordQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a call, and waits until it is written.
    pub async fn record_start(&self, at: i64, opening: CallStarted) -> StoreResult<()> {
        let group = self.open(at, &opening)?;
        drop(opening);
        group.wait().await.map_err(write_error)
    }

    /// Records the end of a call, which no caller waits for.
    pub fn record_end(&self, at: i64, closing: &CallEnded) {
        if !self.close(at, closing) {
            tracing::error!(call = %closing.id, outcome = closing.outcome.as_str(), "the end of a call was not recorded");
        }
    }

    /// Waits until everything that is queued now is written.
    pub async fn flush(&self) -> StoreResult<()> {
        self.enqueue_awaited(None)?.wait().await.map_err(write_error)
    }

    /// Queues the start of a call; the group reports when it is written.
    pub fn open(&self, at: i64, opening: &CallStarted) -> StoreResult<Arc<Group>> {
        with_encoded(
            |bytes| record_codec::encode_open(bytes, at, opening),
            |record| self.enqueue_awaited(Some(record)),
        )
    }

    fn enqueue_awaited(&self, record: Option<&[u8]>) -> StoreResult<Arc<Group>> {
        let mut state = self.lock();
        if let Some(why) = state.closed {
            return Err(write_error(why));
        }
        if let Some(record) = record {
            if state.batch.openings >= state.max_openings() {
                return Err(StoreError::Busy(Port::Audit));
            }
            state.batch.add(record, true);
        }
        state.batch.is_awaited = true;
        let group = Arc::clone(&state.batch.group);
        let asleep = mem::replace(&mut state.wait, WriterWait::Awake) != WriterWait::Awake;
        // Unlock before waking: otherwise the writer would wake up only to wait for the lock.
        drop(state);
        if asleep {
            self.wake.notify_one();
        }
        Ok(group)
    }

    /// Queues the end of a call, which no caller waits for. `false` if it had to be dropped.
    pub fn close(&self, at: i64, closing: &CallEnded) -> bool {
        with_encoded(
            |bytes| record_codec::encode_close(bytes, at, closing),
            |record| self.enqueue_unawaited(record),
        )
    }

    fn enqueue_unawaited(&self, record: &[u8]) -> bool {
        let mut state = self.lock();
        if state.closed.is_some() || state.batch.len() >= MAX_QUEUED_RECORDS {
            return false;
        }
        state.batch.add(record, false);
        let asleep = state.wait == WriterWait::Idle;
        if asleep {
            state.wait = WriterWait::Awake;
        }
        drop(state);
        if asleep {
            self.wake.notify_one();
        }
        true
    }

    /// Records that are queued or being written.
    pub fn backlog(&self) -> AuditBacklog {
        let state = self.lock();
        let (count, since) = state.in_flight;
        let oldest = since.or(state.batch.since);
        let age = oldest.map(|oldest| oldest.elapsed()).unwrap_or_default();
        AuditBacklog { records: count + state.batch.len(), age }
    }

    /// Waits for records and takes all of them in exchange for the buffers of `batch`. `false` at the end.
    pub fn take_batch(&self, batch: &mut Batch) -> bool {
        batch.clear();
        let mut state = self.lock();
        (state.in_flight, state.write_start) = ((0, None), None);
        // The first wait is short even when nothing is queued: after a group its callers return, and the ends
        // of their calls should be grouped with their next starts.
        let mut rested = false;
        while !state.batch.is_awaited && state.closed.is_none() {
            if rested && !state.batch.is_empty() {
                break;
            }
            if rested {
                state.wait = WriterWait::Idle;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                rested = false;
            } else {
                state.wait = WriterWait::Lingering;
                let linger = state.group_delay;
                let slept = self.wake.wait_timeout(state, linger).unwrap_or_else(PoisonError::into_inner);
                (state, rested) = (slept.0, slept.1.timed_out());
            }
        }
        state.wait = WriterWait::Awake;
        drop(state);
        yield_to_callers();
        let mut state = self.lock();
        state.group_delay = GROUP_DELAY;
        mem::swap(&mut state.batch, batch);
        (state.in_flight, state.write_start) = ((batch.len(), batch.since), Some(Instant::now()));
        state.closed.is_none() || batch.is_awaited || !batch.is_empty()
    }

    /// Queues the ends of calls that could not be written again, before newer ones. During shutdown they are
    /// lost; returns their number.
    pub fn requeue(&self, batch: &Batch) -> usize {
        let mut state = self.lock();
        if state.closed.is_some() {
            return batch.ends();
        }
        let group = Arc::clone(&state.batch.group);
        let since = if batch.ends() > 0 { batch.since } else { state.batch.since };
        let mut kept = Batch { group, since, ..Batch::default() };
        let ends = batch.entries().filter(|(_, opens)| !opens);
        for (record, opens) in ends.chain(state.batch.entries()) {
            kept.add(record, opens);
        }
        kept.is_awaited |= state.batch.is_awaited;
        state.batch = kept;
        state.group_delay = RETRY_DELAY;
        0
    }

    /// Stops accepting records; what is queued is still written.
    pub fn shut_down(&self, why: &'static str) {
        self.lock().closed.get_or_insert(why);
        self.wake.notify_one();
    }

    /// The writer has ended: notifies waiting callers.
    pub fn abandon(&self, why: &'static str) -> usize {
        let mut state = self.lock();
        state.closed.get_or_insert(why);
        let left = mem::take(&mut state.batch);
        left.group.finish(Err(why.into()));
        left.entries.len()
    }
}

fn write_error(why: impl std::fmt::Display) -> StoreError {
    StoreError::unavailable(Port::Audit, why)
}

/// Yields to other threads: on a busy machine these are calls that are about to join the group, and a group
/// of ten costs hardly more than a group of one. On an idle machine this costs nothing.
fn yield_to_callers() {
    for _ in 0..2 {
        std::thread::yield_now();
    }
}

/// Encodes before taking the lock, in a thread-local buffer.
fn with_encoded<T>(encode: impl FnOnce(&mut Vec<u8>), queue: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut bytes = BYTES.try_with(Cell::take).unwrap_or_default();
    bytes.clear();
    encode(&mut bytes);
    let queued = queue(&bytes);
    let _ = BYTES.try_with(|kept| kept.set(bytes));
    queued
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::call_samples;
    use octo_model::CallId;

    #[test]
    fn behind_a_slow_write_further_calls_are_refused() {
        let (queue, mut batch) = (RecordQueue::default(), Batch::default());
        let open = || queue.open(1, &call_samples::opening("time_now"));
        open().unwrap();
        assert!(queue.take_batch(&mut batch));
        let waiting = (0..=MAX_OPENINGS_BEHIND_SLOW_WRITE).map(|_| open()).filter(Result::is_ok).count();
        assert_eq!(waiting, MAX_OPENINGS_BEHIND_SLOW_WRITE + 1);
        queue.lock().write_start = Instant::now().checked_sub(SLOW_WRITE * 2);
        assert_eq!(open().err(), Some(StoreError::Busy(Port::Audit)));
        // The ends of calls are still taken.
        assert!(queue.close(1, &call_samples::closing(CallId::fresh())));
        assert!(queue.take_batch(&mut batch));
        assert_eq!(batch.ends(), 1);
        open().unwrap();
    }

    #[test]
    fn the_backlog_has_what_is_queued_or_being_written() {
        let (queue, mut batch) = (RecordQueue::default(), Batch::default());
        assert_eq!(queue.backlog(), AuditBacklog::default());
        queue.open(1, &call_samples::opening("time_now")).unwrap();
        assert!(queue.close(1, &call_samples::closing(CallId::fresh())));
        assert_eq!(queue.backlog().records, 2);
        assert!(queue.take_batch(&mut batch));
        assert!(queue.close(1, &call_samples::closing(CallId::fresh())));
        let backlog = queue.backlog();
        assert_eq!(backlog.records, 3);
        assert!(batch.age() >= backlog.age && backlog.age > Duration::ZERO, "{backlog:?}");
        // After a failure, the end of the call is still the oldest record.
        let age = batch.age();
        assert_eq!(queue.requeue(&batch), 0);
        assert!(queue.take_batch(&mut batch));
        assert_eq!(queue.backlog().records, 2);
        assert!(batch.age() >= age);
    }
}
