//! Vitest.

use super::{Failure, Report, counts, place};

pub fn read(stdout: &str, stderr: &str) -> Option<Report> {
    let mut report = Report::new("vitest");
    let mut found = false;
    for line in stdout.lines().chain(stderr.lines()) {
        let line = line.trim_start();
        if let Some(result) = line.strip_prefix("Tests  ").filter(|result| result.trim_end().ends_with(')')) {
            found = true;
            report.passes(counts::before(result, "passed").unwrap_or(0));
            report.failed += counts::before(result, "failed").unwrap_or(0);
            report.skipped +=
                counts::before(result, "skipped").unwrap_or(0) + counts::before(result, "todo").unwrap_or(0);
        } else if let Some(time) = line.strip_prefix("Duration  ").filter(|_| found) {
            report.takes(time.split(" (").next().and_then(counts::seconds));
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

fn failures(text: &str, report: &mut Report) {
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
            place::split(spot.rsplit(' ').next().unwrap_or(spot))
                .filter(|(file, _)| !file.contains("node_modules/"))
        });
        let said = body.iter().copied().take_while(|line| !line.trim_start().starts_with("❯ "));
        report.fails(Failure {
            name: name.trim().to_owned(),
            file: place.map(|(file, _)| file).or(name.split(" > ").next()).map(str::to_owned),
            line: place.map(|(_, line)| line),
            message: place::joined(said),
        });
    }
}
