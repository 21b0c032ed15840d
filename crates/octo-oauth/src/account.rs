//! A login in use: adds credentials to requests and handles refusals.

use crate::challenge;
use crate::login_registry::LoginRegistry;
use crate::login_spec::{Auth, KeyPlacement, LoginSpec};
use crate::refresh::refresh;
use crate::token_set::{Freshness, LoginVersion, StoredLogin};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use octo_model::ToolError;
use octo_ports::Owner;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::form_urlencoded::byte_serialize;

/// Changes by other processes are noticed within this time.
const CACHE_TTL: Duration = Duration::from_secs(2);
/// A token refused within this many seconds after it was issued would be refused again.
const MIN_TOKEN_AGE_SECS: i64 = 10;

/// Login of a person or of all callers at one server. Its holder can call that server on their behalf, and no other.
pub struct Account {
    registry: Arc<LoginRegistry>,
    spec: Arc<LoginSpec>,
    owner: Owner,
    cache: Mutex<Option<CachedLogin>>,
    /// Version that the server refused.
    refused: Mutex<Option<LoginVersion>>,
}

/// Cached state of the store, with its time.
#[derive(Clone)]
struct CachedLogin {
    at: Instant,
    /// Value of the registry's change counter.
    version: u64,
    login: Option<Arc<StoredLogin>>,
}

/// Version of the login that a request was sent with.
#[derive(Debug, Clone, Copy)]
pub struct UsedCredential(Option<LoginVersion>);

impl Account {
    pub(crate) fn new(registry: Arc<LoginRegistry>, spec: Arc<LoginSpec>, owner: Owner) -> Self {
        Self { registry, spec, owner, cache: Mutex::default(), refused: Mutex::default() }
    }

    pub(crate) fn parts(&self) -> (&LoginRegistry, &LoginSpec) {
        (&self.registry, &self.spec)
    }

    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whether there is a login that the server has not refused yet, such as one made by another process.
    pub async fn has_untried_login(&self) -> bool {
        let Ok(Some(held)) = self.load().await else { return false };
        let unwanted = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_usable(&held)
            && held.tokens.loss_reason(self.registry.now()).is_none()
            && unwanted != Some(held.version())
    }

    /// Adds the credential to a request. Without a login the request is sent without one, and the server responds with
    /// a challenge.
    pub async fn authorize(
        &self,
        uri: &mut Uri,
        headers: &mut HeaderMap,
    ) -> Result<UsedCredential, ToolError> {
        let Some(held) = self.usable_login().await? else {
            return Ok(UsedCredential(None));
        };
        let secret = held.tokens.access.expose();
        match &self.spec.auth {
            Auth::OAuth(_) => {
                drop(headers.insert(AUTHORIZATION, secret_header(&format!("Bearer {secret}"))?))
            }
            Auth::Key(KeyPlacement::Header { name, prefix: before }) => {
                let name = HeaderName::try_from(name.as_str()).map_err(|_| unsendable_error())?;
                headers.insert(name, secret_header(&format!("{before}{secret}"))?);
            }
            Auth::Key(KeyPlacement::Query(name)) => *uri = with_query(uri, name, secret)?,
            Auth::Key(KeyPlacement::Environment(_)) => {}
        }
        Ok(UsedCredential(Some(held.version())))
    }

    /// Environment variable for a program, if the key is passed that way and exists.
    pub async fn env_variable(&self) -> Result<Option<(String, String)>, ToolError> {
        let Auth::Key(KeyPlacement::Environment(name)) = &self.spec.auth else { return Ok(None) };
        let held = self.usable_login().await?;
        Ok(held.map(|held| (name.clone(), held.tokens.access.expose().to_owned())))
    }

    /// Whether a refused request may be sent again, with another token.
    pub async fn on_refused(
        &self,
        used: UsedCredential,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<bool, ToolError> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = used.0;
        let asked = challenge::parse(headers);
        let is_unknown = status == StatusCode::UNAUTHORIZED;
        if !is_unknown && !asked.as_ref().is_some_and(challenge::Challenge::needs_more_scope) {
            return Ok(false);
        }
        if let Some(asked) = asked {
            self.registry.set_challenge((self.owner.clone(), self.spec.server.clone()), asked);
        }
        let Some(held) = self.load().await? else { return Ok(false) };
        if used.0 != Some(held.version()) {
            return Ok(self.is_usable(&held));
        }
        let is_young = self.registry.now().saturating_sub(held.tokens.obtained) < MIN_TOKEN_AGE_SECS;
        if !is_unknown || is_young || held.tokens.refresh.is_none() {
            return Ok(false);
        }
        let renewed = self.refresh_now(&held).await?;
        Ok(renewed.is_some_and(|held| self.is_usable(&held)))
    }

