//! MCP Apps: user interfaces that servers offer for their tools, in `ui://` resources.

pub mod app_content;
pub mod app_tool;
pub mod open_apps;
