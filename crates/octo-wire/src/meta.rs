//! Reserved keys of `_meta`.

pub const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub const PROGRESS_TOKEN: &str = "progressToken";

/// Replaced on each hop, never forwarded.
pub const HOP_BY_HOP_KEYS: [&str; 5] = [REVISION, CAPABILITIES, CLIENT, LOG_LEVEL, PROGRESS_TOKEN];