    /// Returns a usable login, refreshed if due.
    async fn usable_login(&self) -> Result<Option<Arc<StoredLogin>>, ToolError> {
        let Some(held) = self.cached_or_loaded().await? else { return Ok(None) };
        if !self.is_usable(&held) {
            return Ok(None);
        }
        let can_renew = held.tokens.refresh.is_some();
        match held.tokens.freshness(self.registry.now(), self.registry.refresh_jitter) {
            Freshness::Fresh => Ok(Some(held)),
            Freshness::RefreshDue => {
                if can_renew {
                    self.refresh_in_background(&held);
                }
                Ok(Some(held))
            }
            Freshness::Expired if can_renew => {
                let refreshed = Box::pin(self.refresh_now(&held)).await?;
                Ok(refreshed.filter(|held| self.is_usable(held)))
            }
            Freshness::Expired => Ok(None),
        }
    }

    fn is_usable(&self, held: &StoredLogin) -> bool {
        held.tokens.lost.is_none()
            && !held.tokens.access.is_empty()
            && held.tokens.is_for(self.spec.url.as_deref())
    }

    /// While the token is valid, no call waits for the next one.
    fn refresh_in_background(&self, held: &StoredLogin) {
        // The holder of the lock already refreshes it.
        if self.registry.refresh_lock(&held.slot).try_lock().is_err()
            || self.registry.recent_refresh_failure(&held.slot).is_some()
        {
            return;
        }
        let (registry, spec, slot, mark) =
            (self.registry.clone(), self.spec.clone(), held.slot.clone(), held.version());
        tokio::spawn(async move {
            if let Err(error) = refresh(&registry, &spec, &slot, mark).await {
                tracing::warn!(target: "upstream", server = %spec.server, %error, "cannot refresh the login yet");
            }
        });
    }

    async fn refresh_now(&self, held: &StoredLogin) -> Result<Option<Arc<StoredLogin>>, ToolError> {
        let version = self.version();
        let renewed = refresh(&self.registry, &self.spec, &held.slot, held.version()).await?.map(Arc::new);
        self.set_cache(version, renewed.clone());
        Ok(renewed)
    }

    /// Returns the cached login if recent, otherwise loads it from the store.
    async fn cached_or_loaded(&self) -> Result<Option<Arc<StoredLogin>>, ToolError> {
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) if known.at.elapsed() < CACHE_TTL && known.version == self.version() => {
                Ok(known.login)
            }
            _ => self.load().await,
        }
    }

    fn version(&self) -> u64 {
        *self.registry.version.borrow()
    }

    async fn load(&self) -> Result<Option<Arc<StoredLogin>>, ToolError> {
        let version = self.version();
        let held = self.registry.newest(&self.owner, &self.spec.server).await?.map(Arc::new);
        self.set_cache(version, held.clone());
        Ok(held)
    }

    fn set_cache(&self, version: u64, held: Option<Arc<StoredLogin>>) {
        let known = CachedLogin { at: Instant::now(), version, login: held };
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

fn secret_header(text: &str) -> Result<HeaderValue, ToolError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| unsendable_error())?;
    value.set_sensitive(true);
    Ok(value)
}

fn with_query(uri: &Uri, name: &str, secret: &str) -> Result<Uri, ToolError> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let joint = if uri.query().is_some() { '&' } else { '?' };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let whole = format!("{path}{joint}{}={}", encoded(name), encoded(secret));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(whole.try_into().map_err(|_| unsendable_error())?);
    Uri::from_parts(parts).map_err(|_| unsendable_error())
}

fn unsendable_error() -> ToolError {
    ToolError::invalid("The credential cannot be sent as configured.")
        .hint("Check the header name in the server's `auth`, and log in again.")
}
