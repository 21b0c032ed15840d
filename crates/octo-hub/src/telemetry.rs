//! What operators see of a call: a span, numbers, a line in the log when it fails.

use crate::call::Request;
use crate::item::Item;
use crate::ports::Outcome;
use metrics::{Counter, Histogram};
use octo_model::{CallId, Kind, Members, ToolError};
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// Links spans with the traces of others and fills in what only an exporter needs.
pub trait Tracer: Send + Sync {
    /// Joins the trace that the request came with.
    fn begin(&self, span: &Span, request: &Request);
    /// The `traceparent` to pass on.
    fn parent_for_target(&self, span: &Span) -> Option<String>;
    fn end(&self, span: &Span, outcome: &Result<Members, ToolError>);
}

/// One span per call, with the names of the GenAI, MCP and OpenInference conventions.
pub fn span(tracer: Option<&Arc<dyn Tracer>>, id: CallId, request: &Request) -> Span {
    let Some(tracer) = tracer else { return Span::none() };
    let method = request.op.method.as_str();
    let span = tracing::info_span!(
        target: "octoprox::call",
        "call",
        otel.name = format!("{method} {}", request.op.name),
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        mcp.method.name = method,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %request.op.name,
        gen_ai.tool.call.id = %id,
        openinference.span.kind = "TOOL",
        tool.name = %request.op.name,
        tool.parameters = tracing::field::Empty,
        output.value = tracing::field::Empty,
        error.type = tracing::field::Empty,
        enduser.id = %request.caller.subject,
        octoprox.face = request.face.as_str(),
    );
    tracer.begin(&span, request);
    span
}

/// An item's counters, made once.
pub struct Meters {
    ok: Counter,
    failed: Counter,
    seconds: Histogram,
}

impl Meters {
    pub fn of(item: &Item) -> Self {
        let labels = [("server", item.source.name().to_owned()), ("tool", item.key.clone())];
        let count = |outcome: &'static str| {
            metrics::counter!("octoprox_calls_total",
                "server" => item.source.name().to_owned(), "tool" => item.key.clone(), "outcome" => outcome)
        };
        Self {
            ok: count("ok"),
            failed: count("failed"),
            seconds: metrics::histogram!("octoprox_call_seconds", &labels),
        }
    }
}

/// Counts the call and logs what went wrong inside.
pub fn ended(
    id: CallId,
    item: Option<&Arc<Item>>,
    outcome: Outcome,
    took: Duration,
    error: Option<&ToolError>,
) {
    match item {
        Some(item) => {
            let meters = item.meters();
            meters.seconds.record(took.as_secs_f64());
            match outcome {
                Outcome::Ok | Outcome::InputRequired => meters.ok.increment(1),
                _ => meters.failed.increment(1),
            }
        }
        None => metrics::counter!("octoprox_calls_refused_total", "kind" => outcome.as_str()).increment(1),
    }
    let Some(error) = error else { return };
    let detail = error.detail.as_deref().unwrap_or_default();
    if error.kind == Kind::Internal {
        tracing::error!(call = %id, detail, "a call failed inside the hub");
    } else if error.kind == Kind::Unavailable && !detail.is_empty() {
        tracing::warn!(call = %id, said = %error.message, detail, "a call found something out of order");
    } else {
        tracing::debug!(call = %id, kind = error.kind.as_str(), said = %error.message, detail, "a call failed");
    }
}
