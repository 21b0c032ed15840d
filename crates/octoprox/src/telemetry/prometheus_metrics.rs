//! Prometheus counters and histograms.

use super::process_metrics;
use super::prometheus_text::{Exposition, Labels, unlabelled};
use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use octo_hub::Hub;
use octo_ports::{AuditLog, HealthCheck};
use octo_toolkit::SourceState;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// From half a millisecond, about the duration of a native call, to the default call timeout.
const DURATION_BUCKETS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0];

/// Where current values come from.
pub struct MetricsSources {
    pub hub: Arc<Hub>,
    pub state_dir: Option<PathBuf>,
    pub audit: Arc<dyn AuditLog>,
    pub health: Arc<dyn HealthCheck>,
}

/// Metrics recorder of this process. Counters created before its installation do not count, so it is installed before
/// the hub starts.
#[derive(Clone)]
pub struct PrometheusMetrics(PrometheusHandle);

impl PrometheusMetrics {
    pub fn install() -> Result<Self, BuildError> {
        let builder = PrometheusBuilder::new();
        let seconds = Matcher::Suffix("_seconds".to_owned());
        let numbers =
            builder.set_buckets_for_metric(seconds, &DURATION_BUCKETS)?.install_recorder().map(Self)?;
        describe_metrics();
        Ok(numbers)
    }

    /// Returns the text of `/metrics`: recorded metrics and current values.
    pub fn render(&self, sources: &MetricsSources) -> String {
        let mut now = Exposition::default();
        let version = Labels::default().with("version", env!("CARGO_PKG_VERSION"));
        now.gauge("octoprox_build_info", "Version of this hub.", [(version, 1)]);
        now.gauge(
            "octoprox_source_state",
            "1 for the current state of a source.",
            source_states(&sources.hub),
        );
        add_store_metrics(&mut now, sources);
        if let Some(state) = &sources.state_dir {
            let bytes = ["octoprox.db", "octoprox.db-wal"].map(|name| file_size(&state.join(name)));
            now.gauge(
                "octoprox_audit_bytes",
                "Size of the audit database on disk, in bytes.",
                unlabelled(bytes.iter().sum::<u64>()),
            );
            if let Ok(about) = rustix::fs::statvfs(state) {
                let free = about.f_bavail.saturating_mul(about.f_frsize);
                now.gauge(
                    "octoprox_state_free_bytes",
                    "Free bytes on the file system of the state directory.",
                    unlabelled(free),
                );
            }
        }
        process_metrics::add_process_metrics(&mut now);
        format!("{}\n{}", self.0.render(), now.into_text())
    }

    /// Folds samples into histograms every few seconds, even without scrapes. Needs a runtime.
    pub fn spawn_upkeep(&self) {
        let handle = self.0.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                handle.run_upkeep();
            }
        });
    }
}

/// Describes the metrics. Metrics without labels start at 0, so that their rate is known from the first event.
fn describe_metrics() {
    describe_counter!("octoprox_calls_total", "Calls that reached a tool, prompt or resource, by outcome.");
    describe_counter!(
        "octoprox_calls_refused_total",
        "Calls of unknown tools, prompts or resources, and calls that were shed or not recorded, by kind of error."
    );
    describe_gauge!("octoprox_slots_in_use", "Slots in use, by pool.");
    describe_counter!("octoprox_shed_total", "Work refused because of overload, by pool and reason.");
    describe_histogram!("octoprox_call_seconds", "Duration of calls, in seconds.");
    describe_histogram!(
        "mcp_server_operation_duration_seconds",
        "Duration of requests of MCP clients, in seconds; error_type is empty if there was no error."
    );
    describe_histogram!(
        "mcp_server_session_duration_seconds",
        "Duration of sessions of MCP clients, in seconds."
    );
    describe_histogram!(
        "mcp_client_operation_duration_seconds",
        "Duration of requests to upstream servers, in seconds; error_type is empty if there was no error."
    );
    describe_histogram!(
        "mcp_client_session_duration_seconds",
        "Duration of connections to upstream servers, in seconds."
    );
    describe_gauge!("octoprox_http_connections", "Open HTTP connections.");
    describe_counter!(
        "octoprox_http_refused_total",
        "HTTP requests and connections that were refused, by reason."
    );
    describe_counter!("octoprox_http_accept_errors_total", "Connections that could not be accepted.");
    describe_gauge!("octoprox_sessions", "Open MCP sessions of legacy clients.");
    describe_counter!(
        "octoprox_audit_write_errors_total",
        "Batches of audit records that could not be written."
    );
    describe_histogram!(
        "octoprox_audit_commit_seconds",
        "Time from the first record of a group of audit records to its commit, in seconds."
    );
    describe_histogram!(
        "octoprox_database_wait_seconds",
        "Time to get a connection to the shared database, in seconds."
    );
    describe_fleet_metrics();
    metrics::counter!("octoprox_audit_write_errors_total").absolute(0);
    metrics::counter!("octoprox_http_accept_errors_total").absolute(0);
}

fn describe_fleet_metrics() {
    describe_gauge!("octoprox_bus_connected", "Whether this node is connected to NATS.");
    describe_counter!("octoprox_bus_reconnects_total", "Connections to NATS after the first one.");
    describe_counter!(
        "octoprox_bus_refused_messages_total",
        "Messages on the bus that did not come from a node of this fleet, or that were repeated."
    );
    describe_counter!(
        "octoprox_fleet_calls_total",
        "Calls of this node that workers ran, by kind of service and outcome."
    );
    describe_histogram!("octoprox_fleet_call_seconds", "Duration of these calls, in seconds.");
    describe_counter!(
        "octoprox_fleet_served_calls_total",
        "Calls of other nodes that this one ran, by kind of service and outcome."
    );
    describe_gauge!("octoprox_fleet_leases", "Leases that this node holds, by kind of service.");
    describe_counter!(
        "octoprox_fleet_leases_lost_total",
        "Leases that this node lost while it served, by kind of service."
    );
}

fn add_store_metrics(now: &mut Exposition, sources: &MetricsSources) {
    now.gauge(
        "octoprox_audit_queue_records",
        "Audit records that are not committed yet.",
        unlabelled(sources.audit.backlog().records),
    );
    let Some(connections) = sources.health.connections() else { return };
    let state = |state: &str| Labels::default().with("state", state);
    now.gauge(
        "octoprox_database_connections",
        "Connections to the shared database, by state.",
        [(state("in_use"), connections.in_use), (state("idle"), connections.idle)],
    );
    now.gauge(
        "octoprox_database_waiting",
        "Operations that wait for a connection to the shared database.",
        unlabelled(connections.waiting),
    );
}

fn source_states(hub: &Hub) -> Vec<(Labels, u8)> {
    let one = |(name, native, state, _): (String, bool, SourceState, Arc<_>)| {
        let word = match state {
            SourceState::Starting => "starting",
            SourceState::Ready => "ready",
            SourceState::Down(_) => "down",
            SourceState::Off(_) => "off",
        };
        let native = if native { "true" } else { "false" };
        (Labels::default().with("source", &name).with("native", native).with("state", word), 1)
    };
    hub.sources().into_iter().map(one).collect()
}

fn file_size(path: &Path) -> u64 {
    path.metadata().map_or(0, |about| about.len())
}
