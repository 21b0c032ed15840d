//! Login and logout, as used by the frontends.

use crate::account::Account;
use crate::accounts::Accounts;
use crate::auth_http::AuthHttp;
use crate::authorization_code::{
    self, CallbackParams, LoginFlow, LoginFlowKind, PastedAnswer, parse_pasted, random_token, sha256_base64,
};
use crate::device_code;
use crate::discovery::discover;
use crate::keep_alive::keep_alive;
use crate::login_plan::{LoginPlan, choose_flow, requested_scopes};
use crate::login_registry::LoginRegistry;
use crate::login_snapshot::LoginSnapshot;
use crate::login_spec::{Auth, ClientIdentity, Flow, KeyPlacement, LoginKey, LoginSpec};
use crate::login_status::{LoginStatus, login_status};
use crate::lost_login::{LostLogin, lost_logins};
use crate::oauth_client::{self, ClientAuth};
use crate::revocation::revoke;
use crate::start_page::{BrowserRedirect, Confirmation, StartPageRequest};
use crate::token_set::{StoredLogin, TokenSet, TokenSource};
use crate::{challenge, token_endpoint};
use octo_grants::Clock;
use octo_model::Secret;
use octo_model::{Caller, Json, ToolError};
use octo_ports::{Changes, Owner, PendingLogin, Stores};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Lifetime of a pending browser login, in seconds.
const BROWSER_LOGIN_SECS: i64 = 600;
const DEVICE_LOGIN_GRACE_SECS: i64 = 30;
/// Placeholder issuer for API keys.
const API_KEY_ISSUER: &str = "api-key";

/// All logins of a hub.
#[derive(Clone)]
pub struct Logins(Arc<LoginRegistry>);

/// What a person has to do to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginPrompt {
    /// Open the URL at the authorization server; afterwards the browser returns to the hub, or its last URL is pasted.
    /// If there is a `start` page of the hub, opening that instead lets the browser complete the login. The code goes
    /// to `code_host`.
    Open { url: String, start: Option<String>, state: String, code_host: String, expires_in: i64 },
    /// Open the URL on any machine and enter the code.
    Enter { url: String, user_code: String, url_with_code: Option<String>, expires_in: i64 },
    /// Pass the API key to [`Logins::complete`].
    ApiKey,
}

/// A completed login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedLogin {
    pub server: String,
    pub scopes: Vec<String>,
}

/// Result of a logout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutOutcome {
    /// There was no login.
    NotLoggedIn,
    /// Deleted here, but not revoked.
    Deleted,
    /// Deleted here and revoked at the authorization server.
    Revoked,
}

impl LogoutOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotLoggedIn => "not_logged_in",
            Self::Deleted => "deleted",
            Self::Revoked => "revoked",
        }
    }
}

impl Logins {
    pub fn new(stores: &Stores, identity: ClientIdentity) -> Result<Self, ToolError> {
        LoginRegistry::new(stores, identity, Clock::system()).map(|registry| Self(Arc::new(registry)))
    }

    /// Sets how to log in at a server, replacing earlier settings.
    pub fn register(&self, spec: LoginSpec) {
        self.0.set(spec);
    }

    pub fn unregister(&self, server: &str) {
        self.0.unset(server);
    }

    /// Document to publish at [`ClientIdentity::metadata_url`].
    pub fn metadata_document(&self) -> Json {
        let mut document = oauth_client::client_metadata(&self.0.identity, ClientAuth::Public);
        if let (Some(own), Some(members)) = (&self.0.identity.metadata_url, document.as_object_mut()) {
            members.insert("client_id".to_owned(), own.as_str().into());
        }
        Json::from(document)
    }

    /// Account of a person or of all callers at a server.
    pub fn account(&self, owner: Owner, server: &str) -> Result<Arc<Account>, ToolError> {
        let spec = self.0.spec(server)?;
        Ok(Arc::new(Account::new(self.0.clone(), spec, owner)))
    }

    /// Whether a server uses an API key instead of OAuth.
    pub fn takes_key(&self, server: &str) -> Result<bool, ToolError> {
        Ok(matches!(self.0.spec(server)?.auth, Auth::Key(_)))
    }

    /// Accounts that an upstream uses for its callers: one per caller or a shared one, as configured.
    pub fn accounts(&self, server: &str) -> Result<Accounts, ToolError> {
        Ok(Accounts::new(self.0.clone(), self.0.spec(server)?))
    }

    /// Changes of stored and pending logins, and failed login attempts of this process.
    pub fn changes(&self) -> Changes {
        self.0.changes()
    }

