//! Hash chain: each record's hash covers the previous one, so that none can be changed, moved or removed
//! alone.
//!
//! hash(0) is 32 zero bytes; hash(n) = SHA-256(hash(n - 1) ‖ bytes of record n). Anyone who can write the
//! file can also compute a whole new chain: only a head that was stored elsewhere (an `Anchor`) reveals that.

use crate::Hash;
use aws_lc_rs::digest::{SHA256, digest};

/// Input of the hash function, in one reused buffer.
#[derive(Default)]
pub struct ChainHasher {
    bytes: Vec<u8>,
}

impl ChainHasher {
    /// The hash of a record that follows `before`.
    pub fn hash(&mut self, before: Hash, record: &[u8]) -> Hash {
        self.bytes.clear();
        self.bytes.extend_from_slice(&before.0);
        self.bytes.extend_from_slice(record);
        Hash::from_bytes(digest(&SHA256, &self.bytes).as_ref()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_the_hash_before_it_and_the_record() {
        let mut link = ChainHasher::default();
        // (head -c 32 /dev/zero; printf '{"v":1}') | sha256sum
        assert_eq!(
            link.hash(Hash::default(), b"{\"v\":1}").to_string(),
            "c65d49300dc2d863463d373af0788206b580c324371d2699e3f2d5cbb2b0b50f"
        );
    }
}
