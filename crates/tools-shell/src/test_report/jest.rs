//! Jest.

use super::{Failure, TestReport, source_location, summary_numbers};

/// Headings that look like failures but are not.
const IGNORED_HEADINGS: &[&str] = &["Console", "Deprecation Warning", "Validation Warning"];

pub fn read(stdout: &str, stderr: &str) -> Option<TestReport> {
    [stderr, stdout].into_iter().find_map(parse_stream)
}

fn parse_stream(text: &str) -> Option<TestReport> {
    let mut report = TestReport::new("jest");
    let mut found = false;
    for line in text.lines() {
        if let Some(result) = line.strip_prefix("Tests: ").filter(|result| result.contains(" total")) {
            found = true;
            report.passes(summary_numbers::number_before(result, "passed").unwrap_or(0));
            report.failed += summary_numbers::number_before(result, "failed").unwrap_or(0);
            report.skipped += summary_numbers::number_before(result, "skipped").unwrap_or(0)
                + summary_numbers::number_before(result, "todo").unwrap_or(0);
        } else if let Some(time) = line.strip_prefix("Time: ").filter(|_| found) {
            report.takes(time.split(',').next().and_then(summary_numbers::seconds));
        }
    }
    if !found {
        return None;
    }
    failures(text, &mut report);
    Some(report)
}

fn failures(text: &str, report: &mut TestReport) {
    let mut suite = "";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(file) = line.strip_prefix("FAIL ").or_else(|| line.strip_prefix("PASS ")) {
            suite = file.split(" (").next().unwrap_or(file).trim();
        }
        let Some(name) = line.strip_prefix("  ● ").filter(|name| !IGNORED_HEADINGS.contains(name)) else {
            continue;
        };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with("   ")) {
            body.push(line);
        }
        let place = source_location::first_stack_frame(body.iter().copied());
        let said =
            body.iter().copied().take_while(|line| !is_source(line) && !line.trim_start().starts_with("at "));
        report.fails(Failure {
            name: name.to_owned(),
            file: Some(place.as_ref().map_or(suite, |(file, _)| file).to_owned())
                .filter(|file| !file.is_empty()),
            line: place.map(|(_, line)| line),
            message: source_location::join_dedented(said),
        });
    }
}

/// A line of the source excerpt: `> 4 |` or `  3 |`.
fn is_source(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches('>').trim_start();
    line.split_once('|').is_some_and(|(number, _)| number.trim().parse::<u64>().is_ok())
}
