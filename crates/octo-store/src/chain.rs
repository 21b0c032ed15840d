//! Each record's hash covers the one before it, so that none can be changed, moved or taken out alone.
//!
//! hash(0) is 32 zero bytes; hash(n) = SHA-256(hash(n - 1) ‖ bytes of record n). Whoever can write the file can also
//! compute a whole new chain: only a head that was noted elsewhere (an `Anchor`) tells the two apart.

use crate::record_codec::to_hex;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

pub(crate) const HASH_LEN: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hash(pub [u8; HASH_LEN]);

impl Hash {
    /// `None` for bytes that are no hash at all.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// The bytes that a hash is taken of, in one reused buffer.
#[derive(Default)]
pub(crate) struct ChainHasher {
    bytes: Vec<u8>,
}

impl ChainHasher {
    /// The hash of a record that stands behind `before`.
    pub(crate) fn hash(&mut self, before: Hash, record: &[u8]) -> Hash {
        self.bytes.clear();
        self.bytes.extend_from_slice(&before.0);
        self.bytes.extend_from_slice(record);
        Hash::from_bytes(digest(&SHA256, &self.bytes).as_ref()).unwrap_or_default()
    }
}

/// A place in the chain. Noted elsewhere, it proves later that everything up to it is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Anchor {
    pub seq: u64,
    pub hash: Hash,
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Hash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HASH_FORMAT: &str = "a hash is 64 hexadecimal digits";
        if text.len() != 2 * HASH_LEN {
            return Err(HASH_FORMAT);
        }
        let mut hash = Self::default();
        for (byte, pair) in hash.0.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |at: usize| pair.get(at).and_then(|c| char::from(*c).to_digit(16)).ok_or(HASH_FORMAT);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Ok(hash)
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Anchor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const ANCHOR_FORMAT: &str = "an anchor is the number of a record, a colon and its hash";
        let (seq, hash) = text.split_once(':').ok_or(ANCHOR_FORMAT)?;
        Ok(Self { seq: seq.parse().map_err(|_| ANCHOR_FORMAT)?, hash: hash.parse()? })
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

    #[test]
    fn anchors_are_read_as_they_are_written() {
        let anchor = Anchor { seq: 42, hash: Hash(std::array::from_fn(|at| at as u8 * 7)) };
        assert_eq!(anchor.to_string().parse(), Ok(anchor));
        for wrong in
            ["", "42", "42:ab", "x:00", &format!("1:{}", "g".repeat(64)), &format!("1:{}", "ü".repeat(32))]
        {
            assert!(wrong.parse::<Anchor>().is_err(), "{wrong}");
        }
    }
}
