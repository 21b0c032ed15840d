//! Copying all state of one backend to another, as a stream of records in a fixed order. Secrets are in clear on the
//! way: each backend has its own key. Leases are not copied: no one works meanwhile.

mod chain_check;
mod record_channel;
mod transfer_error;
mod transfer_record;

pub use chain_check::{ChainCheck, CompleteChain};
pub use record_channel::{RecordReceiver, RecordSender, transfer};
pub use transfer_error::TransferError;
pub use transfer_record::{
    ApiRow, ChainRecord, ChainStart, EntityRow, FactRow, FormerKindRow, KindRow, LinkRow, ListingRow,
    MemoryOwnerRow, PinRow, PinServerRow, ResultRow, RunRow, SeenPinRow, StateKind, StepRow, TransferCounts,
    TransferRecord,
};

/// Bytes of a part of a stored result.
pub const RESULT_CHUNK_BYTES: usize = 1 << 20;
