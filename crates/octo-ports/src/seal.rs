//! Encryption of secrets before they reach a backend, each bound to its record.

use crate::{StoreError, StoreResult};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::{hkdf, rand};
use octo_model::{BoxFuture, Secret, hex};
use std::fmt;

pub const KEY_LEN: usize = 32;
/// Shorter secrets can be guessed.
const MIN_SECRET_LEN: usize = 16;
/// The first byte of sealed data, for future formats.
const SEAL_VERSION: u8 = 1;

pub struct Seal(RandomizedNonceKey);

impl Seal {
    pub fn new(key: &[u8; KEY_LEN]) -> StoreResult<Self> {
        let key = RandomizedNonceKey::new(&AES_256_GCM, key);
        key.map(Self).map_err(|_| StoreError::internal("the key cannot be used"))
    }

    /// With a key derived from the operator's secret.
    pub fn from_secret(secret: &Secret) -> Result<Self, SecretError> {
        Self::for_purpose(secret, "seal 1")
    }

    fn for_purpose(secret: &Secret, purpose: &str) -> Result<Self, SecretError> {
        if secret.bytes().len() < MIN_SECRET_LEN {
            return Err(SecretError("the hub's secret has fewer than 16 characters"));
        }
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"octoprox");
        let mut key = [0; KEY_LEN];
        let whole = salt.extract(secret.bytes());
        let filled =
            whole.expand(&[purpose.as_bytes()], hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut key));
        let unusable = SecretError("no key can be derived from the hub's secret");
        filled.ok().and_then(|()| Self::new(&key).ok()).ok_or(unusable)
    }

    /// With a new key, for the lifetime of this process.
    pub fn random() -> StoreResult<Self> {
        let mut key = [0; KEY_LEN];
        rand::fill(&mut key).map_err(|_| StoreError::internal("no random bytes for a key"))?;
        Self::new(&key)
    }

    pub fn seal(&self, plain: &str, bound: &[&str]) -> StoreResult<Secret> {
        let mut text = plain.as_bytes().to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(binding_digest(bound)), &mut text);
        let nonce = nonce.map_err(|_| StoreError::internal("a secret could not be sealed"))?;
        Ok(Secret::from_bytes([&[SEAL_VERSION], nonce.as_ref().as_slice(), &text].concat()))
    }

    /// `None` if it was changed, moved to another record, or sealed with another key.
    pub fn unseal(&self, sealed: &Secret, bound: &[&str]) -> Option<Secret> {
        let (nonce, text) = sealed.bytes().strip_prefix(&[SEAL_VERSION])?.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(binding_digest(bound)), &mut text).ok()?;
        String::from_utf8(plain.to_vec()).ok().map(Secret::new)
    }
}

/// A secret that no key is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretError(&'static str);

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for SecretError {}

/// Keys of a store.
pub struct Keyring {
    pub current: Seal,
    /// Earlier keys. Records sealed with one are resealed with the current key.
    pub previous: Vec<Seal>,
}

impl Keyring {
    /// With keys derived from the operator's secrets.
    pub fn from_secrets(current: &Secret, previous: &[Secret]) -> Result<Self, SecretError> {
        let previous = previous.iter().map(Seal::from_secret).collect::<Result<_, _>>()?;
        Ok(Self { current: Seal::from_secret(current)?, previous })
    }

    /// With keys for what the fronts of a fleet give to clients and accept from them.
    pub fn for_fronts(current: &Secret, previous: &[Secret]) -> Result<Self, SecretError> {
        let derive = |secret| Seal::for_purpose(secret, "fronts 1");
        Ok(Self {
            current: derive(current)?,
            previous: previous.iter().map(derive).collect::<Result<_, _>>()?,
        })
    }
}

/// Opens the keys of a store, on first use.
pub(crate) type OpenKeyring = Box<dyn Fn() -> BoxFuture<'static, StoreResult<Keyring>> + Send + Sync>;

/// Digest of length-prefixed parts, so that no two records have the same.
fn binding_digest(parts: &[&str]) -> Vec<u8> {
    let mut whole = Vec::new();
    for part in parts {
        whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
        whole.extend_from_slice(part.as_bytes());
    }
    digest(&SHA256, &whole).as_ref().to_vec()
}

/// Digest of parts, for comparison.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    hex(&binding_digest(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_the_secret_alone_and_short_ones_are_refused() {
        let [one, again, two] = ["a long enough secret", "a long enough secret", "another long secret"]
            .map(|secret| Seal::from_secret(&Secret::new(secret)).unwrap());
        let sealed = one.seal("k3y", &["a"]).unwrap();
        assert_eq!(again.unseal(&sealed, &["a"]), Some(Secret::new("k3y")));
        assert_eq!(two.unseal(&sealed, &["a"]), None);
        let refused = Seal::from_secret(&Secret::new("fifteen letters")).err().unwrap().to_string();
        assert!(refused.contains("16 characters") && !refused.contains("fifteen letters"), "{refused}");
        assert!(
            Keyring::from_secrets(&Secret::new("a long enough secret"), &[Secret::new("short")]).is_err()
        );
    }
}
