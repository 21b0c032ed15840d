//! Positions in the hash chain, in which each hash covers the previous record.

use octo_model::hex;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

const HASH_LEN: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hash(pub [u8; HASH_LEN]);

impl Hash {
    /// `None` if it is not the length of a hash.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// A position in the chain. Stored elsewhere, it proves later that everything up to it is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Anchor {
    pub seq: u64,
    pub hash: Hash,
}

/// A position in one of the chains of a log: `hub-1=42:9f86…`. The only chain of a log may have no name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainAnchor {
    pub chain: String,
    pub anchor: Anchor,
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
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
        const ANCHOR_FORMAT: &str = "an anchor is a record number, a colon and a hash";
        let (seq, hash) = text.split_once(':').ok_or(ANCHOR_FORMAT)?;
        Ok(Self { seq: seq.parse().map_err(|_| ANCHOR_FORMAT)?, hash: hash.parse()? })
    }
}

impl fmt::Display for ChainAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, anchor } = self;
        if chain.is_empty() { write!(f, "{anchor}") } else { write!(f, "{chain}={anchor}") }
    }
}

impl FromStr for ChainAnchor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (chain, anchor) = text.rsplit_once('=').unwrap_or(("", text));
        Ok(Self { chain: chain.to_owned(), anchor: anchor.parse()? })
    }
}

impl From<Anchor> for ChainAnchor {
    /// In the chain without a name.
    fn from(anchor: Anchor) -> Self {
        Self { chain: String::new(), anchor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_read_as_they_are_written() {
        let anchor = Anchor { seq: 42, hash: Hash(std::array::from_fn(|at| at as u8 * 7)) };
        assert_eq!(anchor.to_string().parse(), Ok(anchor));
        for wrong in
            ["", "42", "42:ab", "x:00", &format!("1:{}", "g".repeat(64)), &format!("1:{}", "ü".repeat(32))]
        {
            assert!(wrong.parse::<Anchor>().is_err(), "{wrong}");
        }
        for chain in ["", "hub-1", "a=b:c"] {
            let named = ChainAnchor { chain: chain.to_owned(), anchor };
            assert_eq!(named.to_string().parse(), Ok(named));
        }
    }
}
