//! Who calls: bearer tokens, of which the hub knows only hashes.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, HeaderValue, header};
use octo_model::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Longer ones are not looked at.
const LONGEST: usize = 4_096;

/// One token that lets a caller in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenSettings {
    /// Whom it stands for, in policy rules, limits and the audit.
    pub name: String,
    /// SHA-256 of the token in hexadecimal: the token itself is never written down.
    pub sha256: String,
    /// The tenant that the caller belongs to.
    #[serde(default = "default_tenant")]
    pub tenant: String,
    /// What the caller may do beyond calling tools.
    #[serde(default)]
    pub scopes: Vec<String>,
}

fn default_tenant() -> String {
    "default".to_owned()
}

/// Why a list of tokens cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFault(String);

impl std::fmt::Display for TokenFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TokenFault {}

/// The tokens of a listener. Without any, everyone who reaches it is the local caller, so only a
/// loopback listener may go without.
#[derive(Clone, Default)]
pub struct Tokens(Vec<([u8; 32], Arc<Caller>)>);

/// What is wrong with a request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEntry {
    Missing,
    Unknown,
}

impl Tokens {
    pub fn new(settings: &[TokenSettings]) -> Result<Self, TokenFault> {
        let mut known: Vec<([u8; 32], Arc<Caller>)> = Vec::with_capacity(settings.len());
        for token in settings {
            let (hash, caller) = read(token)?;
            if let Some((_, other)) = known.iter().find(|(old, _)| *old == hash) {
                let (one, two) = (&other.subject, &token.name);
                return Err(TokenFault(format!("The callers `{one}` and `{two}` have the same token.")));
            }
            known.push((hash, Arc::new(caller)));
        }
        Ok(Self(known))
    }

    /// No tokens: for loopback listeners.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The caller whose token a request carries. Every known token is compared, whichever fits.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Result<Arc<Caller>, NoEntry> {
        let hash = digest(&SHA256, bearer(headers)?);
        let mut found = None;
        for (known, caller) in &self.0 {
            if verify_slices_are_equal(known, hash.as_ref()).is_ok() {
                found = Some(caller);
            }
        }
        found.cloned().ok_or(NoEntry::Unknown)
    }
}

fn bearer(headers: &HeaderMap) -> Result<&[u8], NoEntry> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    let value = all.next().ok_or(NoEntry::Missing)?;
    let (scheme, token) = value.split_at_checked(7).ok_or(NoEntry::Unknown)?;
    let usable = scheme.eq_ignore_ascii_case(b"bearer ") && (1..=LONGEST).contains(&token.len());
    if usable && all.next().is_none() { Ok(token) } else { Err(NoEntry::Unknown) }
}

fn read(token: &TokenSettings) -> Result<([u8; 32], Caller), TokenFault> {
    let fault = |why: &str| TokenFault(format!("The token of `{}` {why}.", token.name));
    let hash = unhex(&token.sha256).ok_or_else(|| fault("needs a sha256 of 64 hexadecimal digits"))?;
    if digest(&SHA256, b"").as_ref() == hash {
        return Err(fault("is empty: this is the hash of no text at all"));
    }
    if token.name.is_empty() || token.tenant.is_empty() {
        return Err(fault("needs a name and a tenant"));
    }
    let caller =
        Caller { subject: token.name.clone(), tenant: token.tenant.clone(), scopes: token.scopes.clone() };
    Ok((hash, caller))
}

/// The form of a token that the settings take.
pub fn fingerprint(token: &str) -> String {
    let hash = digest(&SHA256, token.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
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

    fn token(name: &str, sha256: String) -> TokenSettings {
        TokenSettings { name: name.to_owned(), sha256, tenant: default_tenant(), scopes: Vec::new() }
    }

    fn with(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn knows_callers_by_their_tokens() {
        let tokens = Tokens::new(&[
            token("ann", fingerprint("a-secret")),
            token("bob", fingerprint("b-secret").to_uppercase()),
        ]);
        let tokens = tokens.unwrap();
        for (values, wanted) in [
            (&["Bearer a-secret"][..], Ok("ann")),
            (&["bearer b-secret"], Ok("bob")),
            (&["Bearer  a-secret"], Err(NoEntry::Unknown)),
            (&["Bearer A-secret"], Err(NoEntry::Unknown)),
            (&["Bearer "], Err(NoEntry::Unknown)),
            (&["Bearer"], Err(NoEntry::Unknown)),
            (&["Basic YTpi"], Err(NoEntry::Unknown)),
            (&["a-secret"], Err(NoEntry::Unknown)),
            (&["Bearer a-secret", "Bearer b-secret"], Err(NoEntry::Unknown)),
            (&[], Err(NoEntry::Missing)),
        ] {
            let found = tokens.caller(&with(values));
            assert_eq!(
                found.as_ref().map(|caller| caller.subject.as_str()),
                wanted.as_ref().copied(),
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
            vec![token("ann", fingerprint(""))],
            vec![token("", fingerprint("a"))],
            vec![token("ann", fingerprint("a")), token("bob", fingerprint("a"))],
        ] {
            assert!(Tokens::new(&bad).is_err(), "{bad:?}");
        }
    }
}
