//! Telemetry of calls to upstream servers: a client span and a histogram, by OpenTelemetry's conventions for MCP.

use crate::catalogue::item::Item;
use octo_model::{ItemKind, JsonObject, Kind, Method, ToolError};
use std::time::Instant;
use tracing::Span;

/// Measures one call to an upstream server. It is recorded as cancelled if it is dropped.
pub struct UpstreamCallTimer<'a> {
    item: &'a Item,
    method: Method,
    begun: Instant,
    is_finished: bool,
    pub span: Span,
}

impl<'a> UpstreamCallTimer<'a> {
    /// Begins a call within the span of the hub's own call. `None` for native items.
    pub fn begin(item: &'a Item, method: Method) -> Option<Self> {
        if item.source.is_native() {
            return None;
        }
        let span = span(item, method);
        Some(Self { item, method, begun: Instant::now(), is_finished: false, span })
    }

    pub fn finish(mut self, outcome: &Result<JsonObject, ToolError>) {
        let error = match outcome {
            Ok(result) if result.is_true("isError") => "tool_error",
            Ok(_) => "",
            Err(error) => error.kind.as_str(),
        };
        self.is_finished = true;
        self.record(error);
    }

    /// Records the end of the call; without an error if `error` is empty.
    fn record(&self, error: &str) {
        self.span.record("otel.status_code", if error.is_empty() { "OK" } else { "ERROR" });
        if !error.is_empty() {
            self.span.record("error.type", error);
        }
        let mut labels = vec![
            ("mcp_method_name", self.method.as_str().to_owned()),
            ("server", self.item.source.name().to_owned()),
            ("error_type", error.to_owned()),
        ];
        // Callers could make up any number of names that are not listed.
        match self.item.kind {
            _ if self.item.members.is_empty() => {}
            ItemKind::Tool => labels.push(("gen_ai_tool_name", self.item.key.clone())),
            ItemKind::Prompt => labels.push(("gen_ai_prompt_name", self.item.key.clone())),
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {}
        }
        metrics::histogram!("mcp_client_operation_duration_seconds", &labels)
            .record(self.begun.elapsed().as_secs_f64());
    }
}

impl Drop for UpstreamCallTimer<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.record(Kind::Cancelled.as_str());
        }
    }
}

fn span(item: &Item, method: Method) -> Span {
    // Without a span around it, no spans are made.
    if Span::current().is_none() {
        return Span::none();
    }
    let named = matches!(item.kind, ItemKind::Tool | ItemKind::Prompt);
    let name = if named { format!("{} {}", method.as_str(), item.key) } else { method.as_str().to_owned() };
    let span = tracing::info_span!(
        target: "octoprox::call",
        "upstream call",
        otel.name = name,
        otel.kind = "client",
        otel.status_code = tracing::field::Empty,
        mcp.method.name = method.as_str(),
        gen_ai.tool.name = tracing::field::Empty,
        gen_ai.prompt.name = tracing::field::Empty,
        tool.server_name = item.source.name(),
        error.type = tracing::field::Empty,
    );
    match item.kind {
        ItemKind::Tool => drop(span.record("gen_ai.tool.name", item.key.as_str())),
        ItemKind::Prompt => drop(span.record("gen_ai.prompt.name", item.key.as_str())),
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {}
    }
    span
}
