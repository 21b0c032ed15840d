//! The ports on PostgreSQL: one database for many hubs.

mod api_store;
pub(crate) mod audit_store;
mod change_listener;
mod connector;
mod credential_records;
mod database;
mod error;
mod interval;
mod lease_store;
mod listing_store;
mod memory_store;
mod migrations;
mod options;
mod pin_store;
mod pool;
mod postgres_health;
mod postgres_stores;
mod rate_bucket_store;
mod result_store;
mod run_store;
mod session_store;
mod transaction;
mod transfer;
mod value;

#[cfg(test)]
extern crate self as octo_postgres;
#[cfg(test)]
#[path = "../tests/postgres/postgres_schema.rs"]
mod postgres_schema;

pub use error::PostgresError;
pub use migrations::{Migrated, migrate};
pub use options::{PostgresOptions, Schema};
pub use postgres_health::check;
pub use postgres_stores::postgres;
pub use transfer::{export_state, import_state};
