//! Logging in and out, as the faces see it.

use super::account::Account;
use super::accounts::Accounts;
use super::authorize::{self, Pasted, Redirected, Started, Way, hashed, pasted, random};
use super::client::{self, Proof};
use super::device;
use super::discover::{Found, discover};
use super::grant::{Grant, Source};
use super::issuer::Issuer;
use super::settings::{Auth, Flow, Identity, KeyPlace, LoginSpec, OAuth};
use super::shelf::{Account as Key, Shelf};
use super::start_page::{Attempt, Confirmation, Departure};
use super::status::{Status, status};
use super::web::Web;
use super::{challenge, token};
use octo_grants::credentials::{Owner, Slot, Waiting};
use octo_grants::{Clock, Credentials, Secret};
use octo_model::{Caller, Json, Principal, ToolError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use url::Url;

/// Seconds that a person has for the browser's way.
const LIFE: i64 = 600;
const GRACE: i64 = 30;
/// The issuer of API keys: nobody.
const KEYS: &str = "api-key";
const MOST_SCOPES: usize = 128;

/// All logins of a hub.
#[derive(Clone)]
pub struct Logins(pub(super) Arc<Shelf>);

/// What a person has to do to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Open the address at the authorization server; afterwards the browser comes back to the hub, or its last address is pasted.
    /// Where there is a `start` page of the hub, opening that instead lets the browser complete the login. The code goes to
    /// `code_host`.
    Open { url: String, start: Option<String>, state: String, code_host: String, expires_in: i64 },
    /// Open the address on any machine and enter the code.
    Enter { url: String, user_code: String, url_with_code: Option<String>, expires_in: i64 },
    /// Give the API key to [`Logins::complete`].
    Key,
}

/// A login that was finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub server: String,
    pub scopes: Vec<String>,
}

/// How a login ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// There was none.
    Nothing,
    Forgotten,
    /// Forgotten here, and the authorization server was told.
    Revoked,
}

impl Logins {
    pub fn new(store: Credentials, identity: Identity) -> Result<Self, ToolError> {
        Shelf::new(store, identity, Clock::system()).map(|shelf| Self(Arc::new(shelf)))
    }

    /// Says how people log in at a server, in place of what was said before.
    pub fn set(&self, spec: LoginSpec) {
        self.0.set(spec);
    }

    pub fn unset(&self, server: &str) {
        self.0.unset(server);
    }

