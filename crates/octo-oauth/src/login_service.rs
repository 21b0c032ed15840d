//! Logging in and out, as the faces see it.

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
use octo_ports::{Owner, PendingLogin, Slot, Stores};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Seconds that a person has for the browser's way.
const BROWSER_LOGIN_SECS: i64 = 600;
const DEVICE_LOGIN_GRACE_SECS: i64 = 30;
/// The issuer of API keys: nobody.
const API_KEY_ISSUER: &str = "api-key";

/// All logins of a hub.
#[derive(Clone)]
pub struct Logins(Arc<LoginRegistry>);

/// What a person has to do to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginPrompt {
    /// Open the address at the authorization server; afterwards the browser comes back to the hub, or its last address is pasted.
    /// Where there is a `start` page of the hub, opening that instead lets the browser complete the login. The code goes to
    /// `code_host`.
    Open { url: String, start: Option<String>, state: String, code_host: String, expires_in: i64 },
    /// Open the address on any machine and enter the code.
    Enter { url: String, user_code: String, url_with_code: Option<String>, expires_in: i64 },
    /// Give the API key to [`Logins::complete`].
    ApiKey,
}

/// A login that was finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedLogin {
    pub server: String,
    pub scopes: Vec<String>,
}

/// How a login ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutOutcome {
    /// There was none.
    NotLoggedIn,
    Forgotten,
    /// Forgotten here, and the authorization server was told.
    Revoked,
}

impl Logins {
    pub fn new(stores: &Stores, identity: ClientIdentity) -> Result<Self, ToolError> {
        LoginRegistry::new(stores, identity, Clock::system()).map(|registry| Self(Arc::new(registry)))
    }

    /// Says how people log in at a server, in place of what was said before.
    pub fn register(&self, spec: LoginSpec) {
        self.0.set(spec);
    }

    pub fn unregister(&self, server: &str) {
        self.0.unset(server);
    }

    /// What to publish at [`ClientIdentity::metadata_url`].
    pub fn metadata_document(&self) -> Json {
        let mut document = oauth_client::client_metadata(&self.0.identity, ClientAuth::Public);
        if let (Some(own), Some(members)) = (&self.0.identity.metadata_url, document.as_object_mut()) {
            members.insert("client_id".to_owned(), own.as_str().into());
        }
        Json::from(document)
    }

    /// One login at a server: a person's, or everybody's.
    pub fn account(&self, owner: Owner, server: &str) -> Result<Arc<Account>, ToolError> {
        let spec = self.0.spec(server)?;
        Ok(Arc::new(Account::new(self.0.clone(), spec, owner)))
    }

    /// Whether a server takes an API key instead of a login.
    pub fn takes_key(&self, server: &str) -> Result<bool, ToolError> {
        Ok(matches!(self.0.spec(server)?.auth, Auth::Key(_)))
    }

    /// The logins with which one upstream speaks to its server for all its callers: each one's own, or the one they share, by
    /// what was said of the server.
    pub fn accounts(&self, server: &str) -> Result<Accounts, ToolError> {
        Ok(Accounts::new(self.0.clone(), self.0.spec(server)?))
    }