    /// Starts a login, replacing a pending one. The frontend decides whether this caller may log in for all.
    pub async fn begin(&self, caller: &Caller, server: &str) -> Result<LoginPrompt, ToolError> {
        let spec = self.0.spec(server)?;
        let Auth::OAuth(oauth) = &spec.auth else { return Ok(LoginPrompt::ApiKey) };
        let url = spec.url.as_deref().ok_or_else(|| {
            ToolError::invalid(format!("`{server}` is a program and cannot use OAuth."))
                .hint("Use an API key: `auth` with `type: api-key` and the name of a variable.")
        })?;
        let web = AuthHttp::new(&spec);
        let account = (spec.owner(caller), server.to_owned());
        let at = web.checked_url(url)?;
        let challenge = self.challenge(&web, &at, &account).await?;
        let found = discover(&web, &at, &challenge, oauth.issuer.as_deref()).await?;
        // An unreadable login does not prevent a new one.
        let had = self.0.newest(&account.0, server).await.ok().flatten();
        let had = had.filter(|held| held.slot.issuer == found.issuer.issuer).map(|held| held.tokens.scopes);
        let scopes = requested_scopes(&found, oauth, challenge.scopes, had.unwrap_or_default());
        let by = caller.principal.clone();
        let flow = choose_flow(oauth.flow, &found.issuer)?;
        let now = self.0.now();
        let client =
            oauth_client::identify(&web, &self.0.store, &self.0.identity, oauth, &found.issuer, now).await?;
        let plan = LoginPlan { by, url: url.to_owned(), discovery: found, client, scopes };
        match flow {
            Flow::Device => self.begin_device(&spec, &web, account, plan).await,
            Flow::Auto | Flow::Browser => {
                self.begin_browser(&web, account, plan, &oauth.authorize_params).await
            }
        }
    }

    /// Returns the server's last challenge; probes the server if there is none yet.
    async fn challenge(
        &self,
        web: &AuthHttp<'_>,
        server: &Url,
        account: &LoginKey,
    ) -> Result<challenge::Challenge, ToolError> {
        if let Some(known) = self.0.challenge(account) {
            return Ok(known);
        }
        let (_, headers) = web.probe(server).await?;
        Ok(challenge::parse(&headers).unwrap_or_default())
    }

    async fn begin_browser(
        &self,
        web: &AuthHttp<'_>,
        account: LoginKey,
        plan: LoginPlan,
        extra: &BTreeMap<String, String>,
    ) -> Result<LoginPrompt, ToolError> {
        let endpoint = plan.discovery.issuer.authorization_endpoint.as_deref().unwrap_or_default();
        let endpoint = web.checked_page(endpoint)?;
        let (state, verifier) = (random_token()?, Secret::new(random_token()?));
        let redirect = self.0.identity.redirect_uri.clone();
        let started = plan
            .into_pending(LoginFlowKind::Browser { verifier: verifier.clone(), redirect: redirect.clone() });
        let url =
            authorization_code::authorization_url(endpoint, &started, &verifier, &redirect, &state, extra);
        let waiting =
            self.store_pending(account.clone(), &started, sha256_base64(&state), BROWSER_LOGIN_SECS).await?;
        let code_host = started.issuer.code_host();
        let start = self.0.start_pages.make(
            &StartPageRequest {
                account: &account,
                caller: &started.by.subject,
                state: &state,
                url: &url,
                code_host: &code_host,
                expires: waiting.expires,
            },
            self.0.now(),
        )?;
        Ok(LoginPrompt::Open { url, start, state, code_host, expires_in: BROWSER_LOGIN_SECS })
    }

    async fn begin_device(
        &self,
        spec: &Arc<LoginSpec>,
        web: &AuthHttp<'_>,
        account: LoginKey,
        plan: LoginPlan,
    ) -> Result<LoginPrompt, ToolError> {
        let asked = device_code::request_code(
            web,
            &plan.discovery.issuer,
            &plan.client,
            &plan.scopes,
            &plan.discovery.resource,
        )
        .await?;
        let started = plan.into_pending(LoginFlowKind::Device { code: asked.code, interval: asked.interval });
        // A little longer than the code, to distinguish expiry from a cancelled login.
        let life = asked.lifetime.saturating_add(DEVICE_LOGIN_GRACE_SECS);
        let waiting = self.store_pending(account, &started, sha256_base64(&random_token()?), life).await?;
        tokio::spawn(device_code::poll_to_end(
            self.0.clone(),
            spec.clone(),
            waiting,
            started,
            asked.lifetime,
        ));
        Ok(LoginPrompt::Enter {
            url: asked.url,
            user_code: asked.user_code,
            url_with_code: asked.url_with_code,
            expires_in: asked.lifetime,
        })
    }

