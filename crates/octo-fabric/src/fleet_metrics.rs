//! Metrics of the fleet, by kind of service: names of workspaces and servers are not bounded.

use metrics::{Counter, Histogram};
use octo_model::{JsonObject, ToolError};
use std::time::Duration;

/// First token of the names of leases of services.
const LEASE_PREFIX: &str = "fleet/";

/// Of what fronts serve to each other.
pub(crate) const FRONT_KIND: &str = "front";

/// The kind of a service, from its name: `workspace/default`, or `fleet/workspace/default` for its lease.
pub(crate) fn service_kind(name: &str) -> &'static str {
    let name = name.strip_prefix(LEASE_PREFIX).unwrap_or(name);
    match name.split_once('/') {
        Some(("workspace", _)) => "workspace",
        Some(("server", _)) => "server",
        Some((FRONT_KIND, _)) => FRONT_KIND,
        _ => "other",
    }
}

fn outcome_of(outcome: &Result<JsonObject, ToolError>) -> &'static str {
    outcome.as_ref().map_or_else(|error| error.kind.as_str(), |_| "ok")
}

/// Calls of one source on another node. Counters of failures are created on first use.
pub(crate) struct RemoteCallMetrics {
    service: &'static str,
    ok: Counter,
    seconds: Histogram,
}

impl RemoteCallMetrics {
    pub(crate) fn new(service: &'static str) -> Self {
        let ok = remote_calls(service, "ok");
        Self {
            service,
            ok,
            seconds: metrics::histogram!("octoprox_fleet_call_seconds", "service" => service),
        }
    }

    pub(crate) fn record(&self, outcome: &Result<JsonObject, ToolError>, took: Duration) {
        self.seconds.record(took.as_secs_f64());
        match outcome {
            Ok(_) => self.ok.increment(1),
            Err(_) => remote_calls(self.service, outcome_of(outcome)).increment(1),
        }
    }
}

fn remote_calls(service: &'static str, outcome: &'static str) -> Counter {
    metrics::counter!("octoprox_fleet_calls_total", "service" => service, "outcome" => outcome)
}

/// Counts a call that this node ran for another one.
pub(crate) fn count_served(service: &'static str, outcome: &Result<JsonObject, ToolError>) {
    count_served_as(service, outcome_of(outcome));
}

pub(crate) fn count_served_as(service: &'static str, outcome: &'static str) {
    metrics::counter!("octoprox_fleet_served_calls_total", "service" => service, "outcome" => outcome)
        .increment(1);
}

/// Counts the lease of a service as held until it is dropped.
pub(crate) struct HeldLease(&'static str);

impl HeldLease {
    pub(crate) fn new(lease: &str) -> Self {
        let held = Self(service_kind(lease));
        held.gauge().increment(1.0);
        held
    }

    fn gauge(&self) -> metrics::Gauge {
        metrics::gauge!("octoprox_fleet_leases", "service" => self.0)
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.gauge().decrement(1.0);
    }
}

pub(crate) fn count_lost_lease(lease: &str) {
    metrics::counter!("octoprox_fleet_leases_lost_total", "service" => service_kind(lease)).increment(1);
}

pub(crate) fn set_bus_connected(is_connected: bool) {
    metrics::gauge!("octoprox_bus_connected").set(if is_connected { 1.0 } else { 0.0 });
}

/// Counts a message whose sender has not the key of the fleet.
pub(crate) fn count_refused_message() {
    metrics::counter!("octoprox_bus_refused_messages_total").increment(1);
}

pub(crate) fn count_reconnect() {
    metrics::counter!("octoprox_bus_reconnects_total").increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_few_kinds() {
        for (name, kind) in [
            ("workspace/default", "workspace"),
            ("fleet/workspace/a/b", "workspace"),
            ("server/notion", "server"),
            ("fleet/server/x", "server"),
            ("front/one", "front"),
            ("anything", "other"),
            ("run/7", "other"),
        ] {
            assert_eq!(service_kind(name), kind, "{name}");
        }
    }
}
