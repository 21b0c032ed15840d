//! Start page of the hub for browser logins. It binds the login to that browser with a cookie, so that the callback can
//! complete it although browsers have no token.

use crate::authorization_code::{random_token, sha256_base64};
use crate::login_spec::LoginKey;
use octo_model::ToolError;
use octo_ports::Owner;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use url::Url;

/// Required path suffix of [`ClientIdentity::redirect_uri`](crate::ClientIdentity::redirect_uri), and its replacement
/// for start pages.
const CALLBACK_PATH: &str = "/auth/callback";
const START_PATH: &str = "/auth/start/";
const COOKIE_PREFIX: &str = "octoprox_login_";
/// Browsers accept a cookie with this prefix only over https, for the whole host and from that host alone.
const HOST_PREFIX: &str = "__Host-";
/// Characters of the hashed `state` in a cookie's name, so that concurrent logins in one browser have different names.
const COOKIE_TAG_LEN: usize = 16;

type StartPagePolicy = Arc<dyn Fn() -> bool + Send + Sync>;

/// Start pages of pending logins, in this process only: after a restart a login is completed by pasting.
pub(crate) struct StartPages {
    location: Option<CallbackLocation>,
    is_needed: OnceLock<StartPagePolicy>,
    pages: Mutex<HashMap<LoginKey, Page>>,
}

struct Page {
    /// Hash of the last path segment of the page.
    id_hash: String,
    state_hash: String,
    /// URL at the authorization server.
    url: String,
    confirmation: Confirmation,
    /// Unix time in seconds.
    expires: i64,
    /// Hash of the cookie of the first browser; no other browser can use the page.
    cookie_hash: Option<String>,
}

/// What a person confirms before going to the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    pub server: String,
    /// Caller who requested the login.
    pub caller: String,
    /// Whether the login will be shared by all.
    pub is_shared: bool,
    /// Host that receives the authorization code.
    pub code_host: String,
}

/// Redirect from the page, with its `Set-Cookie`.
#[derive(Clone, PartialEq, Eq)]
pub struct BrowserRedirect {
    pub url: String,
    pub set_cookie: String,
}

/// A login that needs a page.
pub(crate) struct StartPageRequest<'a> {
    pub(crate) account: &'a LoginKey,
    pub(crate) caller: &'a str,
    pub(crate) state: &'a str,
    pub(crate) url: &'a str,
    pub(crate) code_host: &'a str,
    pub(crate) expires: i64,
}

