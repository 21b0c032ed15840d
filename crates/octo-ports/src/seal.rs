//! Encryption of secrets before they reach a backend, each bound to its record.

use crate::{StoreError, StoreResult};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use octo_model::{Secret, hex};

pub const KEY_LEN: usize = 32;
/// The first byte of sealed data, for future formats.
const SEAL_VERSION: u8 = 1;

pub struct Seal(RandomizedNonceKey);

impl Seal {
    pub fn new(key: &[u8; KEY_LEN]) -> StoreResult<Self> {
        let key = RandomizedNonceKey::new(&AES_256_GCM, key);
        key.map(Self).map_err(|_| StoreError::internal("the key cannot be used"))
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
