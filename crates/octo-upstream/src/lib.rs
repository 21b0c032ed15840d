//! The servers behind the hub, spoken to as an MCP client of both eras: child processes and streamable HTTP.
//! Only the envelope of a message is typed; what it carries passes as it came.

mod backoff;
mod call;
mod calls;
mod child;
mod connection;
mod fail;
mod handshake;
mod heard;
mod http;
mod inbox;
mod kind;
mod listen;
mod listing;
mod lost;
mod meta;
mod mirror;
mod question;
mod read;
mod spec;
mod state;
mod supervisor;
mod task;
mod upstream;
mod watched;
mod wire;

pub use spec::{Link, Spec};
pub use upstream::Upstream;
