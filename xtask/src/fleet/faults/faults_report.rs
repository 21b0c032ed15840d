//! What a run found, as tables.

use crate::fleet::faults::call_history::{CallKind, CallRecord, Outcome};
use crate::fleet::faults::fault_kind::FaultKind;
use crate::fleet::faults::history_check::{CheckReport, Suspension};
use std::collections::BTreeMap;
use std::time::Duration;

const MAX_SHOWN_VIOLATIONS: usize = 30;

/// A fault and how the fleet coped with it.
pub struct Injection {
    pub kind: FaultKind,
    /// The node that it met.
    pub target: String,
    pub start_ms: u64,
    pub end_ms: u64,
    pub recovered_ms: u64,
    /// From the end of the fault until every front answers again.
    pub recovery: Duration,
}

impl Injection {
    /// The sleep of a worker, if it is one.
    pub fn suspension(&self) -> Option<Suspension> {
        let Self { kind, target, start_ms, end_ms, .. } = self;
        let is_suspension = *kind == FaultKind::SuspendWorker;
        is_suspension.then(|| Suspension { worker: target.clone(), from_ms: *start_ms, to_ms: *end_ms })
    }
}

pub fn print(injections: &[Injection], calls: &[CallRecord], checked: &CheckReport) {
    let mut kinds: BTreeMap<FaultKind, Vec<&Injection>> = BTreeMap::new();
    for injection in injections {
        kinds.entry(injection.kind).or_default().push(injection);
    }
    let successes = Successes::of(calls);
    println!(
        "\n| fault | injections | recovery p50 | max | pause at workers p50 | max | pause at the database p50 | max |"
    );
    println!("|---|{}", "---|".repeat(7));
    for (kind, injections) in kinds {
        let times = |time: &dyn Fn(&Injection) -> Duration| {
            median_and_max(injections.iter().map(|injection| time(injection)).collect())
        };
        let recovery = times(&|injection| injection.recovery);
        let workers = times(&|injection| longest_pause(&successes.at_workers, injection));
        let database = times(&|injection| longest_pause(&successes.at_database, injection));
        println!("| {} | {} | {recovery} | {workers} | {database} |", kind.name(), injections.len());
    }
    print_calls(calls);
    println!(
        "\n{} lines of commands that were resumed after another worker had taken over",
        checked.resumed.len()
    );
    println!("{} violations", checked.violations.len());
    for violation in checked.violations.iter().take(MAX_SHOWN_VIOLATIONS) {
        println!("  {violation}");
    }
}

fn print_calls(calls: &[CallRecord]) {
    println!("\n| call | {} | not ended |", Outcome::ALL.map(Outcome::name).join(" | "));
    println!("|---|{}---|", "---|".repeat(Outcome::ALL.len()));
    for kind in CallKind::ALL {
        let count = |outcome: Option<Outcome>| {
            let same = calls.iter().filter(|call| call.kind == kind);
            same.filter(|call| call.end.as_ref().map(|end| end.outcome) == outcome).count()
        };
        let counts = Outcome::ALL.map(|outcome| count(Some(outcome)).to_string());
        println!("| {} | {} | {} |", kind.name(), counts.join(" | "), count(None));
    }
}

/// When calls were done, in order of time.
struct Successes {
    at_workers: Vec<u64>,
    at_database: Vec<u64>,
}

impl Successes {
    fn of(calls: &[CallRecord]) -> Self {
        let ends = |is_at_database: bool| {
            let same = calls.iter().filter(|call| call.kind.is_at_database() == is_at_database);
            let ends = same.filter_map(|call| call.end.as_ref()).filter(|end| end.outcome == Outcome::Done);
            let mut times: Vec<u64> = ends.map(|end| end.at_ms).collect();
            times.sort_unstable();
            times
        };
        Self { at_workers: ends(false), at_database: ends(true) }
    }
}

/// The longest time without a call that was done, of those that the fault touches.
fn longest_pause(successes: &[u64], injection: &Injection) -> Duration {
    let pauses = successes.iter().zip(successes.iter().skip(1));
    let pauses = pauses.filter(|(from, to)| **to > injection.start_ms && **from < injection.recovered_ms);
    Duration::from_millis(pauses.map(|(from, to)| to - from).max().unwrap_or_default())
}

fn median_and_max(mut times: Vec<Duration>) -> String {
    times.sort();
    let seconds = |at: usize| times.get(at).map_or(f64::NAN, Duration::as_secs_f64);
    format!(
        "{:.1} s | {:.1} s",
        seconds(times.len().saturating_sub(1) / 2),
        seconds(times.len().saturating_sub(1))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_overlaps_its_fault() {
        let kind = FaultKind::KillWorker;
        let injection = Injection {
            kind,
            target: String::new(),
            start_ms: 100,
            end_ms: 100,
            recovered_ms: 200,
            recovery: Duration::ZERO,
        };
        for (successes, expected) in [
            (&[0, 90, 120, 190, 210, 900][..], 70),
            (&[0, 50, 300, 900], 250),
            (&[0, 90, 300, 301], 210),
            (&[10], 0),
        ] {
            let pause = longest_pause(successes, &injection);
            assert_eq!(pause, Duration::from_millis(expected), "{successes:?}");
        }
    }
}
