//! Queue in which tenants take turns, and the callers of a tenant among themselves.

use octo_model::Principal;
use std::collections::{HashMap, VecDeque};
use tokio::sync::oneshot;

/// Maximum waiting operations of one caller.
const MAX_WAITING_PER_CALLER: usize = 256;
/// Maximum waiting operations of all callers.
const MAX_WAITING: usize = 4096;

/// How many operations may wait.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    pub per_caller: usize,
    pub total: usize,
}

impl QueueLimits {
    /// For operations whose number is limited elsewhere.
    pub const UNLIMITED: Self = Self { per_caller: usize::MAX, total: usize::MAX };
    /// No number of callers uses up what is left for another one.
    pub const PER_CALLER: Self = Self { per_caller: MAX_WAITING_PER_CALLER, total: usize::MAX };
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { per_caller: MAX_WAITING_PER_CALLER, total: MAX_WAITING }
    }
}

/// Waiting operations, each of which receives an `S` when its turn comes. One that gave up is skipped.
pub struct TurnQueue<S> {
    tenants: Turns<Turns<VecDeque<oneshot::Sender<S>>>>,
    /// Including those that gave up and were not yet skipped.
    len: usize,
    limits: QueueLimits,
}

/// Values by key, in turn.
struct Turns<V> {
    order: VecDeque<String>,
    values: HashMap<String, V>,
}

impl<V> Default for Turns<V> {
    fn default() -> Self {
        Self { order: VecDeque::new(), values: HashMap::new() }
    }
}

impl<V: Default> Turns<V> {
    fn entry(&mut self, key: &str) -> &mut V {
        if !self.values.contains_key(key) {
            self.order.push_back(key.to_owned());
        }
        self.values.entry(key.to_owned()).or_default()
    }

