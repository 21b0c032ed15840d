//! Verification of one hash chain, record by record.

use super::hash_chain::ChainHasher;
use super::record_codec;
use crate::{Anchor, ChainAnchor, Hash, Verified};
use std::fmt;

/// The first record of a chain that differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    pub chain: String,
    pub seq: u64,
    pub reason: String,
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, seq, reason } = self;
        match chain.as_str() {
            "" => write!(f, "broken at record {seq}: {reason}"),
            chain => write!(f, "chain `{chain}` is broken at record {seq}: {reason}"),
        }
    }
}

impl std::error::Error for BrokenChain {}

/// Gets the records of a chain in order and reports the first that is changed, missing, moved or inserted.
pub struct ChainVerifier {
    chain: String,
    at: Anchor,
    pruned: Option<Anchor>,
    /// A record tells of the pruning.
    is_pruning_recorded: bool,
    hasher: ChainHasher,
    anchors: Vec<Anchor>,
}

/// The anchors of a chain.
pub fn anchors_of<'a>(chain: &'a str, anchors: &'a [ChainAnchor]) -> impl Iterator<Item = Anchor> + 'a {
    anchors.iter().filter(move |anchor| anchor.chain == chain).map(|anchor| anchor.anchor)
}

/// Fails if there is an anchor of a chain that does not exist.
pub fn verify_missing_chains(
    anchors: &[ChainAnchor],
    is_known: impl Fn(&str) -> bool,
) -> Result<(), BrokenChain> {
    let missing = anchors.iter().filter(|anchor| !is_known(&anchor.chain));
    missing
        .map(|anchor| ChainVerifier::new(&anchor.chain, None, [anchor.anchor])?.finish())
        .try_for_each(|empty| empty.map(drop))
}

impl ChainVerifier {
    /// Of a chain that starts after the last pruned record. `anchors` are earlier heads.
    pub fn new(
        chain: &str,
        pruned: Option<Anchor>,
        anchors: impl IntoIterator<Item = Anchor>,
    ) -> Result<Self, BrokenChain> {
        let verifier = Self {
            chain: chain.to_owned(),
            at: pruned.unwrap_or_default(),
            pruned,
            is_pruning_recorded: pruned.is_none(),
            hasher: ChainHasher::default(),
            anchors: anchors.into_iter().collect(),
        };
        let is_pruned = |anchor: &&Anchor| {
            pruned.is_some_and(|pruned| {
                anchor.seq < pruned.seq || (anchor.seq == pruned.seq && anchor.hash != pruned.hash)
            })
        };
        match verifier.anchors.iter().find(is_pruned) {
            Some(anchor) => {
                Err(verifier.broken(anchor.seq, "it was pruned, so the anchor cannot be verified"))
            }
            None => Ok(verifier),
        }
    }

    /// The last record that was verified.
    pub fn position(&self) -> Anchor {
        self.at
    }

    pub fn broken(&self, seq: u64, reason: impl Into<String>) -> BrokenChain {
        BrokenChain { chain: self.chain.clone(), seq, reason: reason.into() }
    }

    /// Verifies the next record.
    pub fn verify(&mut self, seq: i64, hash: &[u8], record: &[u8]) -> Result<(), BrokenChain> {
        let expected = self.at.seq + 1;
        if seq < 1 {
            return Err(self.broken(0, format!("record {seq} precedes the first")));
        }
        if seq.cast_unsigned() != expected {
            return Err(self.broken(expected, format!("it is missing; the next one is {seq}")));
        }
        let computed = self.hasher.hash(self.at.hash, record);
        if Hash::from_bytes(hash) != Some(computed) {
            return Err(self.broken(expected, "its hash does not match it and the record before"));
        }
        self.at = Anchor { seq: expected, hash: computed };
        self.is_pruning_recorded = self.is_pruning_recorded || record_codec::pruned(record) == self.pruned;
        if self.anchors.iter().any(|anchor| anchor.seq == expected && anchor.hash != computed) {
            return Err(self.broken(expected, "it does not match the anchor"));
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Verified, BrokenChain> {
        for anchor in &self.anchors {
            if anchor.seq > self.at.seq {
                return Err(self.broken(
                    self.at.seq + 1,
                    format!("it and all later records are missing; the anchor is record {}", anchor.seq),
                ));
            }
            if anchor.seq == 0 && anchor.hash != Hash::default() {
                return Err(self.broken(0, "no chain starts with the anchor's hash"));
            }
        }
        let before = self.pruned.map_or(0, |pruned| pruned.seq);
        if !self.is_pruning_recorded {
            return Err(self.broken(before, "it is missing, and no record tells of its removal"));
        }
        let records = self.at.seq - before;
        Ok(Verified { chain: self.chain, records, head: self.at, pruned: self.pruned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(records: &[&[u8]]) -> Vec<(Anchor, Vec<u8>)> {
        let (mut hasher, mut at) = (ChainHasher::default(), Anchor::default());
        let link = |record: &&[u8]| {
            at = Anchor { seq: at.seq + 1, hash: hasher.hash(at.hash, record) };
            (at, record.to_vec())
        };
        records.iter().map(link).collect()
    }

    fn verify(
        pruned: Option<Anchor>,
        anchors: &[Anchor],
        records: &[(Anchor, Vec<u8>)],
    ) -> Result<Verified, BrokenChain> {
        let mut verifier = ChainVerifier::new("hub-1", pruned, anchors.iter().copied())?;
        for (at, record) in records {
            verifier.verify(at.seq.cast_signed(), &at.hash.0, record)?;
        }
        verifier.finish()
    }

    #[test]
    fn every_anchor_counts() {
        let records = chain(&[b"one", b"two", b"three"]);
        let (first, last) = (records[0].0, records[2].0);
        assert_eq!(verify(None, &[first, last], &records).unwrap().head, last);
        let foreign = Anchor { seq: 2, ..first };
        let broken = verify(None, &[last, foreign], &records).unwrap_err();
        assert_eq!(broken.to_string(), "chain `hub-1` is broken at record 2: it does not match the anchor");
        assert_eq!(verify(None, &[first, last], &records[..2]).unwrap_err().seq, 3);
    }

    #[test]
    fn a_pruning_must_be_recorded() {
        let mut records = chain(&[b"one", b"two", b"three"]);
        let pruned = records[1].0;
        assert_eq!(verify(Some(pruned), &[], &records[2..]).unwrap_err().seq, 2);
        let mut prune = Vec::new();
        record_codec::encode_prune(&mut prune, 5, pruned);
        let texts: Vec<&[u8]> = vec![b"one", b"two", b"three", &prune];
        records = chain(&texts);
        let verified = verify(Some(pruned), &[], &records[2..]).unwrap();
        assert_eq!((verified.records, verified.pruned), (2, Some(pruned)));
    }

    #[test]
    fn an_anchor_of_a_missing_chain_is_missed() {
        let anchors = [ChainAnchor { chain: "gone".to_owned(), anchor: chain(&[b"one"])[0].0 }];
        assert!(verify_missing_chains(&anchors, |chain| chain == "gone").is_ok());
        assert_eq!(verify_missing_chains(&anchors, |_| false).unwrap_err().chain, "gone");
    }
}
