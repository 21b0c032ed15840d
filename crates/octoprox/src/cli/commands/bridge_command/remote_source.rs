//! Source of a bridge: the remote server, with its connection status printed to standard error.

use crate::remedy_text::remedy_text;
use crate::terminal::console;
use octo_model::{Caller, JsonObject, Kind, Operation, ToolError};
use octo_oauth::{LoginState, Logins};
use octo_toolkit::{BoxFuture, CallContext, Event, ListingState, Source, SourceState};
use octo_upstream::Upstream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// Initial and maximum delay before a login that the remote rejects is tried again.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Timeout of a reconnect before the reason is printed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Authentication at the remote.
pub enum RemoteAuth {
    /// None, and logins cannot be used.
    Anonymous,
    /// A header, with the environment variable of the token if it is known.
    Token(Option<String>),
    /// A login made with `octoprox login`.
    Login(Logins),
}

pub struct RemoteSource {
    pub upstream: Arc<Upstream>,
    auth: RemoteAuth,
}

impl RemoteSource {
    pub fn new(upstream: Arc<Upstream>, way: RemoteAuth) -> Self {
        Self { upstream, auth: way }
    }

    /// Replaces an unauthorized error with one that tells the local user what to do.
    fn explain_unauthorized(&self, error: ToolError) -> ToolError {
        if error.kind != Kind::Unauthorized || error.rpc.is_some() {
            return error;
        }
        let url = self.upstream.name();
        let (message, hint) = match &self.auth {
            RemoteAuth::Login(_) => (
                format!("{url} needs a login."),
                format!(
                    "Run `octoprox login {url}` on this machine, then try again. No restart is needed."
                ),
            ),
            RemoteAuth::Token(Some(variable)) => (
                format!("{url} rejects the token."),
                format!(
                    "Set the environment variable {variable} to a valid token and restart the bridge."
                ),
            ),
            RemoteAuth::Token(None) => (
                format!("{url} rejects the header."),
                "Check the value of --header and restart the bridge.".to_owned(),
            ),
            RemoteAuth::Anonymous => (
                format!("{url} requires authentication."),
                "Start the bridge with --token-env and the name of an environment variable that contains a token."
                    .to_owned(),
            ),
        };
        let explained = ToolError::new(Kind::Unauthorized, message).hint(hint);
        match error.detail {
            Some(detail) => explained.detail(detail),
            None => explained,
        }
    }

    /// Prints when the remote is lost and when it is back, and reconnects after a login by another process.
    pub async fn report_status(self: Arc<Self>) {
        let mut listing = self.upstream.listing();
        loop {
            if listing.wait_for(|now| matches!(now.state, SourceState::Down(_))).await.is_err() {
                return;
            }
            let why = match self.try_connect().await {
                Ok(()) => continue,
                Err(error) => error.with_remedy_text(remedy_text),
            };
            console::print_err(&format!("octoprox: {}", why.text()));
            tokio::select! {
                back = listing.wait_for(|now| now.state == SourceState::Ready) => {
                    if back.is_err() {
                        return;
                    }
                }
                () = self.wait_for_login(), if why.kind == Kind::Unauthorized => {}
            }
            if listing.wait_for(|now| now.state == SourceState::Ready).await.is_ok() {
                console::print_err(&format!("octoprox: {} is connected.", self.upstream.name()));
            }
        }
    }

    /// Connects once more; the error has the exact reason.
    async fn try_connect(&self) -> Result<(), ToolError> {
        let cx = CallContext::new(
            Arc::new(Caller::local()),
            Instant::now() + CONNECT_TIMEOUT,
            CancellationToken::new(),
        );
        self.upstream.connect(&cx).await.map_err(|error| self.explain_unauthorized(error))
    }

    /// Waits for a login that the remote accepts.
    async fn wait_for_login(&self) {
        let RemoteAuth::Login(logins) = &self.auth else { return std::future::pending().await };
        let mut changes = logins.changes();
        let mut pause = MIN_RETRY_DELAY;
        loop {
            match logins.status(&Caller::local(), self.upstream.name()).await {
                Ok(status) if status.state != LoginState::Connected => {
                    changes.changed().await;
                    pause = MIN_RETRY_DELAY;
                    continue;
                }
                Ok(_) if self.try_connect().await.is_ok() => return,
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_RETRY_DELAY);
        }
    }
}

impl Source for RemoteSource {
    fn name(&self) -> &str {
        self.upstream.name()
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.upstream.listing()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let done = self.upstream.run(op, cx).await;
            done.map_err(|error| self.explain_unauthorized(error))
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        self.upstream.events()
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let done = Source::watch(self.upstream.as_ref(), uri, on).await;
            done.map_err(|error| self.explain_unauthorized(error))
        })
    }
}
