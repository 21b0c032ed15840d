//! Agent tasks, solved with only the replies of the tools: a real hub over stdio, deterministic fixtures. Each test
//! checks the outcome and prints its cost. Tokens are the bytes of arguments and of the replies' text blocks, divided
//! by four.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "agent_tasks/code_fix.rs"]
mod code_fix;
#[path = "agent_tasks/cost_agent.rs"]
mod cost_agent;
#[path = "agent_tasks/large_results.rs"]
mod large_results;
#[path = "agent_tasks/loopback_site.rs"]
mod loopback_site;
#[path = "agent_tasks/programs.rs"]
mod programs;
#[path = "agent_tasks/rename_identifier.rs"]
mod rename_identifier;
#[path = "agent_tasks/surface_costs.rs"]
mod surface_costs;
#[path = "agent_tasks/table_lookup.rs"]
mod table_lookup;
#[path = "agent_tasks/widgets.rs"]
mod widgets;
#[path = "agent_tasks/workflow.rs"]
mod workflow;
