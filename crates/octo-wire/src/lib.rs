//! MCP wire format for both ends: envelopes, revisions, codes, headers, event streams. Only the envelope is typed; the
//! payload passes through unchanged.

pub mod code;
pub mod header;
mod jsonrpc;
mod log_level;
pub mod meta;
mod request_id;
mod revision;
pub mod sse;

pub use jsonrpc::{Incoming, Message, Strictness};
pub use log_level::Level;
pub use request_id::Id;
pub use revision::{Era, Revision};
