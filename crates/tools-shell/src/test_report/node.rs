//! Node's built-in runner, in its spec format.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, _stderr: &str) -> Option<TestReport> {
    let number = |key: &str| {
        stdout.lines().find_map(|line| line.strip_prefix("ℹ ")?.strip_prefix(key)?.trim().parse::<f64>().ok())
    };
    number("tests ")?;
    let count = |key: &str| number(key).map_or(0, |number| number as u64);
    let mut report = TestReport::new("node --test");
    report.passes(count("pass "));
    report.failed = count("fail ") + count("cancelled ");
    report.skipped = count("skipped ") + count("todo ");
    report.takes(number("duration_ms ").and_then(|time| summary_numbers::seconds(&format!("{time}ms"))));
    let mut lines = stdout.lines().skip_while(|line| !line.starts_with("✖ failing tests:")).peekable();
    while let Some(line) = lines.next() {
        let Some(spot) = line.strip_prefix("test at ") else { continue };
        let name = lines.next().unwrap_or_default().trim_start_matches("✖ ");
        let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("test at ")) {
            body.push(line);
        }
        let place = source_location::first_stack_frame(body.iter().copied()).or_else(|| {
            let (file, line) = source_location::split(spot)?;
            Some((file.to_owned(), line))
        });
        let said = body.iter().copied().take_while(|line| !line.trim_start().starts_with("at "));
        report.fails(Failure {
            name: name.to_owned(),
            file: place.as_ref().map(|(file, _)| file.clone()),
            line: place.map(|(_, line)| line),
            message: source_location::join_dedented(said),
        });
    }
    Some(report)
}
