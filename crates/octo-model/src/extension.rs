//! Extensions that clients and servers negotiate in `capabilities.extensions`.

/// Long-running calls.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";
/// MCP Apps: interactive user interfaces of tools.
pub const APPS: &str = "io.modelcontextprotocol/ui";
/// Agent Skills.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// Media type of the HTML of an app.
pub const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";
