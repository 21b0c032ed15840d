//! Verification of the chains of the audit log while they are copied.

use super::{ChainRecord, ChainStart};
use crate::audit_format::{BrokenChain, ChainVerifier, record_codec};
use crate::{Anchor, Port, StoreError, StoreResult};

/// A chain of which all records have arrived, and are as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteChain {
    pub chain: String,
    pub head: Anchor,
    pub pruned: Option<Anchor>,
    /// Number of the newest record of a pruning; 0 if there is none.
    pub prune_seq: i64,
}

#[derive(Default)]
pub struct ChainCheck {
    chain: String,
    verifier: Option<ChainVerifier>,
    prune_seq: i64,
}

fn corrupt(broken: BrokenChain) -> StoreError {
    StoreError::corrupt(Port::AuditReader, broken)
}

impl ChainCheck {
    /// Name of the current chain.
    pub fn chain(&self) -> &str {
        &self.chain
    }

    pub fn start(&mut self, start: &ChainStart) -> StoreResult<()> {
        self.verifier = Some(ChainVerifier::new(&start.chain, start.pruned, []).map_err(corrupt)?);
        self.chain.clone_from(&start.chain);
        self.prune_seq = 0;
        Ok(())
    }

    pub fn record(&mut self, record: &ChainRecord) -> StoreResult<()> {
        let verifier = self.verifier.as_mut().ok_or_else(out_of_order)?;
        verifier.verify(record.seq, &record.hash, &record.bytes).map_err(corrupt)?;
        if record_codec::pruned(&record.bytes).is_some() {
            self.prune_seq = record.seq;
        }
        Ok(())
    }

    pub fn end(&mut self, head: Anchor) -> StoreResult<CompleteChain> {
        let verified = self.verifier.take().ok_or_else(out_of_order)?.finish().map_err(corrupt)?;
        if verified.head != head {
            let reason = format!("its end is record {}, and not the one that was stored", verified.head.seq);
            return Err(corrupt(BrokenChain { chain: verified.chain, seq: head.seq, reason }));
        }
        let (chain, pruned) = (verified.chain, verified.pruned);
        Ok(CompleteChain { chain, head, pruned, prune_seq: self.prune_seq })
    }
}

fn out_of_order() -> StoreError {
    StoreError::internal("a record of no chain")
}
