//! `go test -json`: one event per line.

use super::{TestReport, go};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    elapsed: Option<f64>,
}

pub fn read(stdout: &str, _stderr: &str) -> Option<TestReport> {
    let events = stdout.lines().filter(|line| line.starts_with('{') && line.contains("\"Action\""));
    let mut report = TestReport::new("go test");
    let mut said: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut failed: Vec<(String, String)> = Vec::new();
    let mut found = false;
    for event in events.filter_map(|line| serde_json::from_str::<Event>(line).ok()) {
        found = true;
        let Some(test) = event.test else {
            if matches!(event.action.as_str(), "pass" | "fail") {
                report.takes(event.elapsed);
            }
            continue;
        };
        let key = (event.package, test);
        match event.action.as_str() {
            "pass" => report.passes(1),
            "skip" => report.skipped += 1,
            "fail" => failed.push(key),
            "output" => said.entry(key).or_default().push(event.output.unwrap_or_default()),
            _ => {}
        }
    }
    if !found {
        return None;
    }
    report.passes(0);
    for (package, test) in &failed {
        let nested = format!("{test}/");
        if failed.iter().any(|(other, name)| other == package && name.starts_with(&nested)) {
            continue;
        }
        report.failed += 1;
        let lines = said.get(&(package.clone(), test.clone())).map(Vec::as_slice).unwrap_or_default();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end_matches('\n')).collect();
        let told = lines.iter().copied().filter(|line| !line.trim_start().starts_with(['=', '-']));
        report.fails(go::failure(&format!("{package}.{test}"), &told.collect::<Vec<_>>()));
    }
    Some(report)
}
