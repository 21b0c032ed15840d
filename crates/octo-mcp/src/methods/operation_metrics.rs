//! Histograms of OpenTelemetry's conventions for MCP servers: operations and sessions of clients.

use crate::client_context::ClientContext;
use crate::methods::route_method;
use octo_model::{Frontend, JsonObject, RpcError};
use octo_wire::code;
use std::time::Instant;

/// Methods besides those that are routed. Others share a label, because clients could make up any number of them.
const OTHER_METHODS: [&str; 9] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "server/discover",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// A URL has to be opened first (2025-11-25 only).
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Error codes of the protocol. Others share a label, because servers could make up any number of them.
const PROTOCOL_CODES: [i64; 10] = [
    code::PARSE,
    code::INVALID_REQUEST,
    code::METHOD_NOT_FOUND,
    code::INVALID_PARAMS,
    code::INTERNAL,
    code::LEGACY_NOT_FOUND,
    code::HEADER_MISMATCH,
    code::MISSING_CAPABILITY,
    code::UNSUPPORTED_REVISION,
    URL_ELICITATION_REQUIRED,
];

/// Measures an operation of a client. It is recorded as cancelled if it is dropped.
pub struct OperationTimer {
    begun: Instant,
    method: String,
    transport: &'static str,
    revision: &'static str,
    is_finished: bool,
}

impl OperationTimer {
    pub fn begin(client: &ClientContext, method: &str) -> Self {
        let is_known = route_method(method).is_some() || OTHER_METHODS.contains(&method);
        Self {
            begun: Instant::now(),
            method: if is_known { method.to_owned() } else { "other".to_owned() },
            transport: transport(client),
            revision: client.revision.as_str(),
            is_finished: false,
        }
    }

    pub fn finish(mut self, outcome: &Result<JsonObject, RpcError>) {
        self.is_finished = true;
        let error = match outcome {
            Ok(result) if result.is_true("isError") => "tool_error".to_owned(),
            Ok(_) => String::new(),
            Err(error) => error_label(error.code),
        };
        self.record(error);
    }

    fn record(&self, error: String) {
        let labels = [
            ("mcp_method_name", self.method.clone()),
            ("error_type", error),
            ("network_transport", self.transport.to_owned()),
            ("mcp_protocol_version", self.revision.to_owned()),
        ];
        metrics::histogram!("mcp_server_operation_duration_seconds", &labels)
            .record(self.begun.elapsed().as_secs_f64());
    }
}

impl Drop for OperationTimer {
    fn drop(&mut self) {
        if !self.is_finished {
            self.record("cancelled".to_owned());
        }
    }
}

fn error_label(code: i64) -> String {
    if PROTOCOL_CODES.contains(&code) { code.to_string() } else { "other".to_owned() }
}

/// Records the duration of a session that has ended.
pub fn record_session(client: &ClientContext, begun: Instant) {
    let labels = [
        ("network_transport", transport(client).to_owned()),
        ("mcp_protocol_version", client.revision.as_str().to_owned()),
    ];
    metrics::histogram!("mcp_server_session_duration_seconds", &labels).record(begun.elapsed().as_secs_f64());
}

fn transport(client: &ClientContext) -> &'static str {
    if client.frontend == Frontend::Stdio { "pipe" } else { "tcp" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_a_server_makes_up_share_a_label() {
        for (code, expected) in [
            (-32700, "-32700"),
            (-32603, "-32603"),
            (-32002, "-32002"),
            (-32022, "-32022"),
            (-32042, "-32042"),
            (-32001, "other"),
            (0, "other"),
            (7, "other"),
            (i64::MIN, "other"),
        ] {
            assert_eq!(error_label(code), expected, "{code}");
        }
    }
}