    /// What to publish at [`Identity::document`].
    pub fn document(&self) -> Json {
        let mut document = client::metadata(&self.0.identity, Proof::Nothing);
        if let (Some(own), Some(members)) = (&self.0.identity.document, document.as_object_mut()) {
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
        self.0.changed.subscribe()
    }

    /// Begins a login in place of one that waits. Whether this caller may log in for everybody is the face's to decide.
    pub async fn begin(&self, caller: &Caller, server: &str) -> Result<Begun, ToolError> {
        let spec = self.0.spec(server)?;
        let Auth::OAuth(oauth) = &spec.auth else { return Ok(Begun::Key) };
        let url = spec.url.as_deref().ok_or_else(|| {
            ToolError::invalid(format!("`{server}` is a program, and programs do not log in this way."))
                .hint("Give it a key: `auth` with `type: api-key` and the name of a variable.")
        })?;
        let web = Web::of(&spec);
        let account = (spec.owner(caller), server.to_owned());
        let at = web.url(url)?;
        let challenge = self.challenge(&web, &at, &account).await?;
        let found = discover(&web, &at, &challenge, oauth.issuer.as_deref()).await?;
        // One that cannot be read is no reason not to log in anew.
        let had = self.0.newest(&account.0, server).await.ok().flatten();
        let had = had.filter(|held| held.slot.issuer == found.issuer.issuer).map(|held| held.grant.scopes);
        let scopes = scopes(&found, oauth, challenge.scopes, had.unwrap_or_default());
        let by = caller.principal.clone();
        let flow = flow(oauth.flow, &found.issuer)?;
        let now = self.0.now();
        let client =
            client::identify(&web, &self.0.store, &self.0.identity, oauth, &found.issuer, now).await?;
        let plan = Plan { by, url: url.to_owned(), found, client, scopes };
        match flow {
            Flow::Device => self.enter(&spec, &web, account, plan).await,
            Flow::Auto | Flow::Browser => self.open(&web, account, plan, &oauth.authorize_params).await,
        }
    }

    /// What the server has asked for last; it is asked when it has not been yet.
    async fn challenge(
        &self,
        web: &Web<'_>,
        server: &Url,
        account: &Key,
    ) -> Result<challenge::Challenge, ToolError> {
        if let Some(known) = self.0.challenge(account) {
            return Ok(known);
        }
        let (_, headers) = web.knock(server).await?;
        Ok(challenge::read(&headers).unwrap_or_default())
    }

    async fn open(
        &self,
        web: &Web<'_>,
        account: Key,
        plan: Plan,
        extra: &BTreeMap<String, String>,
    ) -> Result<Begun, ToolError> {
        let endpoint = plan.found.issuer.authorization_endpoint.as_deref().unwrap_or_default();
        let endpoint = web.page(endpoint)?;
        let (state, verifier) = (random()?, Secret::new(random()?));
        let redirect = self.0.identity.redirect.clone();
        let started = plan.started(Way::Browser { verifier: verifier.clone(), redirect: redirect.clone() });
        let url = authorize::address(endpoint, &started, &verifier, &redirect, &state, extra);
        let waiting = self.wait(account.clone(), &started, hashed(&state), LIFE).await?;
        let code_host = started.issuer.code_host();
        let start = self.0.make_start_page(&Attempt {
            account: &account,
            caller: &started.by.subject,
            state: &state,
            url: &url,
            code_host: &code_host,
            expires: waiting.expires,
        })?;
        Ok(Begun::Open { url, start, state, code_host, expires_in: LIFE })
    }

    async fn enter(
        &self,
        spec: &Arc<LoginSpec>,
        web: &Web<'_>,
        account: Key,
        plan: Plan,
    ) -> Result<Begun, ToolError> {
        let asked =
            device::ask(web, &plan.found.issuer, &plan.client, &plan.scopes, &plan.found.resource).await?;
        let started = plan.started(Way::Device { code: asked.code, interval: asked.interval });
        // A little longer than the code, so that its end can be told from a login that was cancelled.
        let life = asked.life.saturating_add(GRACE);
        let waiting = self.wait(account, &started, hashed(&random()?), life).await?;
        tokio::spawn(device::follow(self.0.clone(), spec.clone(), waiting, started, asked.life));
        Ok(Begun::Enter {
            url: asked.url,
            user_code: asked.user_code,
            url_with_code: asked.url_with_code,
            expires_in: asked.life,
        })
    }

    async fn wait(
        &self,
        account: Key,
        started: &Started,
        id: String,
        life: i64,
    ) -> Result<Waiting, ToolError> {
        let (now, (owner, server)) = (self.0.now(), account);
        let secret =
            serde_json::to_string(started).map_err(|_| ToolError::internal("a login cannot be written"))?;
        let waiting =
            Waiting { id, owner, server, expires: now.saturating_add(life), secret: Secret::new(secret) };
        self.0.store.wait(waiting.clone(), now).await?;
        Ok(waiting)
    }

    /// Finishes a login with what a person has pasted: the last address of their browser, or the code alone; or takes an API
    /// key. Only who began a login can finish it this way.
    pub async fn complete(&self, caller: &Caller, server: &str, answer: &str) -> Result<Done, ToolError> {
        let spec = self.0.spec(server)?;
        let account = (spec.owner(caller), server.to_owned());
        if let Auth::Key(place) = &spec.auth {
            return self.key(&spec, place, account, answer).await;
        }
        match pasted(answer, &self.0.identity.redirect)? {
            Pasted::Redirect(back) => {
                let waiting = self.taken(&back, Some(caller)).await?;
                if waiting.server != server {
                    return Err(unknown());
                }
                self.finish(waiting, back).await
            }
            Pasted::Code(code) => {
                let now = self.0.now();
                let waiting = self.0.store.waits(&account.0, server, now).await?.ok_or_else(unknown)?;
                let waiting = self.mine(waiting, Some(caller))?;
                if started(&waiting)?.issuer.authorization_response_iss_parameter_supported {
                    return Err(ToolError::invalid("The code alone does not say who gave it.").hint(
                        "Paste the whole address of the last page, even if the browser could not show it.",
                    ));
                }
                let waiting = self.0.store.take(&waiting.id, now).await?.ok_or_else(unknown)?;
                let back = Redirected { code: Some(code), ..Redirected::default() };
                self.finish(waiting, back).await
            }
        }
    }

    /// Finishes the login that a browser was sent back from: the part of the address behind `?`. Where the face knows who
    /// is there, it says so, and then it must be who began.
    pub async fn callback(&self, query: &str, who: Option<&Caller>) -> Result<Done, ToolError> {
        let back = Redirected::read(query)?;
        let waiting = self.taken(&back, who).await?;
        self.finish(waiting, back).await
    }

    /// Lets logins begin at a page of the hub whenever `is_needed` says so: where browsers reach this process and cannot prove
    /// whose they are otherwise.
    pub fn offer_start_pages(&self, is_needed: impl Fn() -> bool + Send + Sync + 'static) {
        self.0.offer_start_pages(Arc::new(is_needed));
    }

    /// What to show on the page with this id.
    pub fn confirmation(&self, id: &str) -> Result<Confirmation, ToolError> {
        self.0.confirmation(id)
    }

    /// Binds the login of the page with this id to the browser that sends these cookies.
    pub fn depart(&self, id: &str, cookies: &str) -> Result<Departure, ToolError> {
        self.0.depart(id, cookies)
    }

    /// Finishes the login that a browser was sent back from, when its cookies say that it began there. Otherwise nothing
    /// happens, and the login goes on waiting.
    pub async fn browser_callback(&self, query: &str, cookies: &str) -> Result<Option<Done>, ToolError> {
        let Ok(back) = Redirected::read(query) else { return Ok(None) };
        if !back.state.as_deref().is_some_and(|state| self.0.began_here(state, cookies)) {
            return Ok(None);
        }
        let waiting = self.taken(&back, None).await?;
        self.finish(waiting, back).await.map(Some)
    }

    /// The login that an answer belongs to. It is gone with the first answer, good or bad.
    async fn taken(&self, back: &Redirected, who: Option<&Caller>) -> Result<Waiting, ToolError> {
        let state = back.state.as_deref().filter(|state| !state.is_empty()).ok_or_else(unknown)?;
        let waiting = self.0.store.take(&hashed(state), self.0.now()).await?.ok_or_else(unknown)?;
        self.mine(waiting, who)
    }

    fn mine(&self, waiting: Waiting, who: Option<&Caller>) -> Result<Waiting, ToolError> {
        let by = started(&waiting)?.by;
        if who.is_some_and(|who| who.principal != by) {
            tracing::warn!(target: "upstream", server = %waiting.server, "a login was answered by somebody else than who began it");
            return Err(unknown());
        }
        Ok(waiting)
    }

    async fn finish(&self, waiting: Waiting, back: Redirected) -> Result<Done, ToolError> {
        let started = started(&waiting)?;
        let account = (waiting.owner, waiting.server);
        let finished = self.exchanged(&account, &started, back).await;
        if let Err(error) = &finished {
            self.0.failed(account, error.message.to_string());
        }
        finished
    }

    async fn exchanged(&self, account: &Key, started: &Started, back: Redirected) -> Result<Done, ToolError> {
        back.check_issuer(&started.issuer)?;
        let Way::Browser { verifier, redirect } = &started.way else { return Err(unknown()) };
        let code = back.code()?;
        let spec = self.0.spec(&account.1)?;
        let form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier.expose()),
            ("resource", started.resource.as_str()),
        ];
        let endpoint = started.issuer.token_endpoint()?;
        let tokens = token::ask(&Web::of(&spec), endpoint, &started.client, form)
            .await
            .map_err(token::Refused::into_error)?;
        let source = Source::of(started)?;
        let grant = Grant::new(&started.url, tokens, started.scopes.clone(), source, self.0.now());
        let scopes = grant.scopes.clone();
        keep(&self.0, account, started, grant).await?;
        Ok(Done { server: account.1.clone(), scopes })
    }

    async fn key(
        &self,
        spec: &LoginSpec,
        place: &KeyPlace,
        account: Key,
        key: &str,
    ) -> Result<Done, ToolError> {
        let key = key.trim();
        let fits = !key.is_empty() && key.len() <= 8192 && !key.contains(|c: char| c.is_control());
        let ascii = matches!(place, KeyPlace::Environment(_)) || key.is_ascii();
        if !fits || !ascii {
            return Err(
                ToolError::invalid("That is not an API key.").hint("Give the key alone, on one line.")
            );
        }
        let grant = Grant::key(spec.url.clone(), Secret::new(key), self.0.now());
        let slot = Slot::new(account.0.clone(), &account.1, KEYS);
        self.0.store.put(&slot, grant.seal()?, None).await?;
        self.0.settled(&account, true);
        Ok(Done { server: account.1, scopes: Vec::new() })
    }

    pub async fn status(&self, caller: &Caller, server: &str) -> Result<Status, ToolError> {
        let spec = self.0.spec(server)?;
        status(&self.0, &(spec.owner(caller), server.to_owned())).await
    }

    /// Forgets a login here first, and then asks the authorization server to forget it, too (RFC 7009).
    pub async fn logout(&self, caller: &Caller, server: &str) -> Result<Left, ToolError> {
        let spec = self.0.spec(server)?;
        let account = (spec.owner(caller), server.to_owned());
        if let Some(waiting) = self.0.store.waits(&account.0, server, self.0.now()).await? {
            self.0.store.take(&waiting.id, self.0.now()).await?;
        }
        let mut left = Left::Nothing;
        for kept in self.0.store.all(&account.0, server).await? {
            self.0.store.remove(&kept.slot).await?;
            let told = match super::grant::Held::try_from(kept) {
                Ok(held) => revoke(&spec, &held.grant).await,
                Err(_) => false,
            };
            left = if told { Left::Revoked } else { Left::Forgotten };
        }
        self.0.settled(&account, false);
        Ok(left)
    }
}

