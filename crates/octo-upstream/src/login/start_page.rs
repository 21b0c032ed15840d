//! The hub's page at which a person begins a login in a browser. It binds the login to that browser with a cookie, so that the
//! browser's return can complete it although browsers have no token.

use super::authorize::{hashed, random};
use super::shelf::{Account, Shelf, locked};
use octo_grants::credentials::Owner;
use octo_model::ToolError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use url::Url;

/// What the path of [`Identity::redirect`](super::Identity::redirect) must end in, and what stands there instead.
const CALLBACK: &str = "/auth/callback";
const START: &str = "/auth/start/";
const COOKIE_PREFIX: &str = "octoprox_login_";
/// A browser takes a cookie of such a name only over https, for the whole host and from nobody but it.
const HOST_PREFIX: &str = "__Host-";
/// Characters of the hashed `state` in the name of a cookie: logins that are under way in one browser have different names.
const COOKIE_TAG: usize = 16;

type StartPagePolicy = Arc<dyn Fn() -> bool + Send + Sync>;

/// The pages of logins that wait, in this process only: after a restart a login is completed by pasting.
#[derive(Default)]
pub(super) struct StartPages {
    is_needed: OnceLock<StartPagePolicy>,
    pages: Mutex<HashMap<Account, Page>>,
}

struct Page {
    /// Of the last part of the page's address.
    id_hash: String,
    state_hash: String,
    /// The address at the authorization server.
    url: String,
    shown: Confirmation,
    /// Seconds since 1970.
    expires: i64,
    /// Of the cookie of the first browser that began; no other can.
    cookie_hash: Option<String>,
}

/// What a person reads before they leave for the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    pub server: String,
    /// The caller who asked for the login.
    pub caller: String,
    /// Whether the login will be everybody's.
    pub is_shared: bool,
    /// The host that the login's code goes to.
    pub code_host: String,
}

/// Where a browser goes from the page, and the `Set-Cookie` that it takes along.
#[derive(Clone, PartialEq, Eq)]
pub struct Departure {
    pub url: String,
    pub set_cookie: String,
}

/// A login for which a page is made.
pub(super) struct Attempt<'a> {
    pub(super) account: &'a Account,
    pub(super) caller: &'a str,
    pub(super) state: &'a str,
    pub(super) url: &'a str,
    pub(super) code_host: &'a str,
    pub(super) expires: i64,
}

impl Shelf {
    /// From now on logins begin at a page of the hub whenever `is_needed` says so.
    pub(super) fn offer_start_pages(&self, is_needed: StartPagePolicy) {
        let _ = self.start.is_needed.set(is_needed);
    }

