//! A call that meets a server which wants a login: whoever called is asked to log in, where their client can show them an
//! address, and then the call goes on.

use crate::fail::FORBIDDEN;
use crate::login::{Begun, Came, Logins, Moment, Status, Whose};
use octo_model::{CallId, Kind, Members, Op, Principal, ToolError};
use octo_toolkit::{BoxFuture, Cx, Event, Listing, Peer, Source};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, broadcast, watch};
use tokio::time::Instant;

/// What is done elsewhere is noticed within this time.
const LOOK: Duration = Duration::from_millis(250);
/// So long the answer of a browser may take to become a login.
const EXCHANGE: Duration = Duration::from_secs(30);
/// Between the tries of a call after a login.
const RETRY_PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];

/// A server whose calls ask for the login that they need.
pub struct AskLogin {
    source: Arc<dyn Source>,
    logins: Logins,
    whose: Whose,
    /// Logins that calls wait for, by who began them: the newest login takes the place of the others, so that calls which
    /// come together must have one between them.
    open: Mutex<HashMap<Principal, Weak<Open>>>,
}

/// What a person is asked to open.
struct Open {
    id: String,
    url: String,
    message: String,
    /// How it stood before.
    before: Moment,
}

impl AskLogin {
    /// For servers that people log in at; what needs a key is left as it is.
    pub fn around(source: Arc<dyn Source>, logins: Logins, whose: Whose) -> Arc<dyn Source> {
        Arc::new(Self { source, logins, whose, open: Mutex::default() })
    }

    /// Whether somebody can be asked, and whether that could help.
    async fn is_worth_it(&self, error: &ToolError, cx: &Cx, peer: &Arc<dyn Peer>) -> bool {
        let may = self.whose == Whose::Person || cx.caller.is_admin();
        if !wants_login(error) || !may || peer.capabilities().inner("elicitation", "url").is_none() {
            return false;
        }
        // Who is known and still not let in gains nothing from the same login, unless the server has said what is missing.
        let is_forbidden = error.detail.as_deref() == Some(FORBIDDEN);
        !is_forbidden || self.status(cx).await.is_ok_and(|status| !status.missing.is_empty())
    }

    async fn status(&self, cx: &Cx) -> Result<Status, ToolError> {
        self.logins.status(&cx.caller, self.source.name()).await
    }

    /// Asks for the login and waits until it is done.
    async fn logged_in(&self, error: ToolError, cx: &Cx, peer: &Arc<dyn Peer>) -> Result<(), ToolError> {
        let open = match self.begun(cx).await {
            Ok(Some(open)) => open,
            Ok(None) => return Err(error),
            Err(why) => return Err(error.detail(why)),
        };
        let question = Members::new()
            .with("mode", "url")
            .with("elicitationId", open.id.as_str())
            .with("url", open.url.as_str())
            .with("message", open.message.as_str());
        let Ok(answer) = peer.ask("elicitation/create", question).await else { return Err(error) };
        if answer.text("action").as_deref() != Some("accept") {
            let name = self.source.name();
            return Err(ToolError::new(
                Kind::Unauthorized,
                format!("{name} needs a login, which was declined."),
            )
            .hint(format!(
                "Ask the person what they want; server_login with server {name} asks them again."
            )));
        }
        let settled = self.settled(&open, cx).await;
        peer.notify(
            "notifications/elicitation/complete",
            Members::new().with("elicitationId", open.id.as_str()),
        );
        settled
    }

