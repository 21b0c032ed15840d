//! Log writer that redacts secrets.

use super::redactor::Redactor;
use crate::terminal::text_table::sanitize_line;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::fmt::MakeWriter;

/// Destination of log lines.
#[derive(Clone)]
pub enum LogSink {
    Stdout,
    Stderr,
    File(Arc<Mutex<std::fs::File>>),
}

/// Writer that redacts each line.
#[derive(Clone)]
pub struct RedactingWriter {
    pub target: LogSink,
    pub redactor: Arc<Redactor>,
    /// Whether the output is a terminal: line breaks and control characters are then escaped or replaced.
    pub is_terminal: bool,
}

impl RedactingWriter {
    pub fn for_terminal(self) -> Self {
        Self { is_terminal: true, ..self }
    }
}

impl<'a> MakeWriter<'a> for RedactingWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

/// Each call is one complete line, as the formatter writes it.
impl Write for &RedactingWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
        let mut shown = self.redactor.redact(&text);
        if self.is_terminal {
            shown = (sanitize_line(shown.trim_end_matches('\n')) + "\n").into();
        }
        match &self.target {
            LogSink::Stdout => io::stdout().lock().write_all(shown.as_bytes())?,
            LogSink::Stderr => io::stderr().lock().write_all(shown.as_bytes())?,
            LogSink::File(file) => {
                file.lock().unwrap_or_else(PoisonError::into_inner).write_all(shown.as_bytes())?;
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::prelude::*;

    #[test]
    fn no_canary_reaches_a_log_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = Arc::new(Mutex::new(std::fs::File::create(&path).unwrap()));
        let redactor = Arc::new(Redactor::new(["canary-5150".to_owned()]));
        let lines = RedactingWriter { target: LogSink::File(file), redactor, is_terminal: false };
        let layer = tracing_subscriber::fmt::layer().json().with_writer(lines);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(detail = "sent canary-5150", "with canary-5150 in it");
            tracing::warn!(error = ?std::io::Error::other("Y2FuYXJ5LTUxNTA= and canary%2D5150"), "failed");
            tracing::info!("Authorization: Bearer unknown-to-us");
        });
        let log = std::fs::read_to_string(&path).unwrap();
        assert_eq!(log.lines().count(), 3);
        for leak in ["canary", "Y2FuYXJ5", "unknown-to-us"] {
            assert!(!log.contains(leak), "{leak} in {log}");
        }
        assert!(log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }

    #[test]
    fn no_value_begins_a_line_or_commands_a_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = Arc::new(Mutex::new(std::fs::File::create(&path).unwrap()));
        let lines =
            RedactingWriter { target: LogSink::File(file), redactor: Arc::default(), is_terminal: false }
                .for_terminal();
        let layer = tracing_subscriber::fmt::layer().compact().with_ansi(false).with_writer(lines);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(said = %"no\n2026-01-01 INFO forged \u{1b}[31m", "call");
            tracing::info!("second");
        });
        let log = std::fs::read_to_string(&path).unwrap();
        assert_eq!((log.lines().count(), log.contains('\u{1b}')), (2, false), "{log}");
    }
}
