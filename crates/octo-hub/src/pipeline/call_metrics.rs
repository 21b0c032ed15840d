//! Metrics of calls.

use metrics::{Counter, Histogram};
use octo_ports::Outcome;
use std::time::Duration;

/// Counters of one item, created once. Those of rare outcomes are created on first use.
pub struct CallMetrics {
    server: String,
    tool: String,
    ok: Counter,
    failed: Counter,
    seconds: Histogram,
}

impl CallMetrics {
    pub fn new(server: &str, tool: &str) -> Self {
        let labels = [("server", server.to_owned()), ("tool", tool.to_owned())];
        Self {
            ok: counter(server, tool, Outcome::Ok),
            failed: counter(server, tool, Outcome::Failed),
            seconds: metrics::histogram!("octoprox_call_seconds", &labels),
            server: server.to_owned(),
            tool: tool.to_owned(),
        }
    }

    pub fn record(&self, outcome: Outcome, took: Duration) {
        self.seconds.record(took.as_secs_f64());
        match outcome {
            Outcome::Ok => self.ok.increment(1),
            Outcome::Failed => self.failed.increment(1),
            other => counter(&self.server, &self.tool, other).increment(1),
        }
    }
}

/// Counts a call that was refused before it resolved to an item.
pub fn count_refused(outcome: Outcome) {
    metrics::counter!("octoprox_calls_refused_total", "kind" => outcome.as_str()).increment(1);
}

fn counter(server: &str, tool: &str, outcome: Outcome) -> Counter {
    metrics::counter!("octoprox_calls_total",
        "server" => server.to_owned(), "tool" => tool.to_owned(), "outcome" => outcome.as_str())
}