    /// The login that the caller has begun in another call, or a new one; nothing where a key is wanted.
    async fn begun(&self, cx: &Cx) -> Result<Option<Arc<Open>>, ToolError> {
        let who = cx.caller.principal.clone();
        let mut all = self.open.lock().await;
        all.retain(|_, open| open.strong_count() > 0);
        if let Some(open) = all.get(&who).and_then(Weak::upgrade) {
            return Ok(Some(open));
        }
        let name = self.source.name();
        let before = self.logins.moment(&cx.caller, name).await?;
        let (url, message) = match self.logins.begin(&cx.caller, name).await? {
            Begun::Open { url, start: None, code_host, .. } => (
                url,
                format!(
                    "{name} needs a login. Open the address and agree; the login code goes to {code_host}, and the call resumes."
                ),
            ),
            Begun::Open { url, start: Some(start), code_host, .. } => (
                start,
                format!(
                    "{name} needs a login. Open the address and agree; the login code goes to {code_host}, and the call resumes. If your browser cannot open it, open {url} and paste the address of the last page into the conversation."
                ),
            ),
            Begun::Enter { url, user_code, url_with_code, .. } => (
                url_with_code.unwrap_or(url),
                format!(
                    "{name} needs a login. Open the address and enter the code {user_code}; then the call goes on."
                ),
            ),
            Begun::Key => return Ok(None),
        };
        let open = Arc::new(Open { id: CallId::fresh().to_string(), url, message, before });
        all.insert(who, Arc::downgrade(&open));
        Ok(Some(open))
    }

    /// Waits until there is another login, or none can come any more.
    async fn settled(&self, open: &Open, cx: &Cx) -> Result<(), ToolError> {
        let mut changes = self.logins.changes();
        let mut answered: Option<Instant> = None;
        loop {
            changes.mark_unchanged();
            match open.before.until(&self.logins.moment(&cx.caller, self.source.name()).await?) {
                Came::Login => return Ok(()),
                Came::Failure(why) => return Err(self.failed(&why)),
                Came::Nothing => {}
            }
            let is_open = self.status(cx).await?.waits.is_some();
            answered = if is_open { None } else { answered.or_else(|| Some(Instant::now())) };
            if answered.is_some_and(|since| since.elapsed() > EXCHANGE) {
                return Err(self.failed("It was not finished."));
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn failed(&self, why: &str) -> ToolError {
        let name = self.source.name();
        ToolError::new(Kind::Unauthorized, format!("The login at {name} came to nothing. {why}"))
            .hint(format!("Call again to try once more, or call server_login with server {name}."))
    }

    async fn run(&self, op: Op, cx: &Cx, peer: &Arc<dyn Peer>) -> Result<Members, ToolError> {
        match self.source.run(op.clone(), cx, peer).await {
            // In a box, because every call would carry the states of a login otherwise.
            Err(error) if wants_login(&error) => Box::pin(self.run_after_login(op, error, cx, peer)).await,
            answer => answer,
        }
    }

    async fn run_after_login(
        &self,
        op: Op,
        error: ToolError,
        cx: &Cx,
        peer: &Arc<dyn Peer>,
    ) -> Result<Members, ToolError> {
        if !self.is_worth_it(&error, cx, peer).await {
            return Err(error);
        }
        cx.run(self.logged_in(error, cx, peer)).await??;
        // The server has not looked at the call yet, so it can be made again. A connection that was being made with the login
        // from before is still refused, and the next one is not.
        let mut pauses = RETRY_PAUSES.into_iter();
        loop {
            match (self.source.run(op.clone(), cx, peer).await, pauses.next()) {
                (Err(error), Some(pause)) if wants_login(&error) => cx.run(tokio::time::sleep(pause)).await?,
                (answer, _) => return answer,
            }
        }
    }
}

/// The hub itself was not let in; what a server says within its answers is its own business.
fn wants_login(error: &ToolError) -> bool {
    error.kind == Kind::Unauthorized && error.rpc.is_none()
}

impl Source for AskLogin {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn is_native(&self) -> bool {
        self.source.is_native()
    }

    fn listing(&self) -> watch::Receiver<Listing> {
        self.source.listing()
    }

    fn run<'a>(
        &'a self,
        op: Op,
        cx: &'a Cx,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<Members, ToolError>> {
        Box::pin(self.run(op, cx, peer))
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        self.source.events()
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        self.source.watch(uri, on)
    }
}
