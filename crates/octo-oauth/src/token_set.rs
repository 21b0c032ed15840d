//! A login as stored: encrypted by the store, parsed only here.

use crate::authorization_code::LoginFlow;
use crate::oauth_client::OAuthClient;
use crate::token_endpoint::TokenResponse;
use octo_model::ToolError;
use octo_model::{Secret, exposed_secret};
use octo_ports::{Slot, StoredCredential};
use serde::{Deserialize, Serialize};
use url::Url;

/// Tokens are refreshed this many seconds before they expire.
const REFRESH_EARLY_SECS: i64 = 300;
/// A token that expires within this many seconds counts as expired.
const EXPIRY_MARGIN_SECS: i64 = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenSet {
    /// URL of the server at login. The token is sent nowhere else.
    pub(crate) url: Option<String>,
    /// Access token or API key.
    #[serde(with = "exposed_secret")]
    pub(crate) access: Secret,
    #[serde(default, with = "exposed_secret")]
    pub(crate) refresh: Option<Secret>,
    pub(crate) obtained: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) scopes: Vec<String>,
    /// How it is refreshed; `None` for an API key.
    pub(crate) source: Option<TokenSource>,
    /// Why it can no longer be used.
    pub(crate) lost: Option<String>,
}

/// Where tokens came from, and the only place that the refresh token is sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenSource {
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: OAuthClient,
    pub(crate) resource: String,
}

impl TokenSource {
    pub(crate) fn of(started: &LoginFlow) -> Result<Self, ToolError> {
        Ok(Self {
            token_endpoint: started.issuer.token_endpoint()?.to_owned(),
            revocation_endpoint: started.issuer.revocation_endpoint.clone(),
            client: started.client.clone(),
            resource: started.resource.clone(),
        })
    }
}

/// Tokens with their slot in the store.
#[derive(Debug, Clone)]
pub(crate) struct StoredLogin {
    pub(crate) slot: Slot,
    pub(crate) revision: u64,
    pub(crate) tokens: TokenSet,
}

/// Distinguishes successive states of a login.
pub(crate) type LoginVersion = (u64, i64);

impl StoredLogin {
    /// Includes the time, because tokens that could not be written have no revision of their own.
    pub(crate) fn version(&self) -> LoginVersion {
        (self.revision, self.tokens.obtained)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// Valid, and due for refresh.
    RefreshDue,
    Expired,
}

impl TokenSet {
    pub(crate) fn api_key(url: Option<String>, key: Secret, now: i64) -> Self {
        Self {
            url,
            access: key,
            refresh: None,
            obtained: now,
            expires: None,
            scopes: Vec::new(),
            source: None,
            lost: None,
        }
    }

    pub(crate) fn new(
        url: &str,
        tokens: TokenResponse,
        asked: Vec<String>,
        source: TokenSource,
        now: i64,
    ) -> Self {
        let fresh = Self::api_key(Some(url.to_owned()), Secret::default(), now);
        Self { source: Some(source), scopes: asked, ..fresh }.refreshed(tokens, now)
    }

    /// Applies new tokens; a refresh token that was not replaced stays valid.
    pub(crate) fn refreshed(self, tokens: TokenResponse, now: i64) -> Self {
        Self {
            access: tokens.access,
            refresh: tokens.refresh.or(self.refresh),
            obtained: now,
            expires: tokens.lifetime.map(|life| now.saturating_add(life)),
            scopes: tokens.scopes.unwrap_or(self.scopes),
            lost: None,
            ..self
        }
    }

    /// Removes the tokens and sets the reason.
    pub(crate) fn invalidated(self, why: &str) -> Self {
        Self { access: Secret::default(), refresh: None, lost: Some(why.to_owned()), ..self }
    }

    pub(crate) fn freshness(&self, now: i64, early: i64) -> Freshness {
        let (Some(expires), Some(due)) = (self.expires, self.refresh_at(early)) else {
            return Freshness::Fresh;
        };
        if expires.saturating_sub(now) <= EXPIRY_MARGIN_SECS.min(self.lifetime(expires) / 8) {
            Freshness::Expired
        } else if now >= due {
            Freshness::RefreshDue
        } else {
            Freshness::Fresh
        }
    }

    /// When to refresh. `early` differs between processes, so that they do not all start at once.
    pub(crate) fn refresh_at(&self, early: i64) -> Option<i64> {
        let expires = self.expires?;
        Some(expires.saturating_sub((REFRESH_EARLY_SECS + early).min(self.lifetime(expires) / 4)))
    }

