//! JSON log lines: one object per line, with time, level, target and the fields of the event.
//!
//! There is one line per call, so its cost matters. `tracing_subscriber`'s own formatter writes through three adapters
//! that each validate UTF-8 again, and takes twice as long.

use octo_model::json_len;
use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Initial capacity of a line.
const USUAL_LEN: usize = 512;

pub struct JsonLine;

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static> FormatEvent<S, N>
    for JsonLine
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut line = String::with_capacity(USUAL_LEN);
        line.push_str(r#"{"timestamp":""#);
        SystemTime.format_time(&mut Writer::new(&mut line))?;
        let about = event.metadata();
        write!(line, r#"","level":"{}""#, about.level())?;
        let mut fields = Fields { line: &mut line, log_target: None };
        event.record(&mut fields);
        let log_target = fields.log_target;
        line.push_str(r#","target":"#);
        push_text(&mut line, log_target.as_deref().unwrap_or(about.target()));
        line.push_str("}\n");
        writer.write_str(&line)
    }
}

/// Writes the fields of an event. Fields that begin with `log.` describe a record of the `log` crate: only its target
/// is used.
struct Fields<'a> {
    line: &'a mut String,
    log_target: Option<String>,
}

impl Fields<'_> {
    fn name(&mut self, field: &Field) {
        // Field names are identifiers with dots and need no escaping.
        self.line.extend([",\"", field.name(), "\":"]);
    }

    fn text(&mut self, field: &Field, text: &str) {
        match field.name() {
            "log.target" => self.log_target = Some(text.to_owned()),
            name if name.starts_with("log.") => {}
            _ => {
                self.name(field);
                push_text(self.line, text);
            }
        }
    }

    fn plain(&mut self, field: &Field, value: impl std::fmt::Display) {
        if !field.name().starts_with("log.") {
            self.name(field);
            // Writing to a String cannot fail.
            let _ = write!(self.line, "{value}");
        }
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() { self.plain(field, value) } else { self.plain(field, "null") }
    }
}

/// Writes a JSON string.
fn push_text(line: &mut String, text: &str) {
    if json_len(text) == text.len() {
        line.extend(["\"", text, "\""]);
    } else {
        line.push_str(&serde_json::Value::from(text).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_object_with_the_fields_of_its_event() {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer =
            tracing_subscriber::fmt::layer().event_format(JsonLine).with_writer(move || writer.clone());
        let none: Option<&str> = None;
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(
                target: "calls",
                tool = "a\"b\n\u{1}ü",
                shown = %"x\\y",
                ms = 0.25,
                odd = f64::NAN,
                bytes = 7_u64,
                below = -1_i64,
                large = u128::MAX,
                yes = true,
                none,
                "call"
            );
            tracing::warn!(error = ?io::Error::other("bad"), "failed");
            tracing::warn!(
                log.target = "rustls",
                log.file = "/src/x.rs",
                log.line = 3_u64,
                "from the log crate"
            );
        });
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &mut lines {
            let time = line.as_object_mut().unwrap().remove("timestamp").unwrap();
            assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
        }
        let large = u128::MAX.to_string();
        assert_eq!(
            lines,
            [
                json!({"level": "INFO", "message": "call", "tool": "a\"b\n\u{1}ü", "shown": "x\\y", "ms": 0.25, "odd": null,
                    "bytes": 7, "below": -1, "large": large, "yes": true, "target": "calls"}),
                json!({"level": "WARN", "message": "failed", "error": "Custom { kind: Other, error: \"bad\" }",
                    "target": "octoprox::telemetry::json_line::tests"}),
                json!({"level": "WARN", "message": "from the log crate", "target": "rustls"}),
            ]
        );
    }
}
