//! Python's built-in `unittest`, and frameworks based on it.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, stderr: &str) -> Option<TestReport> {
    [stderr, stdout].into_iter().find_map(parse_stream)
}

fn parse_stream(text: &str) -> Option<TestReport> {
    let mut lines = text.lines().skip_while(|line| !(line.starts_with("Ran ") && line.contains(" test")));
    let ran = lines.next()?;
    let (count, time) = ran.strip_prefix("Ran ")?.split_once(" in ")?;
    let count: u64 = count.split(' ').next()?.parse().ok()?;
    let verdict = lines.find(|line| line.starts_with("OK") || line.starts_with("FAILED"))?;
    // `FAILED (failures=1, expected failures=2)`: one name may be a suffix of another.
    let told = verdict.split_once('(').map_or("", |(_, rest)| rest.trim_end().trim_end_matches(')'));
    let number = |key: &str| -> u64 {
        let mut pairs = told.split(", ").filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
    };
    let mut report = TestReport::new("unittest");
    report.failed = number("failures") + number("errors") + number("unexpected successes");
    report.skipped = number("skipped") + number("expected failures");
    report.passes(count.saturating_sub(report.failed + report.skipped));
    report.takes(summary_numbers::seconds(time));
    failures(text, &mut report);
    Some(report)
}

/// Sections headed `FAIL: test_x (module.Class.test_x)` between rules.
fn failures(text: &str, report: &mut TestReport) {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) else {
            continue;
        };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("=====")) {
            if line.starts_with("Ran ") {
                break;
            }
            if !line.starts_with("-----") {
                body.push(line);
            }
        }
        let place = body.iter().rev().find_map(|line| parse_frame(line));
        let said = body.iter().rposition(|line| line.starts_with("  ")).and_then(|at| body.get(at + 1..));
        report.fails(Failure {
            name: name.to_owned(),
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
            message: source_location::join_dedented(said.unwrap_or_default().iter().copied()),
        });
    }
}

/// `  File "x.py", line 3, in test_x`.
fn parse_frame(line: &str) -> Option<(&str, u64)> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    Some((file, rest.split(',').next()?.trim().parse().ok()?))
}
