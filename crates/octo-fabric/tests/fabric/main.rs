//! Sources across nodes, on both implementations of the bus.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the servers that it needs"
)]

mod bus_access;
mod claim_rules;
mod fleet;
mod hostile_frames;
mod nats_access;
mod nats_faults;
mod nats_server;
mod source_rules;
mod speed;
mod test_peer;
mod test_source;
