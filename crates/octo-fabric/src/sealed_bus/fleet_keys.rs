//! Keys that prove who sent a message: one for each service, derived from the secret of the fleet.
//!
//! Fronts have the secret, and so the key of every service. A worker needs only the keys of what it serves, and can then
//! speak for nothing else.

use crate::address::{STATUS_SCOPE, ServiceToken};
use aws_lc_rs::hkdf;
use octo_model::Secret;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) const KEY_LEN: usize = 32;
/// Shorter secrets can be guessed.
const MIN_SECRET_LEN: usize = 32;
/// First characters of the keys of a worker.
const WORKER_MARK: &str = "worker:";

/// Why no keys can be made from a text, which is not part of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FleetKeyError {
    #[error("has fewer than {MIN_SECRET_LEN} characters")]
    Short,
    #[error("is not the key of a worker")]
    Malformed,
    #[error("is the key of a worker, from which no others can be made")]
    OfWorker,
    #[error("cannot be used as a key")]
    Unusable,
}

pub struct FleetKeys(Origin);

enum Origin {
    Secret(Secret),
    /// By scope.
    Worker(BTreeMap<String, [u8; KEY_LEN]>),
}

impl FleetKeys {
    /// Keys from the secret of the fleet, or from the text of [`FleetKeys::for_worker`].
    pub fn parse(secret: &Secret) -> Result<Self, FleetKeyError> {
        let text = secret.expose().trim();
        if let Some(list) = text.strip_prefix(WORKER_MARK) {
            let entries = list.split(',').map(|entry| {
                let (scope, key) = entry.split_once(':').ok_or(FleetKeyError::Malformed)?;
                Ok((scope.to_owned(), from_hex(key).ok_or(FleetKeyError::Malformed)?))
            });
            return Ok(Self(Origin::Worker(entries.collect::<Result<_, _>>()?)));
        }
        if text.len() < MIN_SECRET_LEN {
            return Err(FleetKeyError::Short);
        }
        Ok(Self(Origin::Secret(Secret::new(text))))
    }

    /// The keys of a worker that serves these, such as `workspace/laptop`, as one text.
    pub fn for_worker(&self, services: &[String]) -> Result<Secret, FleetKeyError> {
        if matches!(self.0, Origin::Worker(_)) {
            return Err(FleetKeyError::OfWorker);
        }
        let named = services.iter().map(|service| ServiceToken(service).to_string());
        let mut text = WORKER_MARK.to_owned();
        for scope in std::iter::once(STATUS_SCOPE.to_owned()).chain(named) {
            let key = self.of_scope(&scope).ok_or(FleetKeyError::Unusable)?;
            let separator = if text.len() > WORKER_MARK.len() { "," } else { "" };
            let _ = write!(text, "{separator}{scope}:{}", octo_model::hex(&key));
        }
        Ok(Secret::new(text))
    }

    /// Whether these are the keys of a front, which speaks for everything.
    pub fn are_of_front(&self) -> bool {
        matches!(self.0, Origin::Secret(_))
    }

    pub(crate) fn of_scope(&self, scope: &str) -> Option<[u8; KEY_LEN]> {
        match &self.0 {
            Origin::Secret(secret) => derive(secret.bytes(), &[b"scope 1 ", scope.as_bytes()]),
            Origin::Worker(keys) => keys.get(scope).copied(),
        }
    }
}

pub(crate) fn derive(from: &[u8], about: &[&[u8]]) -> Option<[u8; KEY_LEN]> {
    let whole = hkdf::Salt::new(hkdf::HKDF_SHA256, b"keys of a fleet").extract(from);
    let mut key = [0; KEY_LEN];
    whole.expand(about, hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut key)).ok()?;
    Some(key)
}

fn from_hex(text: &str) -> Option<[u8; KEY_LEN]> {
    let mut key = [0; KEY_LEN];
    if text.len() != KEY_LEN * 2 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> FleetKeys {
        FleetKeys::parse(&Secret::new(text)).unwrap()
    }

    #[test]
    fn a_worker_has_the_keys_of_what_it_serves_only() {
        let fleet = keys("the secret of a fleet that only tests use");
        let text = fleet.for_worker(&["workspace/one".to_owned(), "server/a:b,c".to_owned()]).unwrap();
        let worker = keys(text.expose());
        for scope in [STATUS_SCOPE, "workspace=2fone", "server=2fa=3ab=2cc"] {
            assert_eq!(worker.of_scope(scope), fleet.of_scope(scope));
            assert!(worker.of_scope(scope).is_some(), "{scope}");
        }
        for scope in ["workspace=2ftwo", "front=2ffront", "+fronts", ""] {
            assert_eq!(worker.of_scope(scope), None, "{scope}");
        }
        assert_eq!(worker.for_worker(&[]).err(), Some(FleetKeyError::OfWorker));
        assert!(fleet.are_of_front() && !worker.are_of_front());
        assert_ne!(fleet.of_scope("workspace=2fone"), fleet.of_scope("workspace=2ftwo"));
    }

    #[test]
    fn weak_and_malformed_secrets_are_refused() {
        let error = |text: &str| FleetKeys::parse(&Secret::new(text)).err();
        assert_eq!(error("31 characters are not enough: 0"), Some(FleetKeyError::Short));
        for text in ["worker:", "worker:a", "worker:a:00", "worker:a:zz", "worker:é:é"] {
            assert_eq!(error(text), Some(FleetKeyError::Malformed), "{text}");
        }
    }
}
