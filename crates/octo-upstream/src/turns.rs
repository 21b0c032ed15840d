//! The line before a server: so many calls at once, so many in a minute, and every caller in turn.

use crate::spec::Limits;
use octo_model::{Caller, Principal};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// Calls of one caller that may wait.
const MOST_WAITING: usize = 256;
/// A server's wish for a pause is waited for up to here; a longer one is told to the caller instead.
const PATIENCE: Duration = Duration::from_secs(10);
/// No wish for a pause counts for longer.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Nobody knows when a place becomes free.
const SOON: Duration = Duration::from_secs(1);

pub(crate) struct Turns {
    limits: Limits,
    /// A minute, but in tests.
    window: Duration,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    running: usize,
    /// When the calls of the last minute began.
    begun: VecDeque<Instant>,
    /// The server does not want to be asked before.
    shut_until: Option<Instant>,
    /// Callers that wait, and their calls.
    callers: VecDeque<Principal>,
    waiting: HashMap<Principal, VecDeque<oneshot::Sender<Turn>>>,
    /// Whether somebody looks again when the time has come.
    is_watched: bool,
}

/// A place among the calls under way; dropped, it is free for the next.
pub(crate) struct Turn(Arc<Turns>);

/// Whether one more may begin.
enum Free {
    Now,
    At(Instant),
    /// When one has ended.
    Later,
}

impl Turns {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, window: MINUTE, line: Mutex::default() }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; or says when to come back, where it is not worth waiting.
    pub(crate) async fn take(self: &Arc<Self>, caller: &Caller, deadline: Instant) -> Result<Turn, Duration> {
        let waits = {
            let mut line = self.line();
            let now = Instant::now();
            let free = line.free(&self.limits, self.window, now);
            if let Free::At(time) = free
                && (time > deadline || line.shut_for(now) > PATIENCE)
            {
                return Err(time.saturating_duration_since(now));
            }
            if matches!(free, Free::Now) && line.callers.is_empty() {
                line.begin(&self.limits, now);
                return Ok(Turn(self.clone()));
            }
            line.queue(caller.principal.clone()).ok_or(SOON)?
        };
        self.serve();
        tokio::time::timeout_at(deadline, waits).await.ok().and_then(Result::ok).ok_or(SOON)
    }

    /// Nobody asks the server before this time is over.
    pub(crate) fn hold(&self, pause: Duration) {
        let until = Instant::now() + pause.min(LONGEST_PAUSE);
        let mut line = self.line();
        line.shut_until = line.shut_until.max(Some(until));
    }

    /// How long the server still wants to be left alone.
    pub(crate) fn held(&self) -> Duration {
        self.line().shut_for(Instant::now())
    }

    /// Lets in whoever may begin.
    fn serve(self: &Arc<Self>) {
        loop {
            let next = {
                let mut line = self.line();
                let now = Instant::now();
                match line.free(&self.limits, self.window, now) {
                    Free::Now => line.next().inspect(|_| line.begin(&self.limits, now)),
                    Free::At(time) => {
                        if !line.callers.is_empty() && !line.is_watched {
                            line.is_watched = self.look_again(time);
                        }
                        None
                    }
                    Free::Later => None,
                }
            };
            let Some(next) = next else { return };
            // Whoever has just given up drops the turn again, which frees it.
            let _ = next.send(Turn(self.clone()));
        }
    }

    fn look_again(self: &Arc<Self>, time: Instant) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        let turns = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep_until(time).await;
            if let Some(turns) = turns.upgrade() {
                turns.line().is_watched = false;
                turns.serve();
            }
        });
        true
    }
}

impl Line {
    fn free(&mut self, limits: &Limits, window: Duration, now: Instant) -> Free {
        while self.begun.front().is_some_and(|begun| *begun + window <= now) {
            self.begun.pop_front();
        }
        if let Some(until) = self.shut_until.filter(|until| *until > now) {
            return Free::At(until);
        }
        if limits.in_flight.is_some_and(|most| self.running >= most.max(1)) {
            return Free::Later;
        }
        match (limits.per_minute, self.begun.front()) {
            (Some(most), Some(first)) if self.begun.len() >= most.max(1) => Free::At(*first + window),
            _ => Free::Now,
        }
    }

