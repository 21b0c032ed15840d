//! The hub's ports on SQLite: the audit, chained and durable, the spills, callers' memories, the APIs that they have loaded
//! and their runs of workflows. One directory, no service.

#![expect(
    clippy::disallowed_methods,
    reason = "a door: the hub's own files are opened, dated and removed here"
)]

mod apis;
mod chain;
mod checkpoint;
mod codec;
mod error;
mod handle;
mod memory;
mod options;
mod private;
mod queue;
mod reader;
mod record;
mod runs;
mod schema;
mod seal;
mod spills;
mod store;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use apis::KeptApis;
pub use chain::{Anchor, Hash};
pub use error::{Broken, StoreError};
pub use memory::{Memories, MemoryOptions};
pub use options::{Durability, Options};
pub use reader::Reader;
pub use record::{Record, RecordKind};
pub use runs::KeptRuns;
pub use store::Store;
pub use verify::{Verified, verify};
