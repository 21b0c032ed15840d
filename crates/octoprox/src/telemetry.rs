//! Logs, traces and metrics, all free of secrets.

mod argument_excerpts;
mod call_tracer;
mod json_line;
mod logging;
mod otlp_export;
mod process_metrics;
mod prometheus_metrics;
mod prometheus_text;
mod redacting_writer;
mod redactor;
mod secret_encodings;
mod settings_secrets;

pub use argument_excerpts::ArgumentExcerpts;
pub use call_tracer::CallTracer;
pub use logging::{LogMode, Logs, init_logging};
pub use otlp_export::SpanExport;
pub use prometheus_metrics::{MetricsSources, PrometheusMetrics};
pub use redactor::Redactor;
pub use settings_secrets::settings_secrets;
