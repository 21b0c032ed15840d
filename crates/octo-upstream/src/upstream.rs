//! One server behind the hub, as the catalogue sees it.

use crate::call::{self, Job};
use crate::listen;
use crate::pool::Pool;
use crate::relogin;
use crate::report::{Condition, Report};
use crate::spec::Spec;
use crate::state::{Inner, Status};
use crate::supervisor;
use octo_model::{Members, Op, ToolError};
use octo_toolkit::{BoxFuture, Cx, Event, Listing, Peer, Source, State};
use octo_wire::Era;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long its lists may take after a server is there.
const LISTED: Duration = Duration::from_secs(5);

/// A server of either era behind either transport. Dropping it ends the connection and the process.
pub struct Upstream {
    pool: Arc<Pool>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl Upstream {
    /// Returns at once; connecting goes on behind it. Needs a tokio runtime.
    pub fn start(spec: Spec) -> Arc<Self> {
        let inner = Arc::new(Inner::new(spec));
        let pool = Arc::new(Pool::new(inner.clone()));
        let supervisor = tokio::spawn(begin(inner.clone(), Arc::downgrade(&pool)));
        if let Some(accounts) = &inner.spec.accounts {
            let (pool, news) = (Arc::downgrade(&pool), accounts.news());
            tokio::spawn(relogin::follow(pool, accounts.clone(), news, inner.stop.clone()));
        }
        Arc::new(Self { pool, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Ends the session or the process and waits until that is done. Calls under way fail.
    pub async fn stop(&self) {
        self.pool.first.stop.cancel();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
        self.pool.close().await;
    }

    /// Tries to connect now rather than when the wait is over.
    pub fn retry(&self) {
        self.pool.first.wish();
    }

    /// Connects now, however long the wait before the next try would be, and waits until the server is there or has
    /// refused. Whoever has been refused before is tried again. Where each caller has a login of their own, it is this
    /// caller's connection that is made.
    pub async fn connect(&self, cx: &Cx) -> Result<(), ToolError> {
        let (inner, _busy) = self.pool.pick_to_connect(&cx.caller)?;
        let deadline = Instant::from_std(cx.deadline);
        let before = self.pool.first.listing.borrow().version;
        drop(cx.run(inner.raise(deadline)).await??);
        // Its lists follow in a moment, and are what most want to see next.
        let mut listing = self.listing();
        let listed = listing.wait_for(|now| now.state == State::Ready || now.version > before);
        let _ = tokio::time::timeout_at(deadline.min(Instant::now() + LISTED), listed).await;
        Ok(())
    }

    /// Ends all connections and waits for it; calls under way fail. What was listed stays listed, and the next call, or
    /// [`Self::connect`], connects again.
    pub async fn disconnect(&self) {
        self.pool.first.lie_down().await;
        self.pool.close().await;
    }

    /// How the server is doing.
    pub fn report(&self) -> Report {
        let first = &self.pool.first;
        let mut report = Report {
            condition: Condition::of(first),
            era: first.era(),
            about: first.about(),
            pids: Vec::new(),
            calls: 0,
            is_tripped: false,
        };
        self.pool.each(|inner| {
            report.calls += inner.load.calls();
            report.is_tripped |= inner.breaker.is_open();
            if let Status::Up(connection) = &*inner.status.borrow() {
                report.pids.extend(connection.pid());
                if inner.is_lane && (inner.is_per_person() || report.condition == Condition::Asleep) {
                    report.condition = Condition::Connected;
                }
            }
        });
        report
    }

    /// The era that the server speaks, once it is known.
    pub fn era(&self) -> Option<Era> {
        self.pool.first.era()
    }

    /// What the program has said last on standard error, over all its starts; the values of its variables are left out.
    pub fn stderr(&self) -> Vec<String> {
        let mut lines = self.pool.first.said.lines();
        self.pool.each(|inner| {
            if inner.is_lane && inner.is_per_person() {
                lines.extend(inner.said.lines());
            }
        });
        lines
    }

    /// Whether there is a connection now. One that is made on demand has none while nobody calls.
    pub fn is_connected(&self) -> bool {
        let mut any = false;
        self.pool.each(|inner| any |= matches!(&*inner.status.borrow(), Status::Up(_)));
        any
    }

    /// Sends a request of any method, under the same rules as [`Source::run`].
    pub async fn request(
        &self,
        method: &str,
        params: Members,
        cx: &Cx,
        peer: &Arc<dyn Peer>,
    ) -> Result<Members, ToolError> {
        call::run(&self.pool, Job { method, params, peer }, cx).await
    }

    async fn set_watch(&self, uri: &str, on: bool) -> Result<(), ToolError> {
        let inner = &self.pool.first;
        let _busy = inner.load.enter();
        let limit = inner.spec.list_timeout;
        if on && !inner.listing.borrow().lists.subscribes {
            return Err(ToolError::invalid(format!("{} does not tell of changed resources.", inner.name))
                .hint("Read the resource again instead."));
        }
        let version = inner.watched.set(uri, on);
        if !on && !matches!(&*inner.status.borrow(), Status::Up(_)) {
            return Ok(());
        }
        let connection = inner.connection(Instant::now() + limit).await?;
        let done = match connection.era() {
            Era::Legacy => {
                listen::subscribe(inner, &connection, uri, on).await.map_err(|why| why.to_error(&inner.name))
            }
            Era::Modern if inner.watched.is_honoured(version, limit).await => Ok(()),
            Era::Modern => {
                Err(ToolError::unavailable(format!("{} did not agree to watch this.", inner.name))
                    .hint("Read the resource again instead."))
            }
        };
        if on && done.is_err() {
            inner.watched.set(uri, false);
        }
        done
    }
}

/// Where each has a login of their own, nothing is listed before somebody has connected: whoever the settings name for that
/// does so first, if they have logged in.
async fn begin(first: Arc<Inner>, pool: Weak<Pool>) {
    first.recall().await;
    let lister = first.spec.lister.as_ref().filter(|_| first.is_per_person() && !first.is_ready());
    if let (Some(lister), Some(accounts)) = (lister, &first.spec.accounts)
        && accounts.of(lister).is_new().await
        && let Some((lane, _busy)) = pool.upgrade().and_then(|pool| pool.pick_to_connect(lister).ok())
    {
        let until = Instant::now() + first.spec.start_timeout;
        let mut listing = first.listing.subscribe();
        let listed = async {
            if lane.raise(until).await.is_ok() {
                let _ = listing.wait_for(|now| now.state != State::Starting).await;
            }
        };
        tokio::select! {
            _ = tokio::time::timeout_at(until, listed) => {}
            () = first.stop.cancelled() => {}
        }
    }
    supervisor::run(first).await;
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.pool.first.stop.cancel();
    }
}

impl Source for Upstream {
    fn name(&self) -> &str {
        &self.pool.first.name
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<Listing> {
        self.pool.first.listing.subscribe()
    }

    fn run<'a>(
        &'a self,
        op: Op,
        cx: &'a Cx,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<Members, ToolError>> {
        Box::pin(call::run(&self.pool, Job::new(op, peer), cx))
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        Some(self.pool.first.events.subscribe())
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.set_watch(uri, on))
    }
}
