//! `pytest`, with any traceback style, verbose or quiet.

use super::{Failure, TestReport, source_location, summary_numbers};

pub fn read(stdout: &str, _stderr: &str) -> Option<TestReport> {
    let mut report = TestReport::new("pytest");
    let mut found = false;
    for line in stdout.lines() {
        let Some((result, time)) = summary(line) else { continue };
        found = true;
        let count = |words: &[&str]| {
            words.iter().filter_map(|word| summary_numbers::number_before(result, word)).sum::<u64>()
        };
        report.passes(count(&["passed", "xpassed"]));
        report.failed += count(&["failed", "error", "errors"]);
        report.skipped += count(&["skipped", "xfailed"]);
        report.takes(summary_numbers::seconds(time));
    }
    if !found {
        return None;
    }
    let ids = node_ids(stdout);
    for block in blocks(stdout) {
        report.fails(failure(&block, &ids));
    }
    for (id, said) in ids {
        if !report.failures.iter().any(|failure| failure.name == id) {
            let file = id.split("::").next().map(str::to_owned);
            report.fails(Failure { name: id.to_owned(), file, line: None, message: said.to_owned() });
        }
    }
    Some(report)
}

/// `3 failed, 2 passed in 0.05s`, optionally between equals signs: the counts and the time.
fn summary(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_matches('=').trim();
    let (result, time) = line.rsplit_once(" in ")?;
    let time = time.split(" (").next()?;
    let timed = time.strip_suffix('s')?.parse::<f64>().is_ok();
    let counted = result.split(", ").all(|part| {
        part == "no tests ran"
            || part.split_once(' ').is_some_and(|(number, word)| {
                number.parse::<u64>().is_ok() && word.chars().all(|c| c.is_ascii_lowercase() || c == ' ')
            })
    });
    (timed && counted).then_some((result, time))
}

/// Lines of the short summary: node id and message.
fn node_ids(stdout: &str) -> Vec<(&str, &str)> {
    let lines = stdout.lines().skip_while(|line| !line.contains("short test summary info"));
    lines
        .filter_map(|line| line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")))
        .map(|line| line.split_once(" - ").unwrap_or((line, "")))
        .collect()
}

struct FailureBlock<'a> {
    heading: &'a str,
    body: Vec<&'a str>,
}

/// Sections under FAILURES and ERRORS.
fn blocks(stdout: &str) -> Vec<FailureBlock<'_>> {
    let mut blocks: Vec<FailureBlock<'_>> = Vec::new();
    let mut within = false;
    for line in stdout.lines() {
        if line.starts_with("====") {
            within = matches!(line.trim_matches('=').trim(), "FAILURES" | "ERRORS");
        } else if let Some(heading) = heading(line).filter(|_| within) {
            blocks.push(FailureBlock { heading, body: Vec::new() });
        } else if let Some(block) = blocks.last_mut().filter(|_| within) {
            block.body.push(line);
        }
    }
    blocks
}

fn heading(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('_')?.trim_start_matches('_').strip_suffix('_')?.trim_end_matches('_');
    inner.strip_prefix(' ')?.strip_suffix(' ')
}

fn failure(block: &FailureBlock<'_>, ids: &[(&str, &str)]) -> Failure {
    let collecting = block.heading.strip_prefix("ERROR collecting ");
    let short = ["ERROR at setup of ", "ERROR at teardown of "]
        .iter()
        .find_map(|prefix| block.heading.strip_prefix(prefix))
        .or(collecting)
        .unwrap_or(block.heading);
    let id = ids.iter().find(|(id, _)| {
        *id == short || id.split_once("::").is_some_and(|(_, rest)| rest.replace("::", ".") == short)
    });
    let body = block.body.iter().copied().take_while(|line| !line.starts_with("----"));
    let body: Vec<&str> = body.collect();
    let places: Vec<(&str, u64)> = body.iter().filter_map(|line| parse_location(line)).collect();
    let own = places.iter().rev().find(|(file, _)| !file.contains("site-packages"));
    let place = own.or(places.last());
    let said = body.iter().filter_map(|line| line.strip_prefix("E  "));
    let mut message = source_location::join_dedented(said);
    if message.is_empty() {
        message = source_location::join_dedented(body.iter().copied());
    }
    Failure {
        name: id.map_or(short, |(id, _)| id).to_owned(),
        file: place.map(|(file, _)| (*file).to_owned()).or(collecting.map(str::to_owned)),
        line: place.map(|(_, line)| *line),
        message,
    }
}

/// `tests/test_a.py:11: AssertionError` or `tests/test_a.py:11: in test_b`.
fn parse_location(line: &str) -> Option<(&str, u64)> {
    let (file, rest) = line.split_once(".py:")?;
    let (number, _) = rest.split_once(':')?;
    let end = file.len() + 3;
    if file.starts_with(' ') {
        return None;
    }
    Some((line.get(..end)?, number.parse().ok()?))
}
