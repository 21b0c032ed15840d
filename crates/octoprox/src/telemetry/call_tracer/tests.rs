use super::*;
use octo_hub::Request;
use octo_model::{Caller, Frontend, Kind, Operation};
use opentelemetry::trace::{Status, TracerProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use std::sync::Mutex;
use tracing_subscriber::prelude::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Stores the spans that would be sent.
#[derive(Debug, Clone, Default)]
struct CapturedSpans(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for CapturedSpans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

fn request(arguments: &str, trace: Option<&str>) -> Request {
    Request {
        trace: trace.map(str::to_owned),
        ..Request::new(
            Operation::tool("time_now", Json::parse(arguments.to_owned()).unwrap()),
            Arc::new(Caller::local()),
            Frontend::Cli,
        )
    }
}

/// Traces one call as the hub does. Returns the context passed to its target.
fn trace_call(request: &Request, outcome: &Result<JsonObject, ToolError>) -> (SpanData, Option<String>) {
    trace_call_with(true, request, outcome)
}

fn trace_call_with(
    contents: bool,
    request: &Request,
    outcome: &Result<JsonObject, ToolError>,
) -> (SpanData, Option<String>) {
    let kept = CapturedSpans::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(kept.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let passed = tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let traces = CallTracer::new(Arc::new(Redactor::new(["canary-5150".to_owned()])), contents);
        let span = tracing::info_span!(
            target: "octoprox::call", "call", otel.status_code = tracing::field::Empty,
            tool.success = tracing::field::Empty, tool.duration_ms = tracing::field::Empty, tool.error = tracing::field::Empty,
            tool.parameters = tracing::field::Empty, output.value = tracing::field::Empty, error.type = tracing::field::Empty,
        );
        traces.begin(&span, request);
        let passed = traces.parent_for_target(&span);
        traces.end(&span, None, Duration::from_millis(7), outcome);
        passed
    });
    let span = kept.0.lock().unwrap().remove(0);
    (span, passed)
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

#[test]
fn joins_the_trace_and_passes_itself_on() {
    let result = JsonObject::parse(r#"{"structuredContent":{"iso":"x"},"content":[]}"#).unwrap();
    let (span, passed) =
        trace_call(&request(r#"{"zone":"UTC","key":"canary-5150"}"#, Some(PARENT)), &Ok(result));
    assert_eq!(span.span_context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
    let own = span.span_context.span_id().to_string();
    assert_eq!(passed.unwrap(), format!("00-0af7651916cd43dd8448eb211c80319c-{own}-01"));
    assert_eq!(attribute(&span, "tool.parameters"), r#"{"zone":"UTC","key":"***"}"#);
    assert_eq!(attribute(&span, "output.value"), r#"{"iso":"x"}"#);
    assert_eq!(attribute(&span, "error.type"), "");
}

#[test]
fn failures_are_marked() {
    let failed = JsonObject::parse(r#"{"isError":true,"content":[{"type":"text","text":"no"}]}"#).unwrap();
    let late = ToolError::new(Kind::Timeout, "Too late.");
    for (outcome, kind, said) in [(Ok(failed), "tool_error", "no"), (Err(late), "timeout", "Too late.")] {
        let (span, _) = trace_call(&request("{}", Some("garbage")), &outcome);
        assert_eq!(
            (attribute(&span, "error.type").as_str(), attribute(&span, "output.value").as_str()),
            (kind, said)
        );
        assert!(matches!(span.status, Status::Error { .. }));
    }
}

#[test]
fn without_contents_a_span_tells_only_how_it_went() {
    let result = JsonObject::parse(r#"{"structuredContent":{"iso":"x"},"content":[]}"#).unwrap();
    let refused = ToolError::denied("The file /home/ann/secret.txt is not for you.");
    for (outcome, success, error) in [(Ok(result), "true", ""), (Err(refused), "false", "denied")] {
        let (span, _) = trace_call_with(false, &request(r#"{"zone":"UTC"}"#, None), &outcome);
        assert_eq!(attribute(&span, "tool.success"), success);
        assert_eq!(attribute(&span, "tool.error"), error);
        assert_eq!(attribute(&span, "tool.duration_ms"), "7");
        assert_eq!(span.status == Status::Ok, success == "true");
        assert!(!format!("{:?}", span.attributes).contains("UTC"));
        assert!(!format!("{:?} {:?}", span.attributes, span.status).contains("secret.txt"));
    }
}

#[test]
fn long_arguments_are_cut() {
    let arguments = Json::of(&serde_json::json!({"text": "é".repeat(100_000)}));
    let (span, _) = trace_call(&request(arguments.as_str(), None), &Ok(JsonObject::new()));
    let shown = attribute(&span, "tool.parameters");
    assert!(shown.len() <= MAX_EXCERPT_BYTES && shown.len() > MAX_EXCERPT_BYTES - 4, "{}", shown.len());
}
