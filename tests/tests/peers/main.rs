//! Other people's clients and servers, through the hub.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

mod agent_peers;
mod apps;
mod client_peers;
mod everything_server;
mod onboarding;
#[path = "../../peers/peer_scripts.rs"]
mod peer_scripts;
mod skills;
mod sse_server;
mod ten_servers;
