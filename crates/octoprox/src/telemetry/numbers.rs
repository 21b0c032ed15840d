//! Counters and histograms for Prometheus.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::time::Duration;

/// From half a millisecond, about what a native call takes, to the default limit of a call.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0];

/// The recorder of this process. Counters made before it was installed count nothing, so it comes before the hub.
#[derive(Clone)]
pub struct Numbers(PrometheusHandle);

impl Numbers {
    pub fn install() -> Result<Self, BuildError> {
        let builder = PrometheusBuilder::new();
        let seconds = Matcher::Suffix("_seconds".to_owned());
        builder.set_buckets_for_metric(seconds, &SECONDS)?.install_recorder().map(Self)
    }

    /// What `/metrics` answers.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds samples into their histograms every few seconds, whether or not anybody asks for them. Needs a runtime.
    pub fn keep(&self) {
        let handle = self.0.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                handle.run_upkeep();
            }
        });
    }
}
