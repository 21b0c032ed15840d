//! MCP on the wire, as both ends see it: envelopes, revisions, codes, headers, event streams.
//! Only the envelope is typed; what it carries stays as it came.

pub mod code;
pub mod header;
mod id;
mod level;
mod message;
pub mod meta;
mod revision;
pub mod sse;

pub use id::Id;
pub use level::Level;
pub use message::{Incoming, Message, Strictness};
pub use revision::{Era, Revision};
