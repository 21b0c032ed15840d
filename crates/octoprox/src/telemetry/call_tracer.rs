//! Span of each call, linked to the traces of clients and upstreams.

use super::argument_excerpts::{MAX_EXCERPT_BYTES, argument_excerpt};
use super::redactor::Redactor;
use octo_hub::{Item, Request, Tracer};
use octo_model::{Json, JsonObject, ToolError};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = "traceparent";

/// Sets the span attributes that only an exporter needs.
pub struct CallTracer {
    redactor: Arc<Redactor>,
    /// Whether spans carry arguments and results.
    contents: bool,
    context: TraceContextPropagator,
}

impl CallTracer {
    pub fn new(redactor: Arc<Redactor>, contents: bool) -> Self {
        Self { redactor, contents, context: TraceContextPropagator::new() }
    }

    fn record_excerpt(&self, span: &Span, field: &'static str, text: &str) {
        span.record(field, self.redactor.excerpt(text, MAX_EXCERPT_BYTES).as_str());
    }
}

impl Tracer for CallTracer {
    fn begin(&self, span: &Span, request: &Request) {
        if let Some(parent) = &request.trace {
            let carrier = HashMap::from([(TRACEPARENT.to_owned(), parent.clone())]);
            let context = self.context.extract(&carrier);
            if context.span().span_context().is_valid() {
                let _ = span.set_parent(context);
            }
        }
        if self.contents && request.op.method.names_resource() {
            self.record_excerpt(span, "mcp.resource.uri", &request.op.name);
        }
        if let Some(arguments) = request.op.params.get("arguments").filter(|_| self.contents) {
            span.record("tool.parameters", argument_excerpt(&self.redactor, arguments).as_str());
        }
    }

    fn parent_for_target(&self, span: &Span) -> Option<String> {
        let mut carrier = HashMap::new();
        self.context.inject_context(&span.context(), &mut carrier);
        carrier.remove(TRACEPARENT)
    }

    fn end(&self, span: &Span, item: Option<&Item>, took: Duration, outcome: &Result<JsonObject, ToolError>) {
        let error = match outcome {
            Ok(result) if result.is_true("isError") => Some("tool_error"),
            Ok(_) => None,
            Err(error) => Some(error.kind.as_str()),
        };
        if let Some(item) = item {
            span.record("tool.server_name", item.source.name());
            span.record("tool.tags", item.tags().as_str());
        }
        span.record("tool.success", error.is_none());
        span.record("tool.duration_ms", took.as_secs_f64() * 1e3);
        span.record("otel.status_code", if error.is_some() { "ERROR" } else { "OK" });
        if let Some(kind) = error {
            span.record("error.type", kind);
            span.record("tool.error", kind);
        }
        if self.contents {
            let text = match outcome {
                Ok(result) => result_text(result),
                Err(error) => error.text(),
            };
            self.record_excerpt(span, "output.value", &text);
            if error.is_some() {
                self.record_excerpt(span, "tool.error", &text);
            }
        }
    }
}

/// Returns the text of a result: its structured content, otherwise its content.
fn result_text(result: &JsonObject) -> String {
    if let Some(structure) = result.get("structuredContent") {
        return structure.as_str().to_owned();
    }
    let blocks = result.list("content");
    let texts = blocks.iter().filter_map(|block| block.members().ok()?.text("text"));
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        result.get("content").map_or_else(String::new, Json::to_string)
    } else {
        texts.join("\n")
    }
}

#[cfg(test)]
mod tests;