    /// The address of a page for a login, in place of the one that its account had.
    pub(super) fn make_start_page(&self, attempt: &Attempt<'_>) -> Result<Option<String>, ToolError> {
        let mut pages = locked(&self.start.pages);
        let now = self.now();
        pages.retain(|_, page| page.expires > now);
        pages.remove(attempt.account);
        let is_needed = self.start.is_needed.get().is_some_and(|is_needed| is_needed());
        let Some(place) = Place::of(&self.identity.redirect).filter(|_| is_needed) else { return Ok(None) };
        let id = random()?;
        let address = format!("{}{START}{id}", place.base);
        let (owner, server) = attempt.account;
        let page = Page {
            id_hash: hashed(&id),
            state_hash: hashed(attempt.state),
            url: attempt.url.to_owned(),
            shown: Confirmation {
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

    pub(super) fn confirmation(&self, id: &str) -> Result<Confirmation, ToolError> {
        self.page(id, |page, _| Ok(page.shown.clone()))
    }

    /// Binds a login to the browser that sends these cookies, unless another browser was first.
    pub(super) fn depart(&self, id: &str, cookies: &str) -> Result<Departure, ToolError> {
        let place = Place::of(&self.identity.redirect).ok_or_else(unknown)?;
        let fresh = random()?;
        self.page(id, |page, now| {
            let name = place.cookie_name(&page.state_hash);
            let value = match &page.cookie_hash {
                Some(bound) => page_cookie(cookies, &name)
                    .filter(|value| hashed(value) == *bound)
                    .ok_or_else(elsewhere)?
                    .to_owned(),
                None => fresh,
            };
            page.cookie_hash = Some(hashed(&value));
            let life = page.expires.saturating_sub(now);
            let (path, secure) = if place.is_secure { ("/", "; Secure") } else { (place.path.as_str(), "") };
            Ok(Departure {
                url: page.url.clone(),
                set_cookie: format!(
                    "{name}={value}; Path={path}; Max-Age={life}; HttpOnly; SameSite=Lax{secure}"
                ),
            })
        })
    }

    /// Whether the browser with these cookies is the one that began the login with this `state`.
    pub(super) fn began_here(&self, state: &str, cookies: &str) -> bool {
        let (state_hash, now) = (hashed(state), self.now());
        let pages = locked(&self.start.pages);
        let page = pages.values().find(|page| page.state_hash == state_hash && page.expires > now);
        let bound = page.and_then(|page| page.cookie_hash.as_deref());
        let place = Place::of(&self.identity.redirect);
        let sent = place.and_then(|place| page_cookie(cookies, &place.cookie_name(&state_hash)));
        matches!((bound, sent), (Some(bound), Some(sent)) if hashed(sent) == bound)
    }

    /// The login of this account waits no longer.
    pub(super) fn drop_start_page(&self, account: &Account) {
        locked(&self.start.pages).remove(account);
    }

    fn page<T>(
        &self,
        id: &str,
        look: impl FnOnce(&mut Page, i64) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let (id_hash, now) = (hashed(id), self.now());
        let mut pages = locked(&self.start.pages);
        let page = pages.values_mut().find(|page| page.id_hash == id_hash && page.expires > now);
        look(page.ok_or_else(unknown)?, now)
    }
}

/// Where browsers come back to, as far as pages and cookies need it.
struct Place {
    /// The address before [`CALLBACK`].
    base: String,
    path: String,
    is_secure: bool,
}

impl Place {
    /// None for an address that the hub's own page cannot be derived from, or that no cookie can be bound to.
    fn of(redirect: &str) -> Option<Self> {
        let url = Url::parse(redirect).ok()?;
        let base = url.as_str().strip_suffix(CALLBACK)?.to_owned();
        let path = url.path().to_owned();
        let fits = !path.contains([';', ',']) && url.query().is_none() && url.fragment().is_none();
        fits.then_some(Self { base, path, is_secure: url.scheme() == "https" })
    }

    fn cookie_name(&self, state_hash: &str) -> String {
        let tag: String = state_hash.chars().take(COOKIE_TAG).collect();
        let prefix = if self.is_secure { HOST_PREFIX } else { "" };
        format!("{prefix}{COOKIE_PREFIX}{tag}")
    }
}

/// The value of a cookie in a `Cookie` header. A name that comes twice is nobody's.
fn page_cookie<'a>(cookies: &'a str, name: &str) -> Option<&'a str> {
    let mut found = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    found.next().filter(|_| found.next().is_none())
}

fn unknown() -> ToolError {
    ToolError::not_found("There is no pending login at this address.")
        .hint("It was completed, expired or restarted. Start the login again and open the new address.")
}

fn elsewhere() -> ToolError {
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
            assert_eq!(Place::of(redirect).map(|place| place.base).as_deref(), base, "{redirect}");
        }
        assert!(Place::of("https://hub.example/auth/callback").is_some_and(|place| place.is_secure));
        assert!(Place::of("http://hub.example/auth/callback").is_some_and(|place| !place.is_secure));
        for (redirect, name) in [
            ("https://hub.example/auth/callback", "__Host-octoprox_login_0123"),
            ("http://localhost:3100/auth/callback", "octoprox_login_0123"),
        ] {
            assert_eq!(Place::of(redirect).map(|place| place.cookie_name("0123")).as_deref(), Some(name));
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