impl StartPages {
    pub(crate) fn new(redirect_uri: &str) -> Self {
        let location = CallbackLocation::parse(redirect_uri);
        Self { location, is_needed: OnceLock::new(), pages: Mutex::default() }
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<LoginKey, Page>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on logins start at a page of the hub whenever `is_needed` returns true.
    pub(crate) fn offer(&self, is_needed: StartPagePolicy) {
        let _ = self.is_needed.set(is_needed);
    }

    /// Creates a page for a login, replacing that of its account; returns its URL.
    pub(crate) fn make(&self, attempt: &StartPageRequest<'_>, now: i64) -> Result<Option<String>, ToolError> {
        let mut pages = self.pages();
        pages.retain(|_, page| page.expires > now);
        pages.remove(attempt.account);
        let is_needed = self.is_needed.get().is_some_and(|is_needed| is_needed());
        let Some(place) = self.location.as_ref().filter(|_| is_needed) else {
            return Ok(None);
        };
        let id = random_token()?;
        let address = format!("{}{START_PATH}{id}", place.base);
        let (owner, server) = attempt.account;
        let page = Page {
            id_hash: sha256_base64(&id),
            state_hash: sha256_base64(attempt.state),
            url: attempt.url.to_owned(),
            confirmation: Confirmation {
                server: server.clone(),
                caller: attempt.caller.to_owned(),
                is_shared: *owner == Owner::Shared,
                code_host: attempt.code_host.to_owned(),
            },
            expires: attempt.expires,
            cookie_hash: None,
        };
        pages.insert(attempt.account.clone(), page);
        Ok(Some(address))
    }

    pub(crate) fn confirmation(&self, id: &str, now: i64) -> Result<Confirmation, ToolError> {
        self.with_page(id, now, |page| Ok(page.confirmation.clone()))
    }

    /// Binds a login to the browser that sends these cookies, unless another browser was first.
    pub(crate) fn bind_browser(
        &self,
        id: &str,
        cookies: &str,
        now: i64,
    ) -> Result<BrowserRedirect, ToolError> {
        let place = self.location.as_ref().ok_or_else(unknown_page)?;
        let fresh = random_token()?;
        self.with_page(id, now, |page| {
            let name = place.cookie_name(&page.state_hash);
            let value = match &page.cookie_hash {
                Some(bound) => page_cookie(cookies, &name)
                    .filter(|value| sha256_base64(value) == *bound)
                    .ok_or_else(other_browser)?
                    .to_owned(),
                None => fresh,
            };
            page.cookie_hash = Some(sha256_base64(&value));
            let life = page.expires.saturating_sub(now);
            let (path, secure) = if place.is_secure { ("/", "; Secure") } else { (place.path.as_str(), "") };
            Ok(BrowserRedirect {
                url: page.url.clone(),
                set_cookie: format!(
                    "{name}={value}; Path={path}; Max-Age={life}; HttpOnly; SameSite=Lax{secure}"
                ),
            })
        })
    }

    /// Whether the browser with these cookies started the login with this `state`.
    pub(crate) fn is_bound_browser(&self, state: &str, cookies: &str, now: i64) -> bool {
        let state_hash = sha256_base64(state);
        let pages = self.pages();
        let page = pages.values().find(|page| page.state_hash == state_hash && page.expires > now);
        let bound = page.and_then(|page| page.cookie_hash.as_deref());
        let sent =
            self.location.as_ref().and_then(|place| page_cookie(cookies, &place.cookie_name(&state_hash)));
        matches!((bound, sent), (Some(bound), Some(sent)) if sha256_base64(sent) == bound)
    }

    /// The login of this account is no longer pending.
    pub(crate) fn remove(&self, account: &LoginKey) {
        self.pages().remove(account);
    }

    fn with_page<T>(
        &self,
        id: &str,
        now: i64,
        look: impl FnOnce(&mut Page) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let id_hash = sha256_base64(id);
        let mut pages = self.pages();
        let page = pages.values_mut().find(|page| page.id_hash == id_hash && page.expires > now);
        look(page.ok_or_else(unknown_page)?)
    }
}

/// Callback URL, as far as pages and cookies need it.
struct CallbackLocation {
    /// URL without [`CALLBACK_PATH`].
    base: String,
    path: String,
    is_secure: bool,
}

impl CallbackLocation {
    /// `None` for a URL that the start page cannot be derived from, or that no cookie can be bound to.
    fn parse(redirect: &str) -> Option<Self> {
        let url = Url::parse(redirect).ok()?;
        let base = url.as_str().strip_suffix(CALLBACK_PATH)?.to_owned();
        let path = url.path().to_owned();
        let fits = !path.contains([';', ',']) && url.query().is_none() && url.fragment().is_none();
        fits.then_some(Self { base, path, is_secure: url.scheme() == "https" })
    }

    fn cookie_name(&self, state_hash: &str) -> String {
        let tag: String = state_hash.chars().take(COOKIE_TAG_LEN).collect();
        let prefix = if self.is_secure { HOST_PREFIX } else { "" };
        format!("{prefix}{COOKIE_PREFIX}{tag}")
    }
}

/// Value of a cookie in a `Cookie` header; `None` if the name occurs twice.
fn page_cookie<'a>(cookies: &'a str, name: &str) -> Option<&'a str> {
    let mut found = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    found.next().filter(|_| found.next().is_none())
}

fn unknown_page() -> ToolError {
    ToolError::not_found("There is no pending login at this address.")
        .hint("It was completed, expired or restarted. Start the login again and open the new address.")
}

fn other_browser() -> ToolError {
    ToolError::denied("This login was started in another browser.")
        .hint("Continue there, or start the login again and open the new address here.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stands_beside_the_callback() {
        for (redirect, base) in [
            ("http://localhost:3100/auth/callback", Some("http://localhost:3100")),
            ("https://hub.example/octo/auth/callback", Some("https://hub.example/octo")),
            ("https://hub.example/back", None),
            ("https://hub.example/auth/callback?x=1", None),
            ("https://hub.example/a;b/auth/callback", None),
            ("not an address", None),
        ] {
            assert_eq!(
                CallbackLocation::parse(redirect).map(|place| place.base).as_deref(),
                base,
                "{redirect}"
            );
        }
        assert!(
            CallbackLocation::parse("https://hub.example/auth/callback").is_some_and(|place| place.is_secure)
        );
        assert!(
            CallbackLocation::parse("http://hub.example/auth/callback").is_some_and(|place| !place.is_secure)
        );
        for (redirect, name) in [
            ("https://hub.example/auth/callback", "__Host-octoprox_login_0123"),
            ("http://localhost:3100/auth/callback", "octoprox_login_0123"),
        ] {
            assert_eq!(
                CallbackLocation::parse(redirect).map(|place| place.cookie_name("0123")).as_deref(),
                Some(name)
            );
        }
    }

    #[test]
    fn a_cookie_counts_once_and_under_its_own_name() {
        for (cookies, value) in [
            ("a=1", Some("1")),
            ("x=2; a=1; y=3", Some("1")),
            ("aa=1", None),
            ("a=1; a=2", None),
            ("A=1", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(page_cookie(cookies, "a"), value, "{cookies}");
        }
    }
}
