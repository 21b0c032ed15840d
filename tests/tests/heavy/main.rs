//! Tests that need the machine for themselves: load, races, kills, network namespaces.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail where they cannot continue, and start the programs that they test"
)]

mod crosstalk;
mod flow_kills;
mod hub_storm;
mod idle_clients;
mod large_outputs;
mod list_epochs;
mod netns;
mod playwright;
mod resource_limits;
mod sandbox_races;
