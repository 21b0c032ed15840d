//! The hub's ports on SQLite: the audit, chained and durable, the spills, callers' memories, the APIs that they have loaded,
//! their runs of workflows, and pins of and credentials for the servers behind the hub. One directory, no service.

#![expect(
    clippy::disallowed_methods,
    reason = "a door: the hub's own files are opened, dated and removed here"
)]

mod api_store;
mod audit_reader;
mod audit_writer;
mod chain;
mod checkpoint;
mod credential_store;
mod database;
mod error;
mod health;
mod listing_store;
mod memory;
mod options;
mod pin_store;
mod private_files;
mod prune;
mod record;
mod record_codec;
mod record_queue;
mod result_files;
mod result_handle;
mod run_store;
mod seal;
mod store;
#[cfg(test)]
mod tests;
mod verify;

pub use api_store::SqliteApiStore;
pub use audit_reader::AuditReader;
pub use chain::{Anchor, Hash};
pub use credential_store::{SealKeys, SqliteCredentialStore};
pub use error::{BrokenChain, StoreError};
pub use health::{check_database, check_disk};
pub use listing_store::SqliteListingStore;
pub use memory::{MemoryOptions, SqliteMemoryStore};
pub use options::{Durability, Options};
pub use pin_store::SqlitePinStore;
pub use prune::{Retention, prune, prune_when_due};
pub use record::{Record, RecordKind};
pub use run_store::SqliteRunStore;
pub use store::Store;
pub use verify::{Verified, verify};
