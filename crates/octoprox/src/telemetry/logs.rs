//! Log lines: JSON for programs, short ones for people at the command line.

use super::redact::Redactor;
use super::writer::{Lines, Target};
use crate::settings::Telemetry;
use opentelemetry_sdk::trace::SdkTracer;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// The target of the hub's one span per call; nothing else is exported.
const CALLS: &str = "octoprox::call";

/// Who listens to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// A server: JSON on standard output.
    Server,
    /// Standard output belongs to the protocol: JSON on standard error.
    Stdio,
    /// A person who asked for something else: warnings on standard error.
    Person,
}

type Layered = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging, once for the process. A second start is ignored, which is what tests want.
pub fn start(
    talk: Talk,
    settings: &Telemetry,
    redactor: &Arc<Redactor>,
    tracer: Option<SdkTracer>,
) -> io::Result<()> {
    let lines = |target| Lines { target, redactor: Arc::clone(redactor) };
    let mut layers: Vec<Layered> = Vec::new();
    match talk {
        Talk::Server => layers.push(json(lines(Target::Stdout), settings)),
        Talk::Stdio => layers.push(json(lines(Target::Stderr), settings)),
        Talk::Person => layers.push(plain(lines(Target::Stderr))),
    }
    if let Some(path) = settings.log_file.as_deref().filter(|_| talk != Talk::Person) {
        let file = Arc::new(Mutex::new(open(path)?));
        layers.push(json(lines(Target::File(file)), settings));
    }
    if let Some(tracer) = tracer {
        let spans = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        layers.push(spans.with_filter(Targets::new().with_target(CALLS, LevelFilter::INFO)).boxed());
    }
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(())
}

/// Spans stay out of log lines: they carry arguments.
fn json(lines: Lines, settings: &Telemetry) -> Layered {
    let level = settings
        .log_level
        .parse::<Targets>()
        .unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(lines)
        .with_filter(level)
        .boxed()
}

/// Commands say themselves which servers are missing, where it matters.
fn plain(lines: Lines) -> Layered {
    let level = Targets::new().with_default(LevelFilter::WARN).with_target("upstream", LevelFilter::ERROR);
    fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_writer(lines)
        .with_filter(level)
        .boxed()
}

/// Only its owner may read a log.
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