    fn shut_for(&self, now: Instant) -> Duration {
        self.shut_until.map(|until| until.saturating_duration_since(now)).unwrap_or_default()
    }

    fn begin(&mut self, limits: &Limits, now: Instant) {
        self.running += 1;
        if limits.per_minute.is_some() {
            self.begun.push_back(now);
        }
    }

    /// Stands in line, behind the caller's own calls and beside those of others.
    fn queue(&mut self, who: Principal) -> Option<oneshot::Receiver<Turn>> {
        let calls = self.waiting.entry(who.clone()).or_default();
        calls.retain(|call| !call.is_closed());
        if calls.len() >= MOST_WAITING {
            return None;
        }
        let (tell, told) = oneshot::channel();
        calls.push_back(tell);
        if !self.callers.contains(&who) {
            self.callers.push_back(who);
        }
        Some(told)
    }

    /// The oldest call of the caller whose turn it is; the caller goes to the end of the line.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(who) = self.callers.pop_front() {
            let calls = self.waiting.get_mut(&who)?;
            let call = std::iter::from_fn(|| calls.pop_front()).find(|call| !call.is_closed());
            if calls.is_empty() {
                self.waiting.remove(&who);
            } else {
                self.callers.push_back(who);
            }
            if call.is_some() {
                return call;
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut line = self.0.line();
            line.running = line.running.saturating_sub(1);
        }
        self.0.serve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    fn turns(per_minute: Option<usize>, in_flight: Option<usize>) -> Arc<Turns> {
        Arc::new(Turns::new(Limits { per_minute, in_flight }))
    }

    fn later(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn callers_take_turns_however_many_calls_each_has() {
        let turns = turns(None, Some(1));
        let first = turns.take(&Caller::named("ada"), later(9)).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut all = JoinSet::new();
        for name in ["ada", "ada", "ada", "ada", "bob", "eve", "bob"] {
            let (turns, order) = (turns.clone(), order.clone());
            all.spawn(async move {
                let turn = turns.take(&Caller::named(name), later(9)).await.ok().unwrap();
                order.lock().unwrap().push(name);
                tokio::task::yield_now().await;
                drop(turn);
            });
            tokio::task::yield_now().await;
        }
        drop(first);
        all.join_all().await;
        assert_eq!(*order.lock().unwrap(), ["ada", "bob", "eve", "ada", "bob", "ada", "ada"]);
        assert_eq!(turns.line().running, 0);
        assert!(turns.line().callers.is_empty() && turns.line().waiting.is_empty());
    }

    #[tokio::test]
    async fn no_minute_has_more_than_it_may() {
        const WINDOW: Duration = Duration::from_millis(100);
        let limits = Limits { per_minute: Some(2), in_flight: None };
        let turns = Arc::new(Turns { window: WINDOW, ..Turns::new(limits) });
        let ada = Caller::named("ada");
        let begun = Instant::now();
        for _ in 0..7 {
            drop(turns.take(&ada, later(60)).await.ok().unwrap());
        }
        assert!(begun.elapsed() >= 3 * WINDOW);
        let slow = Arc::new(Turns::new(limits));
        drop((slow.take(&ada, later(1)).await, slow.take(&ada, later(1)).await));
        let wait = slow.take(&ada, later(20)).await.err().unwrap();
        assert!(wait > Duration::from_secs(50), "{wait:?}");
    }

    #[tokio::test]
    async fn a_short_pause_is_waited_for_and_a_long_one_is_told() {
        let turns = turns(None, None);
        let ada = Caller::named("ada");
        let pause = Duration::from_millis(100);
        let begun = Instant::now();
        turns.hold(pause);
        assert!(turns.take(&ada, later(60)).await.is_ok());
        assert!(begun.elapsed() >= pause);
        turns.hold(Duration::from_secs(30));
        let wait = turns.take(&ada, later(60)).await.err().unwrap();
        assert!(wait > Duration::from_secs(29) && turns.held() > Duration::from_secs(29), "{wait:?}");
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_no_gap() {
        let turns = turns(None, Some(1));
        let ada = Caller::named("ada");
        let first = turns.take(&ada, later(9)).await.unwrap();
        assert!(turns.take(&ada, later(1)).await.is_err());
        let waits = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take(&Caller::named("bob"), later(9)).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waits.await.unwrap());
        assert_eq!(turns.line().running, 0);
    }
}
