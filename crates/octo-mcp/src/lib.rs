//! The MCP face: stdio and streamable HTTP, both eras. It converts; it never decides.

mod answer;
mod background;
mod client;
mod discover;
mod eventlog;
mod headers;
mod http;
mod legacy;
mod listen;
mod mcp;
mod modern;
mod notice;
mod parking;
mod peer;
mod reply;
mod seal;
mod session;
mod sessions;
mod stdio;
mod stream;
mod task;
mod tasks;
mod turn;

pub use mcp::{Mcp, McpSettings};
pub use tasks::TaskSettings;
