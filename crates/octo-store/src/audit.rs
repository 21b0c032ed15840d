//! Audit log: hash-chained records in SQLite, written in batches, read, verified and pruned.

pub(crate) mod audit_chains;
pub(crate) mod audit_checkpoint;
pub(crate) mod audit_prune;
pub(crate) mod audit_reader;
pub(crate) mod audit_verify;
pub(crate) mod audit_writer;
