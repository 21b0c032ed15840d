//! The audit log: one hash chain for each hub, in partitions by month.

mod audit_log;
pub(crate) mod audit_partitions;
mod audit_prune;
mod audit_reader;
mod audit_verify;
mod audit_writer;
mod chain_merge;
mod chain_writer;
mod group_rows;
#[cfg(test)]
mod tests;

pub(crate) use audit_log::{PostgresAuditLog, now_micros};
pub(crate) use audit_reader::PostgresAuditReader;
