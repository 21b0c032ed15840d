//! Test Anything Protocol, which many runners print.

use super::{Failure, TestReport, source_location};

pub fn read(stdout: &str, _stderr: &str) -> Option<TestReport> {
    let plan = stdout.lines().any(|line| {
        let plan = line.split(" #").next().unwrap_or(line).trim_end();
        plan.strip_prefix("1..").is_some_and(|count| count.parse::<u64>().is_ok())
    });
    if !plan && !stdout.lines().any(|line| line.starts_with("TAP version ")) {
        return None;
    }
    let mut report = TestReport::new("tap");
    report.passes(0);
    let mut lines = stdout.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((ok, rest)) = point(line) else { continue };
        let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
        let directive = directive.to_ascii_uppercase();
        if directive.starts_with("SKIP") || directive.starts_with("TODO") {
            report.skipped += 1;
        } else if ok {
            report.passes(1);
        } else {
            report.failed += 1;
            let mut body = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ") || line.starts_with("# ")) {
                body.push(line);
            }
            report.fails(failure(name, &body));
        }
    }
    Some(report)
}

/// `ok 1 - name` or `not ok 2 name`.
fn point(line: &str) -> Option<(bool, &str)> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    Some((ok, rest.strip_prefix("- ").unwrap_or(rest)))
}

fn failure(name: &str, body: &[&str]) -> Failure {
    let key = |key: &str| {
        let value = body.iter().find_map(|line| line.trim_start().strip_prefix(key))?;
        Some(value.trim().trim_matches(['\'', '"']))
    };
    let place = key("location:").and_then(source_location::split).map(|(file, line)| (file.to_owned(), line));
    let place = place.or_else(|| source_location::first_stack_frame(body.iter().copied()));
    let said = key("error:").or(key("message:")).filter(|said| !said.starts_with('|')).map(str::to_owned);
    let all = || {
        let body = body.iter().copied().filter(|line| !matches!(line.trim(), "---" | "..."));
        source_location::join_dedented(body.take_while(|line| !line.trim_start().starts_with("at ")))
    };
    Failure {
        name: name.to_owned(),
        file: place.as_ref().map(|(file, _)| file.clone()),
        line: place.map(|(_, line)| line),
        message: said.unwrap_or_else(all),
    }
}
