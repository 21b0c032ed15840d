//! Commands of the database that hubs share.

pub(crate) mod migrate_command;
pub(crate) mod store_command;
