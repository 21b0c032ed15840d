//! Checks that metrics are documented, and that the dashboard uses only those.

use super::Report;
use super::rust_sources::Source;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const DASHBOARD: &str = "packaging/grafana/octoprox.json";
const PAGE: &str = "docs/guide/observability.md";
/// First words of the names of metrics.
const PREFIXES: [&str; 4] = ["octoprox_", "mcp_server_", "mcp_client_", "process_"];
/// What a histogram adds to its name.
const HISTOGRAM_SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];
/// What a metric is described with in the code.
const DESCRIPTIONS: [&str; 5] =
    ["describe_counter!(", "describe_gauge!(", "describe_histogram!(", "now.gauge(", "now.counter("];
/// Columns of a dashboard.
const GRID_WIDTH: u64 = 24;

pub fn check(root: &Path, sources: &[Source]) -> Result<Report> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).context(name.to_owned());
    let documented = documented_names(&read(PAGE)?);
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)?).context(DASHBOARD)?;
    let described =
        sources.iter().filter(|source| !source.is_test()).flat_map(|source| described_names(&source.text));
    let missing = described.filter(|name| !documented.contains(name.as_str()));
    let mut problems: Vec<String> = missing.map(|name| format!("{PAGE}: `{name}` is not listed")).collect();
    problems.extend(dashboard_problems(&dashboard, &documented));
    Ok(Report { problems, notes: Vec::new() })
}

/// Names in the first column of the tables.
fn documented_names(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    rows.flat_map(|cell| cell.split('`')).filter(|word| is_metric(word)).map(str::to_owned).collect()
}

fn is_metric(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.len() > prefix.len() && word.starts_with(prefix))
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Names that the code describes.
fn described_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for start in DESCRIPTIONS {
        for rest in text.split(start).skip(1) {
            let name = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            names.extend(name.filter(|name| is_metric(name)).map(str::to_owned));
        }
    }
    names
}

fn dashboard_problems(dashboard: &Value, documented: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let panels = dashboard["panels"].as_array().map(Vec::as_slice).unwrap_or_default();
    if panels.is_empty() || !dashboard["title"].is_string() || !dashboard["schemaVersion"].is_u64() {
        problems.push(format!("{DASHBOARD}: not a dashboard with a title, a schemaVersion and panels"));
    }
    let mut ids = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or_default();
        if !panel["id"].as_u64().is_some_and(|id| ids.insert(id)) {
            problems.push(format!("{DASHBOARD}: the id of `{title}` is missing or used twice"));
        }
        let place = |side: &str| panel["gridPos"].get(side).and_then(Value::as_u64).unwrap_or(GRID_WIDTH + 1);
        if title.is_empty() || place("x") + place("w") > GRID_WIDTH {
            problems.push(format!("{DASHBOARD}: `{title}` has no title, or no place in the grid"));
        }
        let targets = panel["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        if targets.is_empty() && panel["type"] != "row" {
            problems.push(format!("{DASHBOARD}: `{title}` shows nothing"));
        }
        let queries = targets.iter().map(|target| target["expr"].as_str().unwrap_or_default());
        let unknown = queries.flat_map(metrics_of).filter(|name| !is_documented(name, documented));
        problems.extend(
            unknown.map(|name| format!("{DASHBOARD}: `{title}` uses {name}, which {PAGE} does not list")),
        );
    }
    problems
}

fn is_documented(name: &str, documented: &BTreeSet<String>) -> bool {
    let of_histogram = HISTOGRAM_SUFFIXES.iter().filter_map(|suffix| name.strip_suffix(suffix));
    [name].into_iter().chain(of_histogram).any(|name| documented.contains(name))
}

/// Metrics that a query names.
fn metrics_of(query: &str) -> Vec<&str> {
    let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| is_metric(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn panel(id: u64, query: &str) -> Value {
        json!({"id": id, "title": "A", "type": "timeseries", "gridPos": {"x": 12, "w": 12},
               "targets": [{"expr": query}]})
    }

    fn problems(panels: &[Value]) -> usize {
        let documented = documented_names(
            "| `octoprox_calls_total` | counter |\n| `octoprox_call_seconds`, `process_threads` | x |\n",
        );
        assert_eq!(documented.len(), 3);
        dashboard_problems(&json!({"title": "T", "schemaVersion": 39, "panels": panels}), &documented).len()
    }

    #[test]
    fn a_dashboard_uses_documented_metrics_and_its_own_ids() {
        let good = "sum(rate(octoprox_call_seconds_bucket[5m])) / octoprox_calls_total + process_threads";
        assert_eq!(problems(&[panel(1, good), panel(2, good)]), 0);
        assert_eq!(problems(&[panel(1, good), panel(1, good)]), 1);
        assert_eq!(problems(&[panel(1, "rate(octoprox_gone_total[5m])")]), 1);
        assert_eq!(problems(&[json!({"id": 1, "title": "A", "gridPos": {"x": 20, "w": 12}})]), 2);
        assert_eq!(problems(&[]), 1);
    }

    #[test]
    fn described_metrics_are_found() {
        let code =
            "describe_counter!(\n    \"octoprox_a_total\", \"A.\");\nnow.gauge(\"octoprox_b\", \"B.\", x);\n";
        assert_eq!(described_names(code), ["octoprox_a_total", "octoprox_b"]);
    }
}
