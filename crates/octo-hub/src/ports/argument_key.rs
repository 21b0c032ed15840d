//! What stands for the arguments of a call in the audit.

use aws_lc_rs::{hmac, rand};
use std::sync::OnceLock;

/// What the key is for, so that it is no other key of the same origin.
const KEY_DOMAIN: &[u8] = b"octoprox audit arguments 1";

/// The key that arguments are recorded with. Records of hubs with different keys cannot be compared.
pub struct ArgumentKey(hmac::Key);

impl ArgumentKey {
    /// Derived from a secret of the hub.
    pub fn derive(secret: &[u8]) -> Self {
        let outer = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&outer, KEY_DOMAIN).as_ref()))
    }

    /// One that ends with this process.
    pub fn process_key() -> &'static Self {
        static KEY: OnceLock<ArgumentKey> = OnceLock::new();
        KEY.get_or_init(|| {
            let mut secret = [0; 32];
            // Without random bytes nothing else of the hub works either; the record is then as good as none.
            let _ = rand::fill(&mut secret);
            Self::derive(&secret)
        })
    }

    pub fn fingerprint(&self, arguments: &[u8]) -> String {
        let mut text = String::with_capacity(64);
        for byte in hmac::sign(&self.0, arguments).as_ref() {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        text
    }
}