    async fn store_pending(
        &self,
        account: LoginKey,
        started: &LoginFlow,
        id: String,
        life: i64,
    ) -> Result<PendingLogin, ToolError> {
        let (now, (owner, server)) = (self.0.now(), account);
        let secret =
            serde_json::to_string(started).map_err(|_| ToolError::internal("cannot serialize a login"))?;
        let waiting = PendingLogin {
            id,
            owner,
            server,
            expires: now.saturating_add(life),
            secret: Secret::new(secret),
        };
        self.0.store.put_pending(waiting.clone(), now).await?;
        Ok(waiting)
    }

    /// Completes a login with what a person pasted: the last URL of the browser, or the code alone; or stores an API
    /// key. Only the caller who started a login can complete it this way.
    pub async fn complete(
        &self,
        caller: &Caller,
        server: &str,
        answer: &str,
    ) -> Result<CompletedLogin, ToolError> {
        let spec = self.0.spec(server)?;
        let account = (spec.owner(caller), server.to_owned());
        if let Auth::Key(place) = &spec.auth {
            return self.store_api_key(&spec, place, account, answer).await;
        }
        match parse_pasted(answer, &self.0.identity.redirect_uri)? {
            PastedAnswer::Redirect(back) => {
                let waiting = self.claim_pending(&back, Some(caller)).await?;
                if waiting.server != server {
                    return Err(no_pending_login());
                }
                self.complete_pending(waiting, back).await
            }
            PastedAnswer::Code(code) => {
                let now = self.0.now();
                let waiting =
                    self.0.store.find_pending(&account.0, server, now).await?.ok_or_else(no_pending_login)?;
                let waiting = self.check_initiator(waiting, Some(caller))?;
                if parse_pending(&waiting)?.issuer.authorization_response_iss_parameter_supported {
                    return Err(ToolError::invalid("The code alone does not identify its issuer.").hint(
                        "Paste the full URL of the last page, even if the browser could not open it.",
                    ));
                }
                let waiting =
                    self.0.store.take_pending(&waiting.id, now).await?.ok_or_else(no_pending_login)?;
                let back = CallbackParams { code: Some(code), ..CallbackParams::default() };
                self.complete_pending(waiting, back).await
            }
        }
    }

    /// Completes a login from the query of the callback URL. If the frontend knows the caller, it must be the one who
    /// started the login.
    pub async fn callback(&self, query: &str, who: Option<&Caller>) -> Result<CompletedLogin, ToolError> {
        let back = CallbackParams::parse(query)?;
        let waiting = self.claim_pending(&back, who).await?;
        self.complete_pending(waiting, back).await
    }

    /// Lets logins start at a page of the hub whenever `is_needed` returns true: where browsers reach this process but
    /// have no token.
    pub fn offer_start_pages(&self, is_needed: impl Fn() -> bool + Send + Sync + 'static) {
        self.0.start_pages.offer(Arc::new(is_needed));
    }

    /// Content of the start page with this id.
    pub fn confirmation(&self, id: &str) -> Result<Confirmation, ToolError> {
        self.0.start_pages.confirmation(id, self.0.now())
    }

    /// Binds the login of the start page with this id to the browser that sends these cookies.
    pub fn bind_browser(&self, id: &str, cookies: &str) -> Result<BrowserRedirect, ToolError> {
        self.0.start_pages.bind_browser(id, cookies, self.0.now())
    }

    /// Completes a login from the callback if the cookies prove that it started in this browser. Otherwise returns
    /// `None`, and the login stays pending.
    pub async fn browser_callback(
        &self,
        query: &str,
        cookies: &str,
    ) -> Result<Option<CompletedLogin>, ToolError> {
        let Ok(back) = CallbackParams::parse(query) else { return Ok(None) };
        let is_bound = |state| self.0.start_pages.is_bound_browser(state, cookies, self.0.now());
        if !back.state.as_deref().is_some_and(is_bound) {
            return Ok(None);
        }
        let waiting = self.claim_pending(&back, None).await?;
        self.complete_pending(waiting, back).await.map(Some)
    }

    /// Returns the pending login of a callback. It is consumed by the first callback, valid or not.
    async fn claim_pending(
        &self,
        back: &CallbackParams,
        who: Option<&Caller>,
    ) -> Result<PendingLogin, ToolError> {
        let state = back.state.as_deref().filter(|state| !state.is_empty()).ok_or_else(no_pending_login)?;
        let waiting = self
            .0
            .store
            .take_pending(&sha256_base64(state), self.0.now())
            .await?
            .ok_or_else(no_pending_login)?;
        self.check_initiator(waiting, who)
    }

    fn check_initiator(
        &self,
        waiting: PendingLogin,
        who: Option<&Caller>,
    ) -> Result<PendingLogin, ToolError> {
        let by = parse_pending(&waiting)?.by;
        if who.is_some_and(|who| who.principal != by) {
            tracing::warn!(target: "upstream", server = %waiting.server, "login callback by another caller than the initiator");
            return Err(no_pending_login());
        }
        Ok(waiting)
    }