/// What is known before a person is asked.
struct Plan {
    by: Principal,
    url: String,
    found: Found,
    client: client::Client,
    scopes: Vec<String>,
}

impl Plan {
    fn started(self, way: Way) -> Started {
        Started {
            by: self.by,
            url: self.url,
            issuer: self.found.issuer,
            client: self.client,
            scopes: self.scopes,
            resource: self.found.resource,
            way,
        }
    }
}

fn started(waiting: &Waiting) -> Result<Started, ToolError> {
    serde_json::from_str(waiting.secret.expose())
        .map_err(|_| ToolError::internal("a login that waits cannot be read"))
}

/// Keeps a login in place of every other that its owner has at the server.
pub(super) async fn keep(
    shelf: &Shelf,
    account: &Key,
    started: &Started,
    grant: Grant,
) -> Result<(), ToolError> {
    let slot = Slot::new(account.0.clone(), &account.1, &started.issuer.issuer);
    shelf.store.put(&slot, grant.seal()?, None).await?;
    for other in shelf.store.all(&account.0, &account.1).await.unwrap_or_default() {
        if other.slot != slot {
            shelf.store.remove(&other.slot).await?;
        }
    }
    shelf.settled(account, true);
    Ok(())
}

/// The refresh token is what counts: with it goes what was made from it.
async fn revoke(spec: &LoginSpec, grant: &Grant) -> bool {
    let Some(source) = &grant.source else { return false };
    let Some(endpoint) = &source.revocation_endpoint else { return false };
    let tokens = [(grant.refresh.as_ref(), "refresh_token"), (Some(&grant.access), "access_token")];
    let mut told = false;
    for (secret, kind) in tokens {
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else { continue };
        let mut form = vec![("token", secret.expose()), ("token_type_hint", kind)];
        let authorization = source.client.prove(&mut form);
        let answer = Web::of(spec).post_form(endpoint, &form, authorization).await;
        told |= answer.is_ok_and(|(status, _)| status.is_success());
    }
    told
}

