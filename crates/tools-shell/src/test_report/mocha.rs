//! Mocha's usual reporters.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, _stderr: &str) -> Option<TestReport> {
    let mut report = TestReport::new("mocha");
    let mut lines = stdout.lines();
    let passing = lines.find(|line| is_count(line, "passing"))?;
    report.passes(summary_numbers::number_before(passing, "passing").unwrap_or(0));
    report.takes(
        passing.split_once('(').and_then(|(_, time)| summary_numbers::seconds(time.trim_end_matches(')'))),
    );
    for line in stdout.lines() {
        if is_count(line, "failing") {
            report.failed += summary_numbers::number_before(line, "failing").unwrap_or(0);
        } else if is_count(line, "pending") {
            report.skipped += summary_numbers::number_before(line, "pending").unwrap_or(0);
        }
    }
    failures(lines, &mut report);
    Some(report)
}

/// `  2 failing`, optionally followed by a time.
fn is_count(line: &str, word: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|number| number.parse::<u64>().is_ok())
        && words.next() == Some(word)
        && words.next().is_none_or(|time| time.starts_with('('))
}

/// Numbered sections after the counts.
fn failures<'a>(lines: impl Iterator<Item = &'a str>, report: &mut TestReport) {
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let Some(first) = numbered(line) else { continue };
        let mut name = vec![first.trim_end_matches(':')];
        let mut open = !first.ends_with(':');
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| numbered(line).is_none()) {
            match open {
                true if !line.trim().is_empty() => {
                    name.push(line.trim().trim_end_matches(':'));
                    open = !line.trim_end().ends_with(':');
                }
                _ => body.push(line),
            }
        }
        let place = source_location::first_stack_frame(body.iter().copied());
        let said = body.iter().copied().take_while(|line| !line.trim_start().starts_with("at "));
        report.fails(Failure {
            name: name.join(" > "),
            file: place.as_ref().map(|(file, _)| file.clone()),
            line: place.map(|(_, line)| line),
            message: source_location::join_dedented(said),
        });
    }
}

/// `  1) name`.
fn numbered(line: &str) -> Option<&str> {
    let (number, name) = line.strip_prefix("  ")?.split_once(") ")?;
    number.parse::<u64>().ok().map(|_| name)
}
