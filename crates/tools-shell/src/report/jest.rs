//! Jest.

use super::{Failure, Report, counts, place};

/// Headings that look like failures and are none.
const NOT_TESTS: &[&str] = &["Console", "Deprecation Warning", "Validation Warning"];

pub fn read(stdout: &str, stderr: &str) -> Option<Report> {
    [stderr, stdout].into_iter().find_map(of)
}

fn of(text: &str) -> Option<Report> {
    let mut report = Report::new("jest");
    let mut found = false;
    for line in text.lines() {
        if let Some(result) = line.strip_prefix("Tests: ").filter(|result| result.contains(" total")) {
            found = true;
            report.passes(counts::before(result, "passed").unwrap_or(0));
            report.failed += counts::before(result, "failed").unwrap_or(0);
            report.skipped +=
                counts::before(result, "skipped").unwrap_or(0) + counts::before(result, "todo").unwrap_or(0);
        } else if let Some(time) = line.strip_prefix("Time: ").filter(|_| found) {
            report.takes(time.split(',').next().and_then(counts::seconds));
        }
    }
    if !found {
        return None;
    }
    failures(text, &mut report);
    Some(report)
}

fn failures(text: &str, report: &mut Report) {
    let mut suite = "";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(file) = line.strip_prefix("FAIL ").or_else(|| line.strip_prefix("PASS ")) {
            suite = file.split(" (").next().unwrap_or(file).trim();
        }
        let Some(name) = line.strip_prefix("  ● ").filter(|name| !NOT_TESTS.contains(name)) else {
            continue;
        };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with("   ")) {
            body.push(line);
        }
        let place = place::of_stack(body.iter().copied());
        let said =
            body.iter().copied().take_while(|line| !is_source(line) && !line.trim_start().starts_with("at "));
        report.fails(Failure {
            name: name.to_owned(),
            file: Some(place.as_ref().map_or(suite, |(file, _)| file).to_owned())
                .filter(|file| !file.is_empty()),
            line: place.map(|(_, line)| line),
            message: place::joined(said),
        });
    }
}

/// A line of the picture of the source: `> 4 |` or `  3 |`.
fn is_source(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches('>').trim_start();
    line.split_once('|').is_some_and(|(number, _)| number.trim().parse::<u64>().is_ok())
}
