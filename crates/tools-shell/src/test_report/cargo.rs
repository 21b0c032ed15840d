//! `cargo test`: the standard harness.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, _stderr: &str) -> Option<TestReport> {
    let mut report = TestReport::new("cargo test");
    let mut found = false;
    for line in stdout.lines() {
        if let Some(result) = line.strip_prefix("test result: ") {
            found = true;
            report.passes(summary_numbers::number_before(result, "passed").unwrap_or(0));
            report.failed += summary_numbers::number_before(result, "failed").unwrap_or(0);
            report.skipped += summary_numbers::number_before(result, "ignored").unwrap_or(0);
            report.takes(
                result.rsplit_once("finished in ").and_then(|(_, time)| summary_numbers::seconds(time)),
            );
        }
    }
    if !found {
        return None;
    }
    blocks(stdout, &mut report);
    for line in stdout.lines() {
        let failed = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
        if let Some(name) = failed.map(|name| name.trim_end_matches(" - should panic"))
            && !report.failures.iter().any(|failure| failure.name == name)
        {
            report.fails(Failure { name: name.to_owned(), ..Failure::default() });
        }
    }
    Some(report)
}

/// `---- name stdout ----` and its content.
fn blocks(stdout: &str, report: &mut TestReport) {
    let mut lines = stdout.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) else {
            continue;
        };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| {
            !line.starts_with("---- ") && *line != "failures:" && !line.starts_with("test result: ")
        }) {
            body.push(line);
        }
        report.fails(failure(name, &body));
    }
}

/// Output of one test: the panic, or all of it.
pub fn failure(name: &str, body: &[&str]) -> Failure {
    let panic = body.iter().position(|line| line.contains("panicked at "));
    let spot = panic.and_then(|at| body.get(at)).and_then(|line| line.split_once("panicked at "));
    let place = spot.and_then(|(_, place)| source_location::split(place)).or_else(|| doctest_location(name));
    let said = panic.and_then(|at| body.get(at + 1..)).unwrap_or(body);
    let said =
        said.iter().copied().filter(|line| !line.trim_start().starts_with("note: run with `RUST_BACKTRACE"));
    Failure {
        name: name.to_owned(),
        file: place.map(|(file, _)| file.to_owned()),
        line: place.map(|(_, line)| line),
        message: source_location::join_dedented(said),
    }
}

/// `src/lib.rs - add (line 12)`.
fn doctest_location(name: &str) -> Option<(&str, u64)> {
    let (file, rest) = name.split_once(" - ")?;
    let (_, line) = rest.rsplit_once("(line ")?;
    Some((file, line.trim_end_matches(')').parse().ok()?))
}