    /// Another number with each login that begins or ends in this process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Begins a login in place of one that waits. Whether this caller may log in for everybody is the face's to decide.
    pub async fn begin(&self, caller: &Caller, server: &str) -> Result<LoginPrompt, ToolError> {
        let spec = self.0.spec(server)?;
        let Auth::OAuth(oauth) = &spec.auth else { return Ok(LoginPrompt::ApiKey) };
        let url = spec.url.as_deref().ok_or_else(|| {
            ToolError::invalid(format!("`{server}` is a program, and programs do not log in this way."))
                .hint("Give it a key: `auth` with `type: api-key` and the name of a variable.")
        })?;
        let web = AuthHttp::new(&spec);
        let account = (spec.owner(caller), server.to_owned());
        let at = web.checked_url(url)?;
        let challenge = self.challenge(&web, &at, &account).await?;
        let found = discover(&web, &at, &challenge, oauth.issuer.as_deref()).await?;
        // One that cannot be read is no reason not to log in anew.
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

    /// What the server has asked for last; it is asked when it has not been yet.
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
        // A little longer than the code, so that its end can be told from a login that was cancelled.
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
            serde_json::to_string(started).map_err(|_| ToolError::internal("a login cannot be written"))?;
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

    /// Finishes a login with what a person has pasted: the last address of their browser, or the code alone; or takes an API
    /// key. Only who began a login can finish it this way.
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
                    return Err(ToolError::invalid("The code alone does not say who gave it.").hint(
                        "Paste the whole address of the last page, even if the browser could not show it.",
                    ));
                }
                let waiting =
                    self.0.store.take_pending(&waiting.id, now).await?.ok_or_else(no_pending_login)?;
                let back = CallbackParams { code: Some(code), ..CallbackParams::default() };
                self.complete_pending(waiting, back).await
            }
        }
    }

    /// Finishes the login that a browser was sent back from: the part of the address behind `?`. Where the face knows who
    /// is there, it says so, and then it must be who began.
    pub async fn callback(&self, query: &str, who: Option<&Caller>) -> Result<CompletedLogin, ToolError> {
        let back = CallbackParams::parse(query)?;
        let waiting = self.claim_pending(&back, who).await?;
        self.complete_pending(waiting, back).await
    }

    /// Lets logins begin at a page of the hub whenever `is_needed` says so: where browsers reach this process and cannot prove
    /// whose they are otherwise.
    pub fn offer_start_pages(&self, is_needed: impl Fn() -> bool + Send + Sync + 'static) {
        self.0.start_pages.offer(Arc::new(is_needed));
    }

    /// What to show on the page with this id.
    pub fn confirmation(&self, id: &str) -> Result<Confirmation, ToolError> {
        self.0.start_pages.confirmation(id, self.0.now())
    }

    /// Binds the login of the page with this id to the browser that sends these cookies.
    pub fn bind_browser(&self, id: &str, cookies: &str) -> Result<BrowserRedirect, ToolError> {
        self.0.start_pages.bind_browser(id, cookies, self.0.now())
    }

    /// Finishes the login that a browser was sent back from, when its cookies say that it began there. Otherwise nothing
    /// happens, and the login goes on waiting.
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

    /// The login that an answer belongs to. It is gone with the first answer, good or bad.
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
            tracing::warn!(target: "upstream", server = %waiting.server, "a login was answered by somebody else than who began it");
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
                ToolError::invalid("That is not an API key.").hint("Give the key alone, on one line.")
            );
        }
        let grant = TokenSet::api_key(spec.url.clone(), Secret::new(key), self.0.now());
        let slot = Slot::new(account.0.clone(), &account.1, API_KEY_ISSUER);
        self.0.store.put(&slot, grant.to_secret()?, None).await?;
        self.0.login_changed(&account, true);
        Ok(CompletedLogin { server: account.1, scopes: Vec::new() })
    }

    /// How the caller's login at a server stands at this moment.
    pub async fn snapshot(&self, caller: &Caller, server: &str) -> Result<LoginSnapshot, ToolError> {
        let account = (self.0.spec(server)?.owner(caller), server.to_owned());
        Ok(LoginSnapshot::of(&self.0, &account).await)
    }

    /// Every login of the known servers that was lost, by server.
    pub async fn lost_logins(&self) -> Result<Vec<LostLogin>, ToolError> {
        lost_logins(&self.0).await
    }

    /// Renews logins before their tokens expire, until it is told to stop. Of several hubs with one store, one renews.
    pub async fn keep_alive(self, stop: CancellationToken) {
        keep_alive(self.0, stop).await;
    }

    pub async fn status(&self, caller: &Caller, server: &str) -> Result<LoginStatus, ToolError> {
        let spec = self.0.spec(server)?;
        login_status(&self.0, &(spec.owner(caller), server.to_owned())).await
    }

    /// Forgets a login here first, and then asks the authorization server to forget it, too (RFC 7009).
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
            left = if told { LogoutOutcome::Revoked } else { LogoutOutcome::Forgotten };
        }
        self.0.login_changed(&account, false);
        Ok(left)
    }
}

fn parse_pending(waiting: &PendingLogin) -> Result<LoginFlow, ToolError> {
    serde_json::from_str(waiting.secret.expose())
        .map_err(|_| ToolError::internal("a login that waits cannot be read"))
}

/// The same words for every reason: who guesses learns nothing.
fn no_pending_login() -> ToolError {
    ToolError::not_found("No login waits for this answer.")
        .hint("It may have been answered already, have expired, or been begun again. Begin the login anew, and use the newest address.")
}
