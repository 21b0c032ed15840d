//! What every backend of the audit log shares: the bytes of records, the hash chain, its verification, and the queue
//! of records to be written.

pub mod chain_merge;
pub mod chain_verifier;
pub mod hash_chain;
pub mod record_codec;
pub mod record_queue;

pub use chain_verifier::{BrokenChain, ChainVerifier};
pub use hash_chain::ChainHasher;
pub use record_queue::{Batch, RecordQueue};
