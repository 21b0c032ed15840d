//! The hub's ports on SQLite: the audit, chained and durable, and the spills. One directory, one file, no service.

#![expect(
    clippy::disallowed_methods,
    reason = "a door: the hub's own files are opened, dated and removed here"
)]

mod chain;
mod checkpoint;
mod codec;
mod error;
mod handle;
mod options;
mod private;
mod queue;
mod reader;
mod record;
mod schema;
mod spills;
mod store;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use chain::{Anchor, Hash};
pub use error::{Broken, StoreError};
pub use options::{Durability, Options};
pub use reader::Reader;
pub use record::{Record, RecordKind};
pub use store::Store;
pub use verify::{Verified, verify};