    async fn complete_pending(
        &self,
        waiting: PendingLogin,
        back: CallbackParams,
    ) -> Result<CompletedLogin, ToolError> {
        let started = parse_pending(&waiting)?;
        let account = (waiting.owner, waiting.server);
        let finished = self.exchange_code(&account, &started, back).await;
        if let Err(error) = &finished {
            self.0.set_failure(account, error.message.to_string());
        }
        finished
    }

    async fn exchange_code(
        &self,
        account: &LoginKey,
        started: &LoginFlow,
        back: CallbackParams,
    ) -> Result<CompletedLogin, ToolError> {
        back.check_issuer(&started.issuer)?;
        let LoginFlowKind::Browser { verifier, redirect } = &started.way else {
            return Err(no_pending_login());
        };
        let code = back.into_code()?;
        let spec = self.0.spec(&account.1)?;
        let form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier.expose()),
            ("resource", started.resource.as_str()),
        ];
        let endpoint = started.issuer.token_endpoint()?;
        let tokens = token_endpoint::request_tokens(&AuthHttp::new(&spec), endpoint, &started.client, form)
            .await
            .map_err(token_endpoint::TokenError::into_error)?;
        let source = TokenSource::of(started)?;
        let grant = TokenSet::new(&started.url, tokens, started.scopes.clone(), source, self.0.now());
        let scopes = grant.scopes.clone();
        self.0.store_login(account, &started.issuer.issuer, &grant).await?;
        Ok(CompletedLogin { server: account.1.clone(), scopes })
    }

    async fn store_api_key(
        &self,
        spec: &LoginSpec,
        place: &KeyPlacement,
        account: LoginKey,
        key: &str,
    ) -> Result<CompletedLogin, ToolError> {
        let key = key.trim();
        let fits = !key.is_empty() && key.len() <= 8192 && !key.contains(|c: char| c.is_control());
        let ascii = matches!(place, KeyPlacement::Environment(_)) || key.is_ascii();
        if !fits || !ascii {
            return Err(
                ToolError::invalid("That is not an API key.").hint("Enter the key alone, on one line.")
            );
        }
        let grant = TokenSet::api_key(spec.url.clone(), Secret::new(key), self.0.now());
        self.0.store_login(&account, API_KEY_ISSUER, &grant).await?;
        Ok(CompletedLogin { server: account.1, scopes: Vec::new() })
    }

    /// State of the caller's login at a server at this moment.
    pub async fn snapshot(&self, caller: &Caller, server: &str) -> Result<LoginSnapshot, ToolError> {
        let account = (self.0.spec(server)?.owner(caller), server.to_owned());
        Ok(LoginSnapshot::of(&self.0, &account).await)
    }

    /// All lost logins of the known servers, by server.
    pub async fn lost_logins(&self) -> Result<Vec<LostLogin>, ToolError> {
        lost_logins(&self.0).await
    }

    /// Refreshes logins before their tokens expire, until stopped. Of several hubs with one store, one refreshes.
    pub async fn keep_alive(self, stop: CancellationToken) {
        keep_alive(self.0, stop).await;
    }

    pub async fn status(&self, caller: &Caller, server: &str) -> Result<LoginStatus, ToolError> {
        let spec = self.0.spec(server)?;
        login_status(&self.0, &(spec.owner(caller), server.to_owned())).await
    }

    /// Removes a login here first, then revokes it at the authorization server (RFC 7009).
    pub async fn logout(&self, caller: &Caller, server: &str) -> Result<LogoutOutcome, ToolError> {
        let spec = self.0.spec(server)?;
        let account = (spec.owner(caller), server.to_owned());
        if let Some(waiting) = self.0.store.find_pending(&account.0, server, self.0.now()).await? {
            self.0.store.take_pending(&waiting.id, self.0.now()).await?;
        }
        let mut left = LogoutOutcome::NotLoggedIn;
        for kept in self.0.store.all(&account.0, server).await? {
            self.0.store.remove(&kept.slot).await?;
            let told = match StoredLogin::try_from(kept) {
                Ok(held) => revoke(&spec, &held.tokens).await,
                Err(_) => false,
            };
            left = if told { LogoutOutcome::Revoked } else { LogoutOutcome::Deleted };
        }
        self.0.login_changed(&account, false);
        Ok(left)
    }
}

fn parse_pending(waiting: &PendingLogin) -> Result<LoginFlow, ToolError> {
    serde_json::from_str(waiting.secret.expose())
        .map_err(|_| ToolError::internal("cannot parse a pending login"))
}

/// The same message for every reason, so that it reveals nothing.
fn no_pending_login() -> ToolError {
    ToolError::not_found("No pending login for this answer.")
        .hint("It was completed, expired or restarted. Start the login again and use the new URL.")
}
