//! One server behind the hub, as the catalogue sees it.

use crate::call::{self, Job};
use crate::listen;
use crate::spec::Spec;
use crate::state::{Inner, Status};
use crate::supervisor;
use octo_model::{Members, Op, ToolError};
use octo_toolkit::{BoxFuture, Cx, Event, Listing, Peer, Source};
use octo_wire::Era;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server of either era behind either transport. Dropping it ends the connection and the process.
pub struct Upstream {
    inner: Arc<Inner>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl Upstream {
    /// Returns at once; connecting goes on behind it. Needs a tokio runtime.
    pub fn start(spec: Spec) -> Arc<Self> {
        let inner = Arc::new(Inner::new(spec));
        let supervisor = tokio::spawn(supervisor::run(inner.clone()));
        Arc::new(Self { inner, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Ends the session or the process and waits until that is done. Calls under way fail.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
    }

    /// Tries to connect now rather than when the wait is over.
    pub fn retry(&self) {
        self.inner.wake.notify_one();
    }

    /// The era that the server speaks, once it is known.
    pub fn era(&self) -> Option<Era> {
        self.inner.era()
    }

    /// Sends a request of any method, under the same rules as [`Source::run`].
    pub async fn request(
        &self,
        method: &str,
        params: Members,
        cx: &Cx,
        peer: &Arc<dyn Peer>,
    ) -> Result<Members, ToolError> {
        call::run(&self.inner, Job { method, params, peer }, cx).await
    }

    async fn set_watch(&self, uri: &str, on: bool) -> Result<(), ToolError> {
        let inner = &self.inner;
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

impl Drop for Upstream {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

impl Source for Upstream {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<Listing> {
        self.inner.listing.subscribe()
    }

    fn run<'a>(
        &'a self,
        op: Op,
        cx: &'a Cx,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<Members, ToolError>> {
        Box::pin(call::run(&self.inner, Job::new(op, peer), cx))
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        Some(self.inner.events.subscribe())
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.set_watch(uri, on))
    }
}
