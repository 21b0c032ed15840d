//! Logging: JSON for servers, readable lines on a terminal, warnings only for commands.

use super::json_line::JsonLine;
use super::redacting_writer::{LogSink, RedactingWriter};
use super::redactor::Redactor;
use crate::settings::Telemetry;
use opentelemetry_sdk::trace::SdkTracer;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Target of the call span; only this span is exported.
const CALL_SPAN_TARGET: &str = "octoprox::call";

/// Where logs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMode {
    /// Server: JSON on standard output.
    Server,
    /// Standard output is used by the protocol: JSON on standard error.
    Stdio,
    /// Command: warnings on standard error.
    Command,
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;
type LevelHandle = reload::Handle<Targets, Registry>;

/// Handle to change logging at run time.
#[derive(Default)]
pub struct Logs {
    levels: Vec<LevelHandle>,
    file: Option<(PathBuf, Arc<Mutex<File>>)>,
}

impl Logs {
    /// Sets the log level.
    pub fn set_level(&self, level: &str) {
        for handle in &self.levels {
            // Fails only if the subscriber is gone.
            let _ = handle.reload(level_filter(level));
        }
    }

    /// Reopens the log file by name, after log rotation has moved the old one.
    pub fn reopen(&self) -> io::Result<()> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let fresh = open_log_file(path)?;
        *file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

/// Starts logging once per process. Further calls are ignored, as tests need.
pub fn init_logging(
    talk: LogMode,
    settings: &Telemetry,
    redactor: &Arc<Redactor>,
    tracer: Option<SdkTracer>,
) -> io::Result<Logs> {
    let mut logs = Logs::default();
    let lines = |target| RedactingWriter { target, redactor: Arc::clone(redactor), is_terminal: false };
    let mut layers: Vec<BoxedLayer> = Vec::new();
    match talk {
        LogMode::Server if io::stdout().is_terminal() => {
            layers.push(terminal_layer(lines(LogSink::Stdout), settings, &mut logs));
        }
        LogMode::Stdio if io::stderr().is_terminal() => {
            layers.push(terminal_layer(lines(LogSink::Stderr), settings, &mut logs));
        }
        LogMode::Server => layers.push(json_layer(lines(LogSink::Stdout), settings, &mut logs)),
        LogMode::Stdio => layers.push(json_layer(lines(LogSink::Stderr), settings, &mut logs)),
        LogMode::Command => layers.push(warnings_layer(lines(LogSink::Stderr))),
    }
    if let Some(path) = settings.log_file.as_deref().filter(|_| talk != LogMode::Command) {
        let file = Arc::new(Mutex::new(open_log_file(path)?));
        layers.push(json_layer(lines(LogSink::File(Arc::clone(&file))), settings, &mut logs));
        logs.file = Some((path.to_owned(), file));
    }
    if let Some(tracer) = tracer {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        layers
            .push(spans.with_filter(Targets::new().with_target(CALL_SPAN_TARGET, LevelFilter::INFO)).boxed());
    }
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(logs)
}

/// Excludes spans from log lines, since they carry arguments. Callsites that only test whether an event is enabled are
/// not spans.
fn is_event(about: &Metadata<'_>) -> bool {
    !about.is_span()
}

/// Readable output for a terminal.
fn terminal_layer(lines: RedactingWriter, settings: &Telemetry, logs: &mut Logs) -> BoxedLayer {
    let (level, handle) = reload::Layer::new(level_filter(&settings.log_level));
    logs.levels.push(handle);
    fmt::layer()
        .compact()
        .with_timer(fmt::time::SystemTime)
        .with_target(false)
        .with_ansi(false)
        .with_writer(lines.for_terminal())
        .with_filter(level.and(filter_fn(is_event)))
        .boxed()
}

fn json_layer(lines: RedactingWriter, settings: &Telemetry, logs: &mut Logs) -> BoxedLayer {
    let (level, handle) = reload::Layer::new(level_filter(&settings.log_level));
    logs.levels.push(handle);
    fmt::layer().event_format(JsonLine).with_writer(lines).with_filter(level).boxed()
}

/// Parses the log level. Levels below `info` apply to this product only: libraries are too verbose unless named
/// explicitly.
fn level_filter(level: &str) -> Targets {
    const OWN_TARGETS: [&str; 8] =
        ["calls", "fleet", "hub", "octo", "tools_", "servers", "trust", "upstream"];
    let Ok(wanted) = level.parse::<Targets>() else { return Targets::new().with_default(LevelFilter::INFO) };
    let general = wanted.default_level().unwrap_or(LevelFilter::OFF);
    let own = OWN_TARGETS.map(|target| (target.to_owned(), general));
    // The first reports watches that ended with their directory, the second what `octo-fabric` reports, too.
    let libraries =
        ["notify", "async_nats"].map(|target| (target.to_owned(), general.min(LevelFilter::WARN)));
    let named = wanted.iter().map(|(target, level)| (target.to_owned(), level));
    Targets::new()
        .with_targets(own.into_iter().chain(libraries).chain(named))
        .with_default(general.min(LevelFilter::INFO))
}

/// Commands report missing servers themselves where it matters.
fn warnings_layer(lines: RedactingWriter) -> BoxedLayer {
    let level = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("upstream", LevelFilter::ERROR)
        // A command reports the failure of its call itself.
        .with_target("hub", LevelFilter::ERROR);
    fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_writer(lines)
        .with_filter(level.and(filter_fn(is_event)))
        .boxed()
}

/// Opens the log file, readable only by its owner.
fn open_log_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn below_info_libraries_are_named_or_silent() {
        for (setting, target, level, logged) in [
            ("debug", "octo_hub::call", Level::DEBUG, true),
            ("debug", "tools_web", Level::DEBUG, true),
            ("debug", "upstream", Level::DEBUG, true),
            ("debug", "globset", Level::DEBUG, false),
            ("trace", "html5ever::tokenizer", Level::TRACE, false),
            ("debug", "globset", Level::INFO, true),
            ("debug,globset=debug", "globset", Level::DEBUG, true),
            ("info,octo_hub=debug", "octo_hub::call", Level::DEBUG, true),
            ("info,octo_hub=debug", "octo_web", Level::DEBUG, false),
            ("warn", "hyper", Level::INFO, false),
            ("octo_hub=debug", "octo_web", Level::ERROR, false),
            ("nonsense=nonsense", "octo_web", Level::INFO, true),
        ] {
            assert_eq!(
                level_filter(setting).would_enable(target, &level),
                logged,
                "{setting} {target} {level}"
            );
        }
    }
}
