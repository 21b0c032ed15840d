//! The hub's span per call, joined with the traces of others.

use super::redact::Redactor;
use octo_hub::{Request, Tracer};
use octo_model::{Json, Members, ToolError};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// How much of arguments and results a span carries.
const EXCERPT: usize = 4 << 10;
const PARENT: &str = "traceparent";
/// The argument with which a login is finished.
const ANSWER: &str = "answer";

/// Fills in what only an exporter needs.
pub struct Traces {
    redactor: Arc<Redactor>,
    context: TraceContextPropagator,
}

impl Traces {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, context: TraceContextPropagator::new() }
    }

    fn record(&self, span: &Span, field: &'static str, text: &str) {
        span.record(field, self.redactor.excerpt(text, EXCERPT).as_str());
    }
}

/// What a person answers to a login is a secret that nobody can know beforehand.
fn without_answers(arguments: &Json) -> Cow<'_, Json> {
    match arguments.members() {
        Ok(mut members) if members.get(ANSWER).is_some() => {
            members.set(ANSWER, "***");
            Cow::Owned(members.to_json())
        }
        _ => Cow::Borrowed(arguments),
    }
}

impl Tracer for Traces {
    fn begin(&self, span: &Span, request: &Request) {
        if let Some(parent) = &request.trace {
            let carrier = HashMap::from([(PARENT.to_owned(), parent.clone())]);
            let context = self.context.extract(&carrier);
            if context.span().span_context().is_valid() {
                let _ = span.set_parent(context);
            }
        }
        if let Some(arguments) = request.op.params.get("arguments") {
            self.record(span, "tool.parameters", without_answers(arguments).as_str());
        }
    }

    fn parent_for_target(&self, span: &Span) -> Option<String> {
        let mut carrier = HashMap::new();
        self.context.inject_context(&span.context(), &mut carrier);
        carrier.remove(PARENT)
    }

    fn end(&self, span: &Span, outcome: &Result<Members, ToolError>) {
        match outcome {
            Ok(result) => {
                self.record(span, "output.value", &said(result));
                if result.is_true("isError") {
                    span.record("error.type", "tool_error");
                    span.record("otel.status_code", "ERROR");
                }
            }
            Err(error) => {
                self.record(span, "output.value", &error.text());
                span.record("error.type", error.kind.as_str());
                span.record("otel.status_code", "ERROR");
            }
        }
    }
}

/// What a result says: its structure, or else its texts.
fn said(result: &Members) -> String {
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