    /// Gives the first key a turn whose value yields something. That key moves to the end; keys whose values are
    /// empty afterwards are removed.
    fn take<T>(
        &mut self,
        mut take: impl FnMut(&str, &mut V) -> Option<T>,
        is_empty: impl Fn(&V) -> bool,
    ) -> Option<T> {
        let mut position = 0;
        while let Some(key) = self.order.get(position) {
            let value = self.values.get_mut(key)?;
            let taken = take(key, value);
            let is_done = is_empty(value);
            if taken.is_none() && !is_done {
                position += 1;
                continue;
            }
            let key = self.order.remove(position)?;
            if is_done {
                self.values.remove(&key);
            } else {
                self.order.push_back(key);
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }
}

impl<S> Default for TurnQueue<S> {
    fn default() -> Self {
        Self::new(QueueLimits::default())
    }
}

impl<S> TurnQueue<S> {
    pub fn new(limits: QueueLimits) -> Self {
        Self { tenants: Turns::default(), len: 0, limits }
    }

    pub fn is_empty(&self) -> bool {
        self.tenants.order.is_empty()
    }

    /// Number of operations that wait; those that gave up do not.
    pub fn count(&self) -> usize {
        let callers = self.tenants.values.values().flat_map(|callers| callers.values.values());
        callers.flatten().filter(|sender| !sender.is_closed()).count()
    }

    /// Enqueues an operation behind those of the same caller. `None` if too many wait.
    pub fn enqueue(&mut self, who: &Principal) -> Option<oneshot::Receiver<S>> {
        if self.len >= self.limits.total {
            self.remove_closed();
            if self.len >= self.limits.total {
                return None;
            }
        }
        let own = self.tenants.entry(&who.tenant).entry(&who.subject);
        if own.len() >= self.limits.per_caller {
            let before = own.len();
            own.retain(|waiting| !waiting.is_closed());
            self.len -= before - own.len();
            if own.len() >= self.limits.per_caller {
                return None;
            }
        }
        let (sender, receiver) = oneshot::channel();
        own.push_back(sender);
        self.len += 1;
        Some(receiver)
    }

    /// Takes the oldest operation of the next caller of the next tenant, among those that may start.
    pub fn next(
        &mut self,
        tenant_may_start: impl Fn(&str) -> bool,
        caller_may_start: impl Fn(&str, &str) -> bool,
    ) -> Option<(Principal, oneshot::Sender<S>)> {
        let mut removed = 0;
        let next = self.tenants.take(
            |tenant, callers| {
                if !tenant_may_start(tenant) {
                    return None;
                }
                callers.take(
                    |subject, waiting| {
                        if !caller_may_start(tenant, subject) {
                            return None;
                        }
                        let before = waiting.len();
                        let live = std::iter::from_fn(|| waiting.pop_front()).find(|next| !next.is_closed());
                        removed += before - waiting.len();
                        live.map(|sender| (Principal::new(tenant, subject), sender))
                    },
                    VecDeque::is_empty,
                )
            },
            |callers| callers.order.is_empty(),
        );
        self.len -= removed;
        next
    }

    fn remove_closed(&mut self) {
        let mut len = 0;
        let mut retain_open = |_: &str, waiting: &mut VecDeque<oneshot::Sender<S>>| {
            waiting.retain(|sender| !sender.is_closed());
            len += waiting.len();
            None::<()>
        };
        self.tenants.take(
            |_, callers| callers.take(&mut retain_open, VecDeque::is_empty),
            |callers| callers.order.is_empty(),
        );
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(queue: &mut TurnQueue<()>) -> Vec<String> {
        let next = || queue.next(|_| true, |_, _| true);
        std::iter::from_fn(next).map(|(who, _)| who.to_string()).collect()
    }

    #[test]
    fn tenants_take_turns_and_so_do_the_callers_of_each() {
        let mut queue = TurnQueue::<()>::default();
        let waiting: Vec<_> = ["a/1", "a/1", "a/1", "a/2", "b/1", "a/2", "b/1"]
            .map(|who| who.split_once('/').map(|(tenant, subject)| Principal::new(tenant, subject)).unwrap())
            .iter()
            .map(|who| queue.enqueue(who).unwrap())
            .collect();
        assert_eq!(served(&mut queue), ["a/1", "b/1", "a/2", "b/1", "a/1", "a/2", "a/1"]);
        assert!(queue.is_empty() && queue.len == 0 && queue.tenants.values.is_empty());
        drop(waiting);
    }

    #[test]
    fn one_that_gave_up_is_skipped_and_one_that_may_not_start_keeps_its_turn() {
        let mut queue = TurnQueue::<()>::default();
        let [ada, bob, eve] = [("a", "ada"), ("a", "bob"), ("b", "eve")].map(|(t, s)| Principal::new(t, s));
        let waiting = [&ada, &bob, &eve].map(|who| queue.enqueue(who).unwrap());
        let gave_up = queue.enqueue(&ada).unwrap();
        drop(gave_up);
        let next = queue.next(|tenant| tenant != "a", |_, _| true).unwrap();
        assert_eq!(next.0, eve);
        assert!(queue.next(|tenant| tenant != "a", |_, _| true).is_none());
        assert_eq!(queue.next(|_| true, |_, subject| subject != "ada").unwrap().0, bob);
        assert_eq!(served(&mut queue), ["a/ada"]);
        assert!(queue.is_empty() && queue.len == 0);
        drop(waiting);
    }

    #[test]
    fn limits_count_only_those_that_still_wait() {
        let mut queue = TurnQueue::<()>::default();
        let ada = Principal::new("a", "ada");
        let mut waiting: Vec<_> = (0..MAX_WAITING_PER_CALLER).map(|_| queue.enqueue(&ada).unwrap()).collect();
        assert!(queue.enqueue(&ada).is_none());
        waiting.pop();
        waiting.push(queue.enqueue(&ada).unwrap());
        for caller in 1..MAX_WAITING / MAX_WAITING_PER_CALLER {
            let who = Principal::new("b", caller.to_string());
            waiting.extend((0..MAX_WAITING_PER_CALLER).map(|_| queue.enqueue(&who).unwrap()));
        }
        let eve = Principal::new("c", "eve");
        assert!(queue.enqueue(&eve).is_none());
        waiting.pop();
        assert!(queue.enqueue(&eve).is_some());
        drop(waiting);
        assert!(queue.enqueue(&eve).is_some());
        assert_eq!(queue.len, 1);
    }
}
