//! MCP on the wire, as both ends see it: envelopes, revisions, codes, headers, event streams.
//! Only the envelope is typed; what it carries stays as it came.

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
