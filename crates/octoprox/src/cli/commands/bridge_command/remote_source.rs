//! The server at the other end: what it says passes, and what is wrong with it is told to the person here.

use crate::terminal::console;
use octo_model::{Caller, JsonObject, Kind, Operation, ToolError};
use octo_oauth::{LoginState, Logins};
use octo_toolkit::{BoxFuture, CallContext, Event, ListingState, Peer, Source, SourceState};
use octo_upstream::Upstream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// How often a login that another process makes is looked for, at first and at last.
const MIN_LOGIN_POLL_INTERVAL: Duration = Duration::from_secs(1);
const MAX_LOGIN_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long one more try may take before the reason is told.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How the remote learns who is there.
pub enum RemoteAuth {
    /// It does not, and nobody can log in.
    Anonymous,
    /// A header, from this variable if it is known.
    Token(Option<String>),
    /// A login that `octoprox login` makes.
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

    /// Says in words for the person at this end what to do about a remote that wants to know who they are.
    fn explain_unauthorized(&self, error: ToolError) -> ToolError {
        if error.kind != Kind::Unauthorized || error.rpc.is_some() {
            return error;
        }
        let url = self.upstream.name();
        let (message, hint) = match &self.auth {
            RemoteAuth::Login(_) => (
                format!("{url} needs a login."),
                format!(
                    "Run `octoprox login {url}` on this machine, then try again; nothing has to be restarted."
                ),
            ),
            RemoteAuth::Token(Some(variable)) => (
                format!("{url} does not accept the token."),
                format!(
                    "Put a token that it knows into the variable {variable}, and start the bridge again."
                ),
            ),
            RemoteAuth::Token(None) => (
                format!("{url} does not accept the header that it is sent."),
                "Check the value of --header, and start the bridge again.".to_owned(),
            ),
            RemoteAuth::Anonymous => (
                format!("{url} wants to know who you are."),
                "Start the bridge with --token-env and the name of the variable that holds a token."
                    .to_owned(),
            ),
        };
        let explained = ToolError::new(Kind::Unauthorized, message).hint(hint);
        match error.detail {
            Some(detail) => explained.detail(detail),
            None => explained,
        }
    }

    /// Tells the person when the remote is lost and when it is back, and goes on after a login elsewhere.
    pub async fn report_status(self: Arc<Self>) {
        let mut listing = self.upstream.listing();
        loop {
            if listing.wait_for(|now| matches!(now.state, SourceState::Down(_))).await.is_err() {
                return;
            }
            let why = match self.try_connect().await {
                Ok(()) => continue,
                Err(error) => error,
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
                console::print_err(&format!("octoprox: {} is there.", self.upstream.name()));
            }
        }
    }

    /// One more try, whose failure says exactly what is wrong.
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
        let mut pause = MIN_LOGIN_POLL_INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            let status = logins.status(&Caller::local(), self.upstream.name()).await;
            if !status.is_ok_and(|status| status.state == LoginState::Connected) {
                pause = MIN_LOGIN_POLL_INTERVAL;
            } else if self.try_connect().await.is_ok() {
                return;
            } else {
                // There is a login, and the remote does not want it.
                pause = (pause * 2).min(MAX_LOGIN_POLL_INTERVAL);
            }
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

    fn run<'a>(
        &'a self,
        op: Operation,
        cx: &'a CallContext,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let done = self.upstream.run(op, cx, peer).await;
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
