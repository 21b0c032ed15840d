//! Collects what happened: lines of files, rows of the database, and the logs of the workers.

use crate::fleet::faults::history_check::{Effects, ServiceStart, WorkerLine};
use crate::fleet::faults::load_client::{APPEND_FILE, COMMAND_FILE, LINE_END, WORKFLOW_FILE};
use crate::fleet::running_fleet::RunningFleet;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;

const SERVICE: &str = "workspace/default";

pub fn collect(fleet: &RunningFleet) -> Result<Effects> {
    let mut effects = Effects::default();
    let workspace = fleet.folder.workspace();
    // A file is missing if nothing was ever appended.
    let read = |name: &str| fs::read_to_string(workspace.join(name)).unwrap_or_default();
    let mut count = |effect: &str, times| *effects.counts.entry(effect.to_owned()).or_default() += times;
    for text in [read(APPEND_FILE), read(WORKFLOW_FILE)] {
        complete_lines(&text).for_each(|line| count(line, 1));
    }
    for row in fleet.database.query("SELECT text, count(*) FROM octoprox.memory_facts GROUP BY text")? {
        let (text, times) = row.split_once('|').context("a row without count")?;
        count(text, times.parse()?);
    }
    for line in complete_lines(&read(COMMAND_FILE)) {
        let words: Vec<&str> = line.split(' ').collect();
        // Without the name of a worker, the line is not of a command.
        let [effect, worker, at_ns] = words.as_slice() else { continue };
        count(effect, 1);
        let (effect, worker) = ((*effect).to_owned(), (*worker).to_owned());
        effects.lines.push(WorkerLine { effect, worker, at_ns: at_ns.parse()? });
    }
    for worker in &fleet.workers {
        let log = fs::read_to_string(fleet.folder.log(worker.node()))?;
        let starts = log.lines().filter_map(service_start);
        let worker = worker.node();
        effects.service_starts.extend(starts.map(|at_ns| ServiceStart { worker: worker.to_owned(), at_ns }));
    }
    effects.service_starts.sort_by_key(|start| start.at_ns);
    for line in fleet.octoprox(&["audit", "export"])?.lines() {
        let record: Value = serde_json::from_str(line)?;
        if record.get("kind").and_then(Value::as_str) == Some("open")
            && let Some(call) = record.get("call").and_then(Value::as_str)
        {
            effects.audited.insert(call.to_owned());
        }
    }
    Ok(effects)
}

/// Lines that were written to their end, without the mark of the end.
fn complete_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_suffix(LINE_END))
}

/// When a worker began to serve, if a line of its log says so.
fn service_start(line: &str) -> Option<u128> {
    // Earlier builds masked numbers without quotes.
    let line: Value = serde_json::from_str(&line.replace(":***", ":\"***\"")).ok()?;
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let is_start = text("message") == Some("serving") && text("service") == Some(SERVICE);
    is_start.then(|| nanoseconds(text("timestamp")?)).flatten()
}

/// Nanoseconds since 1970 of a time such as `2026-11-18T10:22:19.196942Z`.
fn nanoseconds(timestamp: &str) -> Option<u128> {
    let (date, time) = timestamp.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let numbers =
        |text: &str, mark| text.split(mark).map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>();
    let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
    let ([year, month, day], [hours, minutes, seconds]) = (date.as_slice(), time.as_slice()) else {
        return None;
    };
    // Days since 1970, with years that begin in March.
    let (year, month) = if *month <= 2 { (year - 1, month + 9) } else { (*year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    let nanos: u128 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Some(u128::try_from(seconds).ok()? * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_logs() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00.5Z", Some(951_825_600_500_000_000)),
            ("2026-11-18T10:22:19.196942Z", Some(1_794_997_339_196_942_000)),
            ("yesterday", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn only_complete_lines_count() {
        assert_eq!(complete_lines("\na .\nb\nc .").collect::<Vec<_>>(), ["a", "c"]);
    }
}
