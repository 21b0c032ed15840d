//! Login on demand: when a call meets a server that needs a login, the caller is prompted to log in, if the client
//! supports URL elicitation. The call then resumes.

use crate::error::FORBIDDEN_DETAIL;
use octo_model::{CallId, JsonObject, Kind, Operation, Principal, ToolError};
use octo_oauth::{
    LoginDeadline, LoginProgress, LoginPrompt, LoginSharing, LoginSnapshot, LoginStatus, Logins,
};
use octo_toolkit::{BoxFuture, CallContext, Layer, Source};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Pauses between the retries of a call after a login.
const RETRY_PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];

/// Source that prompts for a login when a call needs one.
pub struct LoginOnDemand {
    source: Arc<dyn Source>,
    logins: Logins,
    sharing: LoginSharing,
    /// Open prompts per principal. A new login replaces a pending one, so concurrent calls of a principal must share
    /// one prompt.
    prompts: Mutex<HashMap<Principal, Weak<OpenPrompt>>>,
}

/// Login prompt shown to a person.
struct OpenPrompt {
    id: String,
    url: String,
    message: String,
    /// State of the login when the prompt was opened.
    before: LoginSnapshot,
}

impl LoginOnDemand {
    /// Wraps a source with interactive logins; API key logins are not prompted for.
    pub fn wrap(source: Arc<dyn Source>, logins: Logins, whose: LoginSharing) -> Arc<dyn Source> {
        Arc::new(Self { source, logins, sharing: whose, prompts: Mutex::default() })
    }

    /// Whether the caller can be prompted, and whether a login could help.
    async fn should_ask(&self, error: &ToolError, cx: &CallContext) -> bool {
        let may = self.sharing == LoginSharing::PerCaller || cx.caller.is_admin();
        if !is_login_required(error) || !may || cx.peer.capabilities().inner("elicitation", "url").is_none() {
            return false;
        }
        // After a 403 the same login changes nothing, unless the server has named the missing scopes.
        let is_forbidden = error.detail.as_deref() == Some(FORBIDDEN_DETAIL);
        !is_forbidden || self.status(cx).await.is_ok_and(|status| !status.missing.is_empty())
    }

    async fn status(&self, cx: &CallContext) -> Result<LoginStatus, ToolError> {
        self.logins.status(&cx.caller, self.source.name()).await
    }

    /// Prompts for the login and waits until it is complete.
    async fn ask_for_login(&self, error: ToolError, cx: &CallContext) -> Result<(), ToolError> {
        let open = match self.open_prompt(cx).await {
            Ok(Some(open)) => open,
            Ok(None) => return Err(error),
            Err(why) => return Err(error.detail(why)),
        };
        let question = JsonObject::new()
            .with("mode", "url")
            .with("elicitationId", open.id.as_str())
            .with("url", open.url.as_str())
            .with("message", open.message.as_str());
        let Ok(answer) = cx.peer.ask("elicitation/create", question).await else { return Err(error) };
        if answer.text("action").as_deref() != Some("accept") {
            let name = self.source.name();
            return Err(ToolError::new(
                Kind::Unauthorized,
                format!("{name} needs a login, which was declined."),
            )
            .hint(format!("Ask the person what to do; server_login with server {name} prompts again.")));
        }
        let settled = self.wait_for_login(&open, cx).await;
        cx.peer.notify(
            "notifications/elicitation/complete",
            JsonObject::new().with("elicitationId", open.id.as_str()),
        );
        settled
    }

    /// Returns the prompt that another call of the caller has opened, or a new one; `None` if the server needs an API
    /// key.
    async fn open_prompt(&self, cx: &CallContext) -> Result<Option<Arc<OpenPrompt>>, ToolError> {
        let who = cx.caller.principal.clone();
        let mut all = self.prompts.lock().await;
        all.retain(|_, open| open.strong_count() > 0);
        if let Some(open) = all.get(&who).and_then(Weak::upgrade) {
            return Ok(Some(open));
        }
        let name = self.source.name();
        let before = self.logins.snapshot(&cx.caller, name).await?;
        let (url, message) = match self.logins.begin(&cx.caller, name).await? {
            LoginPrompt::Open { url, start: None, code_host, .. } => (
                url,
                format!(
                    "{name} needs a login. Open the address and agree; the login code goes to {code_host}, and the call resumes."
                ),
            ),
            LoginPrompt::Open { url, start: Some(start), code_host, .. } => (
                start,
                format!(
                    "{name} needs a login. Open the address and agree; the login code goes to {code_host}, and the call resumes. If your browser cannot open it, open {url} and paste the address of the last page into the conversation."
                ),
            ),
            LoginPrompt::Enter { url, user_code, url_with_code, .. } => (
                url_with_code.unwrap_or(url),
                format!(
                    "{name} needs a login. Open the address and enter the code {user_code}; the call then resumes."
                ),
            ),
            LoginPrompt::ApiKey => return Ok(None),
        };
        let open = Arc::new(OpenPrompt { id: CallId::fresh().to_string(), url, message, before });
        all.insert(who, Arc::downgrade(&open));
        Ok(Some(open))
    }

    /// Waits until there is a new login, or until none can follow.
    async fn wait_for_login(&self, open: &OpenPrompt, cx: &CallContext) -> Result<(), ToolError> {
        let mut changes = self.logins.changes();
        let mut deadline = LoginDeadline::default();
        loop {
            match open.before.progress_to(&self.logins.snapshot(&cx.caller, self.source.name()).await?) {
                LoginProgress::LoggedIn => return Ok(()),
                LoginProgress::Failure(why) => return Err(self.login_failed_error(&why)),
                LoginProgress::Unchanged => {}
            }
            let (pending_secs, now) = (self.status(cx).await?.pending_secs, Instant::now());
            let until = deadline.update(pending_secs, now);
            if until <= now {
                return Err(self.login_failed_error("It was not completed."));
            }
            let _ = tokio::time::timeout_at(until, changes.changed()).await;
        }
    }

    fn login_failed_error(&self, why: &str) -> ToolError {
        let name = self.source.name();
        ToolError::new(Kind::Unauthorized, format!("Login at {name} failed. {why}"))
            .hint(format!("Call again to retry, or call server_login with server {name}."))
    }

    async fn run_with_login(&self, op: Operation, cx: &CallContext) -> Result<JsonObject, ToolError> {
        match self.source.run(op.clone(), cx).await {
            // Boxed, because every call would carry the state of a login otherwise.
            Err(error) if is_login_required(&error) => Box::pin(self.run_after_login(op, error, cx)).await,
            answer => answer,
        }
    }

    async fn run_after_login(
        &self,
        op: Operation,
        error: ToolError,
        cx: &CallContext,
    ) -> Result<JsonObject, ToolError> {
        if !self.should_ask(&error, cx).await {
            return Err(error);
        }
        cx.run(self.ask_for_login(error, cx)).await??;
        // The server has not processed the call, so it can be repeated. A connection that was being opened with the
        // previous login is still refused; the next one is not.
        let mut pauses = RETRY_PAUSES.into_iter();
        loop {
            match (self.source.run(op.clone(), cx).await, pauses.next()) {
                (Err(error), Some(pause)) if is_login_required(&error) => {
                    cx.run(tokio::time::sleep(pause)).await?
                }
                (answer, _) => return answer,
            }
        }
    }
}

/// Whether the hub itself was refused. JSON-RPC errors of the server do not count.
fn is_login_required(error: &ToolError) -> bool {
    error.kind == Kind::Unauthorized && error.rpc.is_none()
}

impl Layer for LoginOnDemand {
    fn inner(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(self.run_with_login(op, cx))
    }
}
