//! A client of a front, with one connection that it keeps.

use crate::bench::raw_http_client::RawHttpClient;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub struct FrontClient {
    connection: RawHttpClient,
    token: String,
}

impl FrontClient {
    /// A reply may take as long as `reply_timeout`.
    pub fn connect(front: SocketAddr, token: &str, reply_timeout: Duration) -> Result<Self> {
        let connection = RawHttpClient::connect_to(front, CONNECT_TIMEOUT, reply_timeout)?;
        Ok(Self { connection, token: token.to_owned() })
    }

    /// Whether another request may be sent. A front that stops closes its connections first.
    pub fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Calls a tool over REST.
    pub fn call(&mut self, tool: &str, arguments: &Value, timeout: Option<Duration>) -> Result<Value> {
        let timeout = timeout.map(|time| format!("X-Octoprox-Timeout-Ms: {}\r\n", time.as_millis()));
        let headers = format!("Authorization: Bearer {}\r\n{}", self.token, timeout.unwrap_or_default());
        let path = format!("/tools/{tool}");
        let (body, _) = self.connection.send_with("POST", &path, &headers, &arguments.to_string())?;
        serde_json::from_slice(&body).context("the reply is not JSON")
    }

    /// Calls a tool over MCP.
    pub fn call_mcp(&mut self, tool: &str) -> Result<Value> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let headers = format!(
            "Authorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n",
            self.token
        );
        let (body, _) = self.connection.send_with("POST", "/mcp", &headers, &body)?;
        serde_json::from_slice(&body).context("the reply is not JSON")
    }
}
