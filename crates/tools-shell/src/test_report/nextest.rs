//! `cargo nextest run`.

use super::{TestReport, cargo, summary_numbers};

pub fn read(stdout: &str, stderr: &str) -> Option<TestReport> {
    [stderr, stdout].into_iter().find_map(parse_stream)
}

fn parse_stream(text: &str) -> Option<TestReport> {
    let summary = text.lines().find_map(|line| line.trim_start().strip_prefix("Summary ["))?;
    let (time, result) = summary.split_once(']')?;
    let (_, result) = result.split_once("run: ")?;
    let time = summary_numbers::seconds(time)?;
    let mut report = TestReport::new("cargo nextest");
    report.passes(summary_numbers::number_before(result, "passed").unwrap_or(0));
    for word in ["failed", "timed", "exec"] {
        report.failed += summary_numbers::number_before(result, word).unwrap_or(0);
    }
    report.skipped = summary_numbers::number_before(result, "skipped").unwrap_or(0);
    report.takes(Some(time));
    failures(text, &mut report);
    Some(report)
}

fn failures(text: &str, report: &mut TestReport) {
    let mut lines = text.lines().take_while(|line| !line.trim_start().starts_with("Summary [")).peekable();
    while let Some(line) = lines.next() {
        let Some((status, name)) = status(line) else { continue };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| self::status(line).is_none() && !line.starts_with("────"))
        {
            body.push(line);
        }
        if matches!(status, "PASS" | "SLOW" | "SKIP" | "LEAK" | "START" | "FLAKY")
            || status.starts_with("TRY")
        {
            continue;
        }
        let mut failure = cargo::failure(name, stderr_section(&body));
        if failure.message.is_empty() {
            failure.message = status.to_owned();
        }
        report.fails(failure);
    }
}

/// `FAIL [   0.011s] (1/3) sample tests::name`: the status and the name with its binary.
fn status(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.trim_start().split_once(" [")?;
    let (time, name) = rest.split_once("] ")?;
    let known = status.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ');
    let timed = time.trim().trim_start_matches('>').trim_end_matches('s').parse::<f64>().is_ok();
    if !known || !timed || !line.starts_with("  ") {
        return None;
    }
    let name = name.trim();
    let name = match name.strip_prefix('(').and_then(|name| name.split_once(')')) {
        Some((_, name)) => name.trim(),
        None => name,
    };
    Some((status, name))
}

/// Standard error of the test, where panics go; else all of its output.
fn stderr_section<'a>(body: &'a [&'a str]) -> &'a [&'a str] {
    let at =
        body.iter().position(|line| line.trim_start().starts_with("stderr ───") || line.contains("STDERR:"));
    at.and_then(|at| body.get(at + 1..)).unwrap_or(body)
}
