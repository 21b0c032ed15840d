//! `go test`, with and without `-v`. Without it, passed tests are not named and cannot be counted.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, stderr: &str) -> Option<TestReport> {
    let mut report = TestReport::new("go test");
    let mut packages = false;
    for line in stdout.lines() {
        if let Some((status, rest)) = package(line) {
            packages = true;
            report.takes(rest.split('\t').nth(1).and_then(summary_numbers::seconds));
            let name = rest.split(['\t', ' ']).next().unwrap_or_default();
            if status == "FAIL" && (rest.ends_with("[build failed]") || rest.ends_with("[setup failed]")) {
                report.failed += 1;
                let message = source_location::join_dedented(
                    stderr.lines().chain(stdout.lines()).filter(|line| is_compiler(line)),
                );
                let place = message
                    .lines()
                    .next()
                    .and_then(|line| line.split(' ').next())
                    .and_then(source_location::split);
                let (file, line) = (place.map(|(file, _)| file.to_owned()), place.map(|(_, line)| line));
                report.fails(Failure { name: format!("{name} [build failed]"), file, line, message });
            }
        }
    }
    if !packages {
        return None;
    }
    tests(stdout, &mut report);
    Some(report)
}

/// `ok  \tpkg\t0.01s`, `FAIL\tpkg\t0.01s`, `?   \tpkg\t[no test files]`, `FAIL\tpkg [build failed]`.
fn package(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.split_once('\t')?;
    let status = status.trim_end();
    matches!(status, "ok" | "FAIL" | "?").then_some((status, rest))
}

/// `./a.go:3:5: undefined: x`.
fn is_compiler(line: &str) -> bool {
    line.split_once(".go:").is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
        && !line.starts_with(' ')
}

struct TestResult<'a> {
    name: &'a str,
    status: &'a str,
    output: Vec<&'a str>,
}

fn tests(stdout: &str, report: &mut TestReport) {
    let verbose = stdout.lines().any(|line| line.starts_with("=== RUN "));
    let verdicts = verdicts(stdout, verbose);
    for verdict in &verdicts {
        let nested = format!("{}/", verdict.name);
        let holds =
            |word: &str| verdicts.iter().any(|other| other.status == word && other.name.starts_with(&nested));
        match verdict.status {
            "PASS" => report.passes(1),
            "SKIP" => report.skipped += 1,
            // A test fails with its subtests; those are reported.
            "FAIL" if holds("FAIL") => {}
            _ => {
                report.failed += 1;
                report.fails(failure(verdict.name, &verdict.output));
            }
        }
    }
    if verbose && report.passed.is_none() {
        report.passes(0);
    }
}

/// Result of each test. Its output follows the verdict; with `-v` it precedes it.
fn verdicts(stdout: &str, verbose: bool) -> Vec<TestResult<'_>> {
    let mut verdicts: Vec<TestResult<'_>> = Vec::new();
    let mut heard: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut open = false;
    for line in stdout.lines() {
        if let Some(rest) = line.strip_prefix("=== ") {
            let name = rest.split_once(' ').map_or(rest, |(_, name)| name.trim());
            heard.push((name, Vec::new()));
            open = false;
        } else if let Some((word, name)) = verdict(line) {
            let mine = heard.iter().filter(|(heard, _)| *heard == name);
            let said = mine.flat_map(|(_, said)| said.iter().copied()).collect();
            verdicts.push(TestResult { name, status: word, output: said });
            open = !verbose;
        } else if package(line).is_some() || matches!(line, "FAIL" | "PASS") {
            open = false;
        } else if let Some(last) = verdicts.last_mut().filter(|_| open) {
            last.output.push(line);
        } else if let Some((_, said)) = heard.last_mut() {
            said.push(line);
        }
    }
    verdicts
}

/// `--- FAIL: TestName/sub (0.00s)`, indented for subtests.
fn verdict(line: &str) -> Option<(&str, &str)> {
    let (word, name) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    matches!(word, "PASS" | "FAIL" | "SKIP").then_some((word, name.split(" (").next().unwrap_or(name)))
}

/// The first `file_test.go:9: message` is the location.
pub fn failure(name: &str, said: &[&str]) -> Failure {
    let place = said.iter().find_map(|line| {
        let line = line.trim_start();
        let end = line.find(".go:")? + 4;
        let digits = line.get(end..)?;
        let digits = digits.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((line.get(..end - 1)?.rsplit(['\t', ' ']).next()?, digits.parse().ok()?))
    });
    Failure {
        name: name.to_owned(),
        file: place.map(|(file, _)| file.to_owned()),
        line: place.map(|(_, line)| line),
        message: source_location::join_dedented(said.iter().copied()),
    }
}
