//! One upstream server as a source of the catalogue.

use crate::lifecycle::link::{Link, LinkRole};
use crate::lifecycle::link_set::LinkSet;
use crate::lifecycle::link_state::LinkState;
use crate::lifecycle::login_events;
use crate::lifecycle::server::Server;
use crate::lifecycle::server_status::{ServerStatus, UpstreamReport};
use crate::lifecycle::supervisor;
use crate::listing::change_streams;
use crate::session::upstream_call::{self, CallRequest};
use crate::upstream_spec::UpstreamSpec;
use octo_model::{JsonObject, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Event, ListingState, Source, SourceState};
use octo_wire::Era;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Maximum wait for the listing after a connection is up.
const LISTING_WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// An upstream server of either era over either transport. Dropping it ends the connection and the process.
pub struct Upstream {
    links: Arc<LinkSet>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl Upstream {
    /// Returns immediately; connects in the background. Needs a tokio runtime.
    pub fn start(spec: UpstreamSpec) -> Arc<Self> {
        let server = Arc::new(Server::new(spec));
        let links = Arc::new(LinkSet::new(server.clone()));
        let supervisor = tokio::spawn(run_primary(links.primary.clone(), Arc::downgrade(&links)));
        if let Some(accounts) = &server.spec.accounts {
            let (links, news) = (Arc::downgrade(&links), accounts.login_events());
            tokio::spawn(login_events::run(links, accounts.clone(), news, server.stop.clone()));
        }
        Arc::new(Self { links, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Ends the session or process and waits for it. Active calls fail.
    pub async fn stop(&self) {
        self.links.server.stop.cancel();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
        self.links.close().await;
    }

    /// Connects now instead of waiting for the backoff.
    pub fn retry(&self) {
        self.links.primary.request_connect();
    }

    /// Connects now, regardless of the backoff, and waits until the server is connected or has refused. Also retries
    /// after an earlier refusal. With personal logins, connects the link of this caller.
    pub async fn connect(&self, cx: &CallContext) -> Result<(), ToolError> {
        let (link, _busy) = self.links.link_to_connect(&cx.caller)?;
        let deadline = Instant::from_std(cx.deadline);
        let before = self.links.server.listing.current().version;
        drop(cx.run(link.connect_now(deadline)).await??);
        // The listing follows shortly, and most callers request it next.
        let mut listing = self.listing();
        let listed = listing.wait_for(|now| now.state == SourceState::Ready || now.version > before);
        let _ = tokio::time::timeout_at(deadline.min(Instant::now() + LISTING_WAIT_TIMEOUT), listed).await;
        Ok(())
    }

    /// Ends all connections and waits for it; active calls fail. The listing stays. The next call, or
    /// [`Self::connect`], connects again.
    pub async fn disconnect(&self) {
        self.links.primary.suspend().await;
        self.links.close().await;
    }

    /// Status of the server over all its links.
    pub fn report(&self) -> UpstreamReport {
        let mut report = UpstreamReport {
            status: self.links.primary.status(),
            era: self.links.server.era.get(),
            server_info: self.links.server.info(),
            pids: Vec::new(),
            calls: 0,
            is_breaker_open: false,
        };
        self.links.for_each(|link| {
            report.calls += link.active_calls.count();
            report.is_breaker_open |= link.breaker.is_open();
            if let LinkState::Up(connection) = &*link.state() {
                report.pids.extend(connection.pid());
                let counts = match link.role {
                    LinkRole::Primary => false,
                    LinkRole::Personal => true,
                    LinkRole::Calls => report.status == ServerStatus::Idle,
                };
                if counts {
                    report.status = ServerStatus::Connected;
                }
            }
        });
        report
    }

    /// Era of the server, once known.
    pub fn era(&self) -> Option<Era> {
        self.links.server.era.get()
    }

    /// Last lines of the process on standard error, across restarts. The values of its variables are redacted.
    pub fn stderr(&self) -> Vec<String> {
        let mut lines = self.links.server.stderr.lines();
        self.links.for_each(|link| {
            if link.role == LinkRole::Personal {
                lines.extend(link.stderr.lines());
            }
        });
        lines
    }

    /// Whether a link is up. An on-demand upstream has none while it is idle.
    pub fn is_connected(&self) -> bool {
        let mut any = false;
        self.links.for_each(|link| any |= link.state().is_up());
        any
    }

    /// Sends a request of any method, under the same rules as [`Source::run`].
    pub async fn request(
        &self,
        method: &str,
        params: JsonObject,
        cx: &CallContext,
    ) -> Result<JsonObject, ToolError> {
        upstream_call::run(&self.links, CallRequest { method, params, peer: &cx.peer }, cx).await
    }

    async fn set_subscription(&self, uri: &str, on: bool) -> Result<(), ToolError> {
        let link = &self.links.primary;
        let server = &link.server;
        let _busy = link.active_calls.begin();
        let limit = server.spec.list_timeout;
        if on && !server.listing.current().listing.supports_subscribe {
            return Err(ToolError::invalid(format!(
                "{} does not support resource subscriptions.",
                server.name
            ))
            .hint("Read the resource again instead."));
        }
        let version = server.subscriptions.set(uri, on);
        if !on && (!link.state().is_up() || server.subscriptions.is_desired(uri)) {
            return Ok(());
        }
        let connected = link.connection(Instant::now() + limit).await;
        let connection = connected.inspect_err(|_| {
            if on {
                server.subscriptions.set(uri, false);
            }
        })?;
        let done = match connection.era() {
            Era::Legacy => change_streams::subscribe(server, &connection, uri, on)
                .await
                .map_err(|why| why.to_tool_error(&server.name)),
            Era::Modern if server.subscriptions.wait_acknowledged(version, limit).await => Ok(()),
            Era::Modern => {
                Err(ToolError::unavailable(format!("{} did not acknowledge the subscription.", server.name))
                    .hint("Read the resource again instead."))
            }
        };
        if on && done.is_err() {
            server.subscriptions.set(uri, false);
        }
        done
    }
}

/// Runs the primary link. With personal logins nothing is listed until a caller has connected, so the configured
/// listing caller connects first if it has logged in.
async fn run_primary(first: Arc<Link>, links: Weak<LinkSet>) {
    let server = first.server.clone();
    server.listing.restore_cached().await;
    let lister = server
        .spec
        .listing_caller
        .as_ref()
        .filter(|_| server.has_personal_logins() && !server.listing.is_ready());
    if let (Some(lister), Some(accounts)) = (lister, &server.spec.accounts)
        && accounts.for_caller(lister).has_untried_login().await
        && let Some((link, _busy)) = links.upgrade().and_then(|links| links.link_to_connect(lister).ok())
    {
        let until = Instant::now() + server.spec.start_timeout;
        let mut listing = server.listing.subscribe();
        let listed = async {
            if link.connect_now(until).await.is_ok() {
                let _ = listing.wait_for(|now| now.state != SourceState::Starting).await;
            }
        };
        tokio::select! {
            _ = tokio::time::timeout_at(until, listed) => {}
            () = server.stop.cancelled() => {}
        }
    }
    supervisor::run(first).await;
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.links.server.stop.cancel();
    }
}

impl Source for Upstream {
    fn name(&self) -> &str {
        &self.links.server.name
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.links.server.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(upstream_call::run(&self.links, CallRequest::new(op, &cx.peer), cx))
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        Some(self.links.server.events.subscribe())
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.set_subscription(uri, on))
    }
}