/// What is asked for: what the server demands, else what the settings or its metadata say; what was given before stays, and
/// so does the leave to renew.
fn scopes(found: &Found, oauth: &OAuth, demanded: Vec<String>, had: Vec<String>) -> Vec<String> {
    let usual = if oauth.scopes.is_empty() { &found.scopes } else { &oauth.scopes };
    let usual = if demanded.is_empty() || !oauth.scopes.is_empty() { usual.as_slice() } else { &[] };
    let later = found.issuer.knows_scope("offline_access").then(|| "offline_access".to_owned());
    let mut all: Vec<String> = Vec::new();
    for scope in had.into_iter().chain(demanded).chain(usual.iter().cloned()).chain(later) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    all.truncate(MOST_SCOPES);
    all
}

/// The way that the settings want and the server has.
fn flow(wanted: Flow, issuer: &Issuer) -> Result<Flow, ToolError> {
    let none = |what: &str| {
        ToolError::unavailable(format!("The authorization server has no way to log in {what}."))
            .hint("Set `flow` in the server's `auth` to another one, or ask the server's operator.")
    };
    match wanted {
        Flow::Device if issuer.has_device() => Ok(Flow::Device),
        Flow::Device => Err(none("with a code")),
        Flow::Auto if !issuer.has_code() && issuer.has_device() => Ok(Flow::Device),
        Flow::Auto | Flow::Browser if !issuer.has_code() => Err(none("with a browser")),
        Flow::Auto | Flow::Browser if !issuer.has_pkce() => Err(ToolError::denied(
            "The authorization server does not protect codes with S256, so no login is begun.",
        )
        .hint("Its operator must offer PKCE and say so in its metadata.")),
        Flow::Auto | Flow::Browser => Ok(Flow::Browser),
    }
}

/// The same words for every reason: who guesses learns nothing.
fn unknown() -> ToolError {
    ToolError::not_found("No login waits for this answer.")
        .hint("It may have been answered already, have expired, or been begun again. Begin the login anew, and use the newest address.")
}
