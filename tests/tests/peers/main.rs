//! Other people's clients and servers, through the hub.

mod agent_peers;
mod client_peers;
mod everything_server;
#[path = "../../peers/peer_scripts.rs"]
mod peer_scripts;
mod ten_servers;
