//! Tests that need the machine for themselves: load, races, kills, network namespaces.

mod crosstalk;
mod flow_kills;
mod idle_clients;
mod netns;
mod playwright;
mod resource_limits;
mod sandbox_races;
