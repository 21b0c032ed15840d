//! Metrics computed on demand, in the Prometheus text format.

use std::fmt::{Display, Write};

/// Metric families as text.
#[derive(Default)]
pub struct Exposition(String);

impl Exposition {
    pub fn gauge<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.family(name, "gauge", help, samples);
    }

    pub fn counter<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.family(name, "counter", help, samples);
    }

    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (Labels(labels), value) in samples {
            let _ = match labels.is_empty() {
                true => writeln!(self.0, "{name} {value}"),
                false => writeln!(self.0, "{name}{{{labels}}} {value}"),
            };
        }
        self.0.push('\n');
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

/// Labels of a sample.
#[derive(Default)]
pub struct Labels(String);

impl Labels {
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(self.0, "{comma}{name}=\"{value}\"");
        self
    }
}

/// Returns a sample without labels.
pub fn unlabelled<V>(value: V) -> [(Labels, V); 1] {
    [(Labels::default(), value)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_as_text() {
        let mut exposition = Exposition::default();
        exposition.gauge(
            "up",
            "Whether it is up.",
            [(Labels::default().with("name", "a\"b\\c\nd").with("x", "y"), 1)],
        );
        exposition.counter("seconds_total", "Time.", unlabelled(0.5));
        assert_eq!(
            exposition.into_text(),
            "# HELP up Whether it is up.\n# TYPE up gauge\nup{name=\"a\\\"b\\\\c\\nd\",x=\"y\"} 1\n\n\
             # HELP seconds_total Time.\n# TYPE seconds_total counter\nseconds_total 0.5\n\n"
        );
    }
}
