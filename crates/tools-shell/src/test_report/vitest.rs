//! Vitest.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, stderr: &str) -> Option<TestReport> {
    let mut report = TestReport::new("vitest");
    let mut found = false;
    for line in stdout.lines().chain(stderr.lines()) {
        let line = line.trim_start();
        if let Some(result) = line.strip_prefix("Tests  ").filter(|result| result.trim_end().ends_with(')')) {
            found = true;
            report.passes(summary_numbers::number_before(result, "passed").unwrap_or(0));
            report.failed += summary_numbers::number_before(result, "failed").unwrap_or(0);
            report.skipped += summary_numbers::number_before(result, "skipped").unwrap_or(0)
                + summary_numbers::number_before(result, "todo").unwrap_or(0);
        } else if let Some(time) = line.strip_prefix("Duration  ").filter(|_| found) {
            report.takes(time.split(" (").next().and_then(summary_numbers::seconds));
        }
    }
    if !found {
        return None;
    }
    failures(stdout, &mut report);
    failures(stderr, &mut report);
    // A suite that cannot be loaded fails without a test.
    report.failed = report.failed.max(report.failures.len() as u64);
    Some(report)
}

fn failures(text: &str, report: &mut TestReport) {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix(" FAIL  ") else { continue };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(" FAIL  ") && !line.starts_with("⎯"))
        {
            body.push(line);
        }
        let place = body.iter().find_map(|line| {
            let spot = line.trim_start().strip_prefix("❯ ")?;
            source_location::split(spot.rsplit(' ').next().unwrap_or(spot))
                .filter(|(file, _)| !file.contains("node_modules/"))
        });
        let said = body.iter().copied().take_while(|line| !line.trim_start().starts_with("❯ "));
        report.fails(Failure {
            name: name.trim().to_owned(),
            file: place.map(|(file, _)| file).or(name.split(" > ").next()).map(str::to_owned),
            line: place.map(|(_, line)| line),
            message: source_location::join_dedented(said),
        });
    }
}
