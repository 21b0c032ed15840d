//! The ports on SQLite: one directory, no server.

#![expect(
    clippy::disallowed_methods,
    reason = "a door: the hub's own files are opened, dated and removed here"
)]

mod api_store;
pub(crate) mod audit;
mod credential_store;
mod database;
mod database_changes;
mod error;
mod lazy_database;
mod lazy_store;
mod lease_store;
mod listing_store;
mod memory;
mod options;
mod pin_store;
mod private_files;
mod result_files;
mod run_store;
mod seal;
mod store;
mod stores;
#[cfg(test)]
mod tests;
mod transfer;

pub use crate::audit::audit_reader::AuditConnection;
pub use error::SqliteError;
pub use options::{Durability, Options, SealKeys};
pub use store::Store;
pub use stores::sqlite;
pub use transfer::{SlotFilter, export_state, import_state};
