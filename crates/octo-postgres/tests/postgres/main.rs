//! The stores on real servers.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and looks at the server behind the tools"
)]

mod faults;
mod lease_races;
mod migrations;
mod overload;
mod pg_bouncer;
mod port_rules;
#[path = "../../../tools-sql/tests/postgres_fixture/postgres_cluster.rs"]
mod postgres_cluster;
mod postgres_schema;
mod state_copy;
mod stored_audit;
mod stored_memory;
mod stored_rate_buckets;
mod stored_rows;
mod tenants;
