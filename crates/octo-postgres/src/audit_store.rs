//! The audit log: one hash chain for each hub, in partitions by month.

mod audit_log;
pub(crate) mod audit_partitions;
mod audit_prune;
pub(crate) mod audit_reader;
pub(crate) mod audit_verify;
mod audit_writer;
mod chain_writer;
pub(crate) mod group_rows;
#[cfg(test)]
mod tests;

pub(crate) use audit_log::{PostgresAuditLog, now_micros};
pub(crate) use audit_reader::PostgresAuditReader;
