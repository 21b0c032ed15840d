//! Fingerprints of arguments in the audit log.

use aws_lc_rs::{hmac, rand};
use octo_model::hex;
use std::sync::OnceLock;

/// Domain separation from other keys derived from the same secret.
const KEY_DOMAIN: &[u8] = b"octoprox audit arguments 1";

/// The key for argument fingerprints. Records of hubs with different keys cannot be compared.
pub struct ArgumentKey(hmac::Key);

impl ArgumentKey {
    /// Derived from a secret of the hub.
    pub fn derive(secret: &[u8]) -> Self {
        let outer = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&outer, KEY_DOMAIN).as_ref()))
    }

    /// A key for the lifetime of this process.
    pub fn process_key() -> &'static Self {
        static KEY: OnceLock<ArgumentKey> = OnceLock::new();
        KEY.get_or_init(|| {
            let mut secret = [0; 32];
            // Without random bytes nothing else in the hub works either; the record is then worthless.
            let _ = rand::fill(&mut secret);
            Self::derive(&secret)
        })
    }

    pub fn fingerprint(&self, arguments: &[u8]) -> String {
        hex(hmac::sign(&self.0, arguments).as_ref())
    }
}
