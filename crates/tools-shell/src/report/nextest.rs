//! `cargo nextest run`.

use super::{Report, cargo, counts};

pub fn read(stdout: &str, stderr: &str) -> Option<Report> {
    [stderr, stdout].into_iter().find_map(of)
}

fn of(text: &str) -> Option<Report> {
    let summary = text.lines().find_map(|line| line.trim_start().strip_prefix("Summary ["))?;
    let (time, result) = summary.split_once(']')?;
    let (_, result) = result.split_once("run: ")?;
    let time = counts::seconds(time)?;
    let mut report = Report::new("cargo nextest");
    report.passes(counts::before(result, "passed").unwrap_or(0));
    for word in ["failed", "timed", "exec"] {
        report.failed += counts::before(result, word).unwrap_or(0);
    }
    report.skipped = counts::before(result, "skipped").unwrap_or(0);
    report.takes(Some(time));
    failures(text, &mut report);
    Some(report)
}

fn failures(text: &str, report: &mut Report) {
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
        let mut failure = cargo::failure(name, told(&body));
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

/// What the test wrote to its error stream, where panics go; else all of its output.
fn told<'a>(body: &'a [&'a str]) -> &'a [&'a str] {
    let at =
        body.iter().position(|line| line.trim_start().starts_with("stderr ───") || line.contains("STDERR:"));
    at.and_then(|at| body.get(at + 1..)).unwrap_or(body)
}
