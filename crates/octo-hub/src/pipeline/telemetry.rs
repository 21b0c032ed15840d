//! Telemetry of calls: spans and log lines.

use crate::catalogue::item::{Entry, Item};
use crate::pipeline::call_metrics::count_refused;
use crate::pipeline::call_request::Request;
use octo_model::{CallId, Json, JsonObject, Kind, ToolError};
use octo_ports::Outcome;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Span;

/// Connects spans to distributed traces and adds attributes for exporters.
pub trait Tracer: Send + Sync {
    /// Joins the trace of the request.
    fn begin(&self, span: &Span, request: &Request);
    /// The `traceparent` to pass on.
    fn parent_for_target(&self, span: &Span) -> Option<String>;
    fn end(&self, span: &Span, item: Option<&Item>, took: Duration, outcome: &Result<JsonObject, ToolError>);
}

/// Renders arguments without secrets, if enabled in the settings.
pub trait Excerpts: Send + Sync {
    /// For the log.
    fn for_log(&self, arguments: &Json) -> Option<String>;
    /// For the audit log.
    fn for_audit(&self, arguments: &Json) -> Option<String>;
}

/// One span per call, with the names of the GenAI, MCP and OpenInference conventions.
pub fn span(tracer: Option<&Arc<dyn Tracer>>, id: CallId, request: &Request) -> Span {
    let Some(tracer) = tracer else { return Span::none() };
    let method = request.op.method.as_str();
    let name = shown_name(request);
    let span = tracing::info_span!(
        target: "octoprox::call",
        "call",
        otel.name = format!("{method} {name}").trim_end(),
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        mcp.method.name = method,
        gen_ai.operation.name = "execute_tool",
        mcp.resource.uri = tracing::field::Empty,
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = %id,
        openinference.span.kind = "TOOL",
        tool.name = name,
        tool.server_name = tracing::field::Empty,
        tool.tags = tracing::field::Empty,
        tool.success = tracing::field::Empty,
        tool.duration_ms = tracing::field::Empty,
        tool.error = tracing::field::Empty,
        tool.parameters = tracing::field::Empty,
        output.value = tracing::field::Empty,
        error.type = tracing::field::Empty,
        enduser.id = %request.caller.principal.subject,
        octoprox.frontend = request.frontend.as_str(),
    );
    tracer.begin(&span, request);
    span
}

/// Name of a tool or prompt. A URI may contain what was asked, or a secret, so it is content.
fn shown_name(request: &Request) -> &str {
    if request.op.method.names_resource() { "" } else { truncated_name(&request.op.name) }
}

/// Maximum bytes of a name in a log line or span.
const MAX_NAME_BYTES: usize = 200;

fn truncated_name(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default()
}

/// Counts and logs one call when it ends, also if its future is dropped.
pub struct CallLog<'a> {
    id: CallId,
    request: &'a Request,
    begun: Instant,
    arguments: Option<String>,
    /// The name of the tool that a call of `tools_call` names.
    pub called: Option<String>,
    pub entry: Option<Entry>,
    /// The item that the caller learns of.
    pub shown: Option<Entry>,
    outcome: Outcome,
    bytes: u64,
}

impl<'a> CallLog<'a> {
    pub fn begin(
        id: CallId,
        request: &'a Request,
        begun: Instant,
        excerpts: Option<&Arc<dyn Excerpts>>,
    ) -> Self {
        let arguments = request.op.params.get("arguments");
        let arguments = excerpts.zip(arguments).and_then(|(excerpts, arguments)| excerpts.for_log(arguments));
        Self {
            id,
            request,
            begun,
            arguments,
            called: None,
            entry: None,
            shown: None,
            outcome: Outcome::Dropped,
            bytes: 0,
        }
    }

    pub fn item(&self) -> Option<&Item> {
        self.entry.as_ref().map(|entry| &*entry.item)
    }

    pub fn finish(&mut self, outcome: Outcome, bytes: u64, error: Option<&ToolError>) {
        (self.outcome, self.bytes) = (outcome, bytes);
        let Some(error) = error else { return };
        let (id, detail) = (self.id, error.detail.as_deref().unwrap_or_default());
        // The message repeats the URI.
        let said = if self.request.op.method.names_resource() { "" } else { &*error.message };
        if error.kind == Kind::Internal {
            tracing::error!(target: "hub", call = %id, detail, "call failed: internal error");
        } else if error.kind == Kind::Unavailable && !detail.is_empty() {
            tracing::warn!(target: "hub", call = %id, said, detail, "call failed: dependency unavailable");
        } else {
            tracing::debug!(target: "hub", call = %id, kind = error.kind.as_str(), said, detail, "call failed");
        }
    }
}

impl Drop for CallLog<'_> {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        match self.item() {
            Some(item) => item.metrics().record(self.outcome, took),
            None => count_refused(self.outcome),
        }
        if !tracing::enabled!(target: "calls", tracing::Level::INFO) {
            return;
        }
        let Request { op, caller, frontend, profile, .. } = self.request;
        let name = self.called.as_deref().map_or_else(|| shown_name(self.request), truncated_name);
        let server = self.item().map(|item| item.source.name());
        let request_bytes = op.params.get("arguments").map_or(0, |arguments| arguments.bytes().len());
        let ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(
            target: "calls",
            call = %self.id,
            method = op.method.as_str(),
            tool = name,
            server,
            caller = caller.principal.subject.as_str(),
            tenant = caller.principal.tenant.as_str(),
            frontend = frontend.as_str(),
            profile = Some(profile.as_str()).filter(|profile| !profile.is_empty()),
            outcome = self.outcome.as_str(),
            ms,
            request_bytes,
            response_bytes = self.bytes,
            arguments = self.arguments.as_deref(),
            "call"
        );
    }
}
