//! Bearer tokens, stored as hashes.

use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use octo_grants::Clock;
use octo_model::{Caller, LOCAL_SUBJECT, Principal, sha256_hex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Longer tokens are rejected.
const MAX_TOKEN_LEN: usize = 4_096;

/// A token of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenSettings {
    /// Name of the caller, in policy rules, limits and the audit.
    pub name: String,
    /// SHA-256 of the token in hexadecimal: the token itself is never stored.
    pub sha256: String,
    /// Tenant of the caller.
    #[serde(default = "default_tenant")]
    pub tenant: String,
    /// Rights of the caller beyond calling tools.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// When the token expires, such as `2027-01-31T00:00:00Z`. Never, if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
}

fn default_tenant() -> String {
    "default".to_owned()
}

/// Why a list of tokens is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenConfigError(String);

impl std::fmt::Display for TokenConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TokenConfigError {}

/// An accepted token.
struct AcceptedToken {
    hash: [u8; 32],
    caller: Arc<Caller>,
    expires: Option<Timestamp>,
    /// Ends the requests and streams that use it.
    revoked: CancellationToken,
}

impl AcceptedToken {
    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether it grants at least what another did.
    fn covers(&self, other: &Self) -> bool {
        self.hash == other.hash && self.caller.covers(&other.caller)
    }
}

#[derive(Default)]
struct TokenSet {
    all: Vec<AcceptedToken>,
    required: bool,
    /// Ends the connections from before tokens were required.
    closed: CancellationToken,
}

/// Tokens of the hub's listeners, shared by all clones. Without any, everyone who reaches a listener is the local
/// caller, so only a loopback listener may go without. Once there were tokens, requests without one are refused, even
/// after all tokens are removed.
#[derive(Clone, Default)]
pub struct Tokens {
    known: Arc<ArcSwap<TokenSet>>,
    /// Digests of tokens that are refused, whatever the settings of this hub say.
    refused: Arc<ArcSwap<HashSet<[u8; 32]>>>,
}

/// A caller whose token was accepted.
pub(super) struct TokenHolder {
    pub caller: Arc<Caller>,
    pub revoked: CancellationToken,
}

/// What is wrong with a request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    Missing,
    Unknown,
    Expired,
}

impl Tokens {
    pub fn new(settings: &[TokenSettings]) -> Result<Self, TokenConfigError> {
        let mut all: Vec<AcceptedToken> = Vec::with_capacity(settings.len());
        for token in settings {
            let known = parse_token_settings(token)?;
            if let Some(other) = all.iter().find(|other| other.hash == known.hash) {
                let (one, two) = (&other.caller.principal.subject, &token.name);
                return Err(TokenConfigError(format!(
                    "The callers `{one}` and `{two}` have the same token."
                )));
            }
            all.push(known);
        }
        let required = !all.is_empty();
        let known = TokenSet { all, required, ..TokenSet::default() };
        Ok(Self { known: Arc::new(ArcSwap::from_pointee(known)), refused: Arc::default() })
    }

    /// No tokens: for loopback listeners.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether requests need a token.
    pub fn are_required(&self) -> bool {
        self.known.load().required
    }

    /// Admits all requests as this caller if no token is required.
    pub(super) fn anonymous(&self, caller: &Arc<Caller>) -> Option<TokenHolder> {
        let known = self.known.load();
        (!known.required).then(|| TokenHolder { caller: Arc::clone(caller), revoked: known.closed.clone() })
    }

    /// Replaces the accepted tokens. Requests and streams of a token that was removed, or grants less now, end.
    pub fn replace(&self, fresh: &Self) {
        let (before, fresh) = (self.known.load_full(), fresh.known.load_full());
        let is_kept =
            |new: &AcceptedToken, old: &AcceptedToken| new.covers(old) && !old.revoked.is_cancelled();
        let kept = |new: &AcceptedToken| {
            before.all.iter().find(|old| is_kept(new, old)).map(|old| old.revoked.clone())
        };
        let all = fresh.all.iter().map(|new| AcceptedToken {
            hash: new.hash,
            caller: Arc::clone(&new.caller),
            expires: new.expires,
            revoked: kept(new).unwrap_or_default(),
        });
        let (required, closed) = (before.required || fresh.required, before.closed.clone());
        self.known.store(Arc::new(TokenSet { all: all.collect(), required, closed }));
        if required {
            before.closed.cancel();
        }
        for old in before.all.iter().filter(|old| !fresh.all.iter().any(|new| new.covers(old))) {
            old.revoked.cancel();
        }
    }

    /// Whether a caller with these scopes is still admitted.
    pub fn still_accepts(&self, caller: &Caller) -> bool {
        let (known, refused, now) = (self.known.load(), self.refused.load(), now());
        let is_accepted = |token: &AcceptedToken| !token.is_expired(now) && !refused.contains(&token.hash);
        !known.required || known.all.iter().any(|token| is_accepted(token) && token.caller.covers(caller))
    }

