//! Fronts and workers of a fleet: the real binary, NATS and PostgreSQL.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

mod bus_access;
mod claim_takeover;
mod database_relay;
mod dependency_health;
mod lease_takeover;
mod node_reports;
mod other_files;
mod outbound_worker;
mod revocation;
mod shared_limits;
mod shared_sessions;
#[path = "../tasks/task_upstream.rs"]
mod task_upstream;
mod two_tenants;
mod worker_tools;
mod workflow_takeover;

use octo_tests::test_fleet;