    fn lifetime(&self, expires: i64) -> i64 {
        expires.saturating_sub(self.obtained).max(0)
    }

    /// Why a new login is needed, if so.
    pub(crate) fn loss_reason(&self, now: i64) -> Option<String> {
        let over = self.refresh.is_none() && self.freshness(now, 0) == Freshness::Expired;
        self.lost.clone().or_else(|| over.then(|| "The login has expired.".to_owned()))
    }

    /// Whether it was issued for this server: the same name may refer to another URL by now.
    pub(crate) fn is_for(&self, url: Option<&str>) -> bool {
        let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
        match (self.url.as_deref(), url) {
            (Some(own), Some(url)) => own == url || origin(own).is_some_and(|own| Some(own) == origin(url)),
            (own, url) => own == url,
        }
    }

    pub(crate) fn to_secret(&self) -> Result<Secret, ToolError> {
        serde_json::to_string(self)
            .map(Secret::new)
            .map_err(|_| ToolError::internal("cannot serialize a login"))
    }
}

impl TryFrom<StoredCredential> for StoredLogin {
    type Error = ToolError;

    fn try_from(kept: StoredCredential) -> Result<Self, ToolError> {
        // The parser's message could repeat a part of the secret.
        let grant = serde_json::from_str(kept.secret.expose())
            .map_err(|_| ToolError::internal("cannot parse a stored login"))?;
        Ok(Self { slot: kept.slot, revision: kept.revision, tokens: grant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(life: i64) -> TokenSet {
        TokenSet { expires: Some(1000 + life), ..TokenSet::api_key(None, Secret::new("t0ken"), 1000) }
    }

    #[test]
    fn a_token_is_renewed_five_minutes_before_its_end_or_in_its_last_quarter() {
        for (life, early, now, age) in [
            (3600, 0, 1000, Freshness::Fresh),
            (3600, 0, 1000 + 3299, Freshness::Fresh),
            (3600, 0, 1000 + 3300, Freshness::RefreshDue),
            (3600, 30, 1000 + 3270, Freshness::RefreshDue),
            (3600, 0, 1000 + 3589, Freshness::RefreshDue),
            (3600, 0, 1000 + 3590, Freshness::Expired),
            (3600, 0, 9999, Freshness::Expired),
            (60, 0, 1000 + 44, Freshness::Fresh),
            (60, 0, 1000 + 45, Freshness::RefreshDue),
            (60, 0, 1000 + 53, Freshness::Expired),
            (2, 0, 1000 + 1, Freshness::Fresh),
            (2, 0, 1000 + 2, Freshness::Expired),
            (0, 0, 1000, Freshness::Expired),
            (3600, 0, 0, Freshness::Fresh),
        ] {
            assert_eq!(grant(life).freshness(now, early), age, "{life} {early} {now}");
        }
        assert_eq!(TokenSet::api_key(None, Secret::new("k"), 0).freshness(i64::MAX, 0), Freshness::Fresh);
    }

    #[test]
    fn a_token_goes_to_the_server_that_it_was_given_for() {
        let to = |own: Option<&str>, url: Option<&str>| {
            TokenSet { url: own.map(ToOwned::to_owned), ..grant(1) }.is_for(url)
        };
        assert!(to(Some("https://a.example/mcp"), Some("https://a.example/v2/mcp")));
        assert!(!to(Some("https://a.example/mcp"), Some("https://b.example/mcp")));
        assert!(!to(Some("https://a.example/mcp"), Some("http://a.example/mcp")));
        assert!(!to(Some("https://a.example/mcp"), None));
        assert!(to(None, None) && !to(None, Some("https://a.example/mcp")));
    }

    #[test]
    fn a_lost_login_keeps_no_token_and_none_is_printed() {
        let full = TokenSet { refresh: Some(Secret::new("t0ken")), ..grant(1) };
        assert!(!format!("{full:?}").contains("t0ken"));
        let lost = full.invalidated("it was revoked");
        assert!(lost.access.is_empty() && lost.refresh.is_none() && lost.lost.is_some());
        let tokens = TokenResponse { access: Secret::new("a"), refresh: None, lifetime: None, scopes: None };
        let kept = TokenSet { refresh: Some(Secret::new("r")), ..grant(1) }.refreshed(tokens, 2000);
        assert_eq!((kept.refresh.unwrap().expose(), kept.expires), ("r", None));
    }
}