    /// Refuses the tokens with these digests from now on, and ends their requests and streams. Returns the names of the
    /// callers that have one.
    pub fn refuse<'a>(&self, digests: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let refused: HashSet<_> = digests.into_iter().filter_map(parse_sha256).collect();
        self.refused.store(Arc::new(refused.clone()));
        let known = self.known.load();
        let affected = known.all.iter().filter(|token| refused.contains(&token.hash));
        affected
            .map(|token| {
                token.revoked.cancel();
                token.caller.principal.subject.clone()
            })
            .collect()
    }

    /// Ends the requests and streams of expired tokens.
    pub fn end_expired(&self) {
        let now = now();
        self.known
            .load()
            .all
            .iter()
            .filter(|known| known.is_expired(now))
            .for_each(|known| known.revoked.cancel());
    }

    /// Returns the caller of a request's token. All known tokens are compared, even after a match.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<TokenHolder, TokenError> {
        let hash = digest(&SHA256, bearer(headers)?);
        let known = self.known.load();
        let mut found = None;
        for token in &known.all {
            if verify_slices_are_equal(&token.hash, hash.as_ref()).is_ok() {
                found = Some(token);
            }
        }
        match found {
            Some(token) if self.refused.load().contains(&token.hash) => Err(TokenError::Unknown),
            Some(token) if token.is_expired(now()) => Err(TokenError::Expired),
            Some(token) => {
                Ok(TokenHolder { caller: Arc::clone(&token.caller), revoked: token.revoked.clone() })
            }
            None => Err(TokenError::Unknown),
        }
    }
}

fn now() -> Timestamp {
    Clock::system().now()
}

fn bearer(headers: &HeaderMap) -> Result<&[u8], TokenError> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    let value = all.next().ok_or(TokenError::Missing)?;
    let (scheme, token) = value.split_at_checked(7).ok_or(TokenError::Unknown)?;
    let usable = scheme.eq_ignore_ascii_case(b"bearer ") && (1..=MAX_TOKEN_LEN).contains(&token.len());
    if usable && all.next().is_none() { Ok(token) } else { Err(TokenError::Unknown) }
}

fn parse_token_settings(token: &TokenSettings) -> Result<AcceptedToken, TokenConfigError> {
    let fault = |why: &str| TokenConfigError(format!("The token of `{}` {why}.", token.name));
    let hash = parse_sha256(&token.sha256).ok_or_else(|| fault("needs a sha256 of 64 hexadecimal digits"))?;
    if digest(&SHA256, b"").as_ref() == hash {
        return Err(fault("is empty: this is the hash of an empty text"));
    }
    if token.name.is_empty() || token.tenant.is_empty() {
        return Err(fault("needs a name and a tenant"));
    }
    if token.tenant.contains('/') || token.name.contains('/') {
        return Err(fault("has a slash in its name or tenant; policy rules use it as the separator"));
    }
    if token.name == LOCAL_SUBJECT {
        return Err(fault("has a reserved name: that of the user who runs the hub. Choose another one"));
    }
    let caller =
        Caller { principal: Principal::new(&token.tenant, &token.name), scopes: token.scopes.clone() };
    let (caller, revoked) = (Arc::new(caller), CancellationToken::new());
    Ok(AcceptedToken { hash, caller, expires: token.expires, revoked })
}

/// Fingerprint of a token, as the settings have it.
pub fn token_fingerprint(token: &str) -> String {
    sha256_hex(token.as_bytes())
}

fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| digit.try_into().ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit)).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::DEFAULT_TENANT;

    fn token(name: &str, sha256: String) -> TokenSettings {
        TokenSettings {
            name: name.to_owned(),
            sha256,
            tenant: default_tenant(),
            scopes: Vec::new(),
            expires: None,
        }
    }

    fn with(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn no_token_is_the_user_of_the_machine() {
        for (tenant, name, is_accepted) in
            [(DEFAULT_TENANT, "local", false), ("acme", "local", false), (DEFAULT_TENANT, "laptop", true)]
        {
            let settings = TokenSettings { tenant: tenant.to_owned(), ..token(name, token_fingerprint("x")) };
            let parsed = parse_token_settings(&settings);
            assert_eq!(parsed.is_ok(), is_accepted, "{tenant}/{name}");
            let is_told = |error: TokenConfigError| error.to_string().contains("reserved");
            assert!(parsed.map_or_else(is_told, |_| true), "{tenant}/{name}");
        }
    }

    #[test]
    fn knows_callers_by_their_tokens() {
        let tokens = Tokens::new(&[
            token("ann", token_fingerprint("a-secret")),
            token("bob", token_fingerprint("b-secret").to_uppercase()),
        ]);
        let tokens = tokens.unwrap();
        for (values, wanted) in [
            (&["Bearer a-secret"][..], Ok("ann")),
            (&["bearer b-secret"], Ok("bob")),
            (&["Bearer  a-secret"], Err(TokenError::Unknown)),
            (&["Bearer A-secret"], Err(TokenError::Unknown)),
            (&["Bearer "], Err(TokenError::Unknown)),
            (&["Bearer"], Err(TokenError::Unknown)),
            (&["Basic YTpi"], Err(TokenError::Unknown)),
            (&["a-secret"], Err(TokenError::Unknown)),
            (&["Bearer a-secret", "Bearer b-secret"], Err(TokenError::Unknown)),
            (&[], Err(TokenError::Missing)),
        ] {
            let found = tokens.authenticate(&with(values));
            assert_eq!(
                found.as_ref().map(|accepted| accepted.caller.principal.subject.as_str()).map_err(|why| *why),
                wanted,
                "{values:?}"
            );
        }
    }

    #[test]
    fn refuses_lists_that_would_let_the_wrong_one_in() {
        for bad in [
            vec![token("ann", "12".to_owned())],
            vec![token("ann", "x".repeat(64))],
            vec![token("ann", "é".repeat(32))],
            vec![token("ann", token_fingerprint(""))],
            vec![token("", token_fingerprint("a"))],
            vec![token("acme/ann", token_fingerprint("a"))],
            vec![token("ann", token_fingerprint("a")), token("bob", token_fingerprint("a"))],
        ] {
            assert!(Tokens::new(&bad).is_err(), "{bad:?}");
        }
    }

    fn accepted(tokens: &Tokens, bearer: &'static str) -> Result<TokenHolder, TokenError> {
        tokens.authenticate(&with(&[bearer]))
    }

    #[test]
    fn what_was_revoked_elsewhere_is_refused_whatever_the_settings_say() {
        let settings = [token("ann", token_fingerprint("a")), token("bob", token_fingerprint("b"))];
        let tokens = Tokens::new(&settings).unwrap();
        let clone = tokens.clone();
        let [ann, bob] = ["Bearer a", "Bearer b"].map(|it| accepted(&tokens, it).unwrap());
        let digest = token_fingerprint("a").to_uppercase();
        assert_eq!(tokens.refuse([digest.as_str(), "nonsense"]), ["ann"]);
        assert!(ann.revoked.is_cancelled() && !bob.revoked.is_cancelled());
        for _ in 0..2 {
            assert!(accepted(&clone, "Bearer a").is_err_and(|why| why == TokenError::Unknown));
            assert!(!clone.still_accepts(&ann.caller) && clone.still_accepts(&bob.caller));
            assert!(accepted(&clone, "Bearer b").is_ok());
            // Also after the settings were read again.
            tokens.replace(&Tokens::new(&settings).unwrap());
        }
        assert!(tokens.refuse([]).is_empty());
        assert!(accepted(&clone, "Bearer a").is_ok_and(|it| !it.revoked.is_cancelled()));
    }

    #[test]
    fn replaced_tokens_end_what_they_no_longer_allow() {
        let scoped = |name: &str, scopes: &[&str]| TokenSettings {
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            ..token(name, token_fingerprint(name))
        };
        let old = [scoped("ann", &["admin"]), scoped("bob", &[]), scoped("eve", &[])];
        let tokens = Tokens::new(&old).unwrap();
        let clone = tokens.clone();
        let [ann, bob, eve] =
            ["Bearer ann", "Bearer bob", "Bearer eve"].map(|it| accepted(&tokens, it).unwrap());
        tokens.replace(&Tokens::new(&[scoped("ann", &[]), scoped("bob", &["admin"])]).unwrap());
        assert!(ann.revoked.is_cancelled() && eve.revoked.is_cancelled() && !bob.revoked.is_cancelled());
        assert!(accepted(&clone, "Bearer eve").is_err_and(|why| why == TokenError::Unknown));
        assert!(accepted(&clone, "Bearer bob").is_ok_and(|it| it.caller.is_admin()));
        assert!(
            accepted(&clone, "Bearer ann")
                .is_ok_and(|it| !it.caller.is_admin() && !it.revoked.is_cancelled())
        );
        tokens.replace(&Tokens::none());
        assert!(clone.are_required() && bob.revoked.is_cancelled(), "nobody comes in without a token");
    }

    #[test]
    fn an_expired_token_is_refused_and_its_streams_end() {
        let until = |expires: &str| TokenSettings {
            expires: Some(expires.parse().unwrap()),
            ..token("ann", token_fingerprint("a"))
        };
        let past = Tokens::new(&[until("2020-01-01T00:00:00Z")]).unwrap();
        assert!(accepted(&past, "Bearer a").is_err_and(|why| why == TokenError::Expired));
        let ahead = Tokens::new(&[until("9000-01-01T00:00:00Z")]).unwrap();
        let held = accepted(&ahead, "Bearer a").unwrap();
        ahead.end_expired();
        assert!(!held.revoked.is_cancelled());
        ahead.replace(&past);
        ahead.end_expired();
        assert!(held.revoked.is_cancelled() && !ahead.still_accepts(&held.caller));
        // A token with a later expiry is accepted again.
        ahead.replace(&Tokens::new(&[until("9000-01-01T00:00:00Z")]).unwrap());
        assert!(accepted(&ahead, "Bearer a").is_ok_and(|it| !it.revoked.is_cancelled()));
        assert!(ahead.still_accepts(&held.caller));
    }
}
