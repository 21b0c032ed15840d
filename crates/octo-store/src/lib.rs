//! The hub's ports on SQLite: the audit, chained and durable, the spills, callers' memories, the APIs that they have loaded,
//! their runs of workflows, and pins of and credentials for the servers behind the hub. One directory, no service.

#![expect(
    clippy::disallowed_methods,
    reason = "a door: the hub's own files are opened, dated and removed here"
)]

mod apis;
mod chain;
mod checkpoint;
mod codec;
mod credentials;
mod error;
mod handle;
mod health;
mod lists;
mod memory;
mod options;
mod pins;
mod private;
mod prune;
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
pub use credentials::{KeptCredentials, Keys};
pub use error::{Broken, StoreError};
pub use health::{check_database, check_disk};
pub use lists::KeptLists;
pub use memory::{Memories, MemoryOptions};
pub use options::{Durability, Options};
pub use pins::KeptPins;
pub use prune::{Retention, prune, prune_when_due};
pub use reader::Reader;
pub use record::{Record, RecordKind};
pub use runs::KeptRuns;
pub use store::Store;
pub use verify::{Verified, verify};
