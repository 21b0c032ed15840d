//! Compares what clients were told with what happened. It knows nothing of the faults.

use crate::fleet::faults::call_history::{CallEnd, CallRecord, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// How long a command may continue after its worker was resumed without its lease.
const MAX_RESUMED_MS: u64 = 2_000;

/// A line that a command wrote at a worker.
#[derive(Debug, Clone)]
pub struct WorkerLine {
    pub effect: String,
    pub worker: String,
    pub at_ns: u128,
}

/// A worker began to serve.
#[derive(Debug, Clone)]
pub struct ServiceStart {
    pub worker: String,
    pub at_ns: u128,
}

/// A worker slept, with the commands that it ran.
#[derive(Debug, Clone)]
pub struct Suspension {
    pub worker: String,
    pub from_ms: u64,
    pub to_ms: u64,
}

#[derive(Debug, Default)]
pub struct Effects {
    /// How often each effect took place.
    pub counts: BTreeMap<String, usize>,
    /// Lines of commands in the order of the file.
    pub lines: Vec<WorkerLine>,
    /// In order of time.
    pub service_starts: Vec<ServiceStart>,
    pub suspensions: Vec<Suspension>,
    /// Ids of the calls in the audit log.
    pub audited: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// The client was told that it is done, and an effect is missing.
    Lost {
        effect: String,
        call: String,
    },
    Twice {
        effect: String,
        count: usize,
        call: String,
    },
    /// The client was told that it failed, and it took effect.
    FailedWithEffect {
        effect: String,
        call: String,
    },
    NoEnd {
        call: String,
    },
    Late {
        seconds: u64,
        call: String,
    },
    /// A worker wrote after one with a newer lease.
    OldLease {
        effect: String,
        worker: String,
        after: String,
    },
    /// A worker wrote that never began to serve, as far as its log says.
    NoLease {
        effect: String,
        worker: String,
    },
    NotAudited {
        call: String,
    },
    NoCall {
        effect: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { effect, call } => write!(f, "lost: {effect} of {call}"),
            Self::Twice { effect, count, call } => write!(f, "{count} times: {effect} of {call}"),
            Self::FailedWithEffect { effect, call } => write!(f, "failed, with effect: {effect} of {call}"),
            Self::NoEnd { call } => write!(f, "never ended: {call}"),
            Self::Late { seconds, call } => write!(f, "ended after {seconds} s: {call}"),
            Self::OldLease { effect, worker, after } => {
                write!(f, "old lease: {worker} wrote {effect} after {after}")
            }
            Self::NoLease { effect, worker } => write!(f, "no lease: {worker} wrote {effect}"),
            Self::NotAudited { call } => write!(f, "not in the audit log: {call}"),
            Self::NoCall { effect } => write!(f, "effect of no call: {effect}"),
        }
    }
}

#[derive(Debug, Default)]
pub struct CheckReport {
    pub violations: Vec<Violation>,
    /// Lines of commands that were running when their worker was suspended, and continued for a moment after another one
    /// had taken over. Only the files themselves could refuse these.
    pub resumed: Vec<Violation>,
}

/// Finds every contradiction. A call has to end within `deadline`.
pub fn check(calls: &[CallRecord], effects: &Effects, deadline: Duration) -> CheckReport {
    let mut violations: Vec<Violation> = calls.iter().flat_map(|call| check_end(call, deadline)).collect();
    violations.extend(calls.iter().flat_map(|call| check_effects(call, effects)));
    let unaudited = calls.iter().filter(|call| !call.end.as_ref().is_none_or(|end| is_audited(end, effects)));
    violations.extend(unaudited.map(|call| Violation::NotAudited { call: describe(call) }));
    let expected: BTreeSet<String> = calls.iter().flat_map(|call| call.kind.effects(&call.id)).collect();
    let strange = effects.counts.keys().filter(|effect| !expected.contains(*effect));
    violations.extend(strange.map(|effect| Violation::NoCall { effect: effect.clone() }));
    let starts: BTreeMap<String, u64> = calls
        .iter()
        .flat_map(|call| call.kind.effects(&call.id).into_iter().map(|effect| (effect, call.start_ms)))
        .collect();
    let (old, resumed) = check_leases(effects, &starts);
    violations.extend(old);
    CheckReport { violations, resumed }
}

/// A call that was refused need not be recorded.
fn is_audited(end: &CallEnd, effects: &Effects) -> bool {
    end.outcome != Outcome::Done || end.audit_id.as_ref().is_some_and(|id| effects.audited.contains(id))
}

fn describe(call: &CallRecord) -> String {
    let CallRecord { id, kind, start_ms, end } = call;
    let end = end.as_ref().map(|end| format!(", {} at {}: {}", end.outcome.name(), end.at_ms, end.detail));
    format!("{} {id}, started at {start_ms}{}", kind.name(), end.unwrap_or_default())
}

fn check_end(call: &CallRecord, deadline: Duration) -> Option<Violation> {
    let Some(end) = &call.end else { return Some(Violation::NoEnd { call: describe(call) }) };
    let time = Duration::from_millis(end.at_ms.saturating_sub(call.start_ms));
    (time > deadline).then(|| Violation::Late { seconds: time.as_secs(), call: describe(call) })
}

fn check_effects(call: &CallRecord, effects: &Effects) -> Vec<Violation> {
    let mut violations = Vec::new();
    let outcome = call.end.as_ref().map(|end| end.outcome);
    for effect in call.kind.effects(&call.id) {
        let count = effects.counts.get(&effect).copied().unwrap_or_default();
        let call = describe(call);
        match (outcome, count) {
            (_, 2..) => violations.push(Violation::Twice { effect, count, call }),
            (Some(Outcome::Done), 0) => violations.push(Violation::Lost { effect, call }),
            (Some(Outcome::Failed | Outcome::Denied | Outcome::NotSent), 1) => {
                violations.push(Violation::FailedWithEffect { effect, call });
            }
            _ => {}
        }
    }
    violations
}

/// Of two lines in the file, the later one must not be of an older lease. Those of commands that were resumed come second.
fn check_leases(effects: &Effects, starts: &BTreeMap<String, u64>) -> (Vec<Violation>, Vec<Violation>) {
    let (mut violations, mut resumed) = (Vec::new(), Vec::new());
    let mut newest: Option<(usize, &WorkerLine)> = None;
    for line in &effects.lines {
        let starts_before = |start: &ServiceStart| start.worker == line.worker && start.at_ns <= line.at_ns;
        let Some(lease) = effects.service_starts.iter().rposition(starts_before) else {
            let (effect, worker) = (line.effect.clone(), line.worker.clone());
            violations.push(Violation::NoLease { effect, worker });
            continue;
        };
        match newest {
            Some((newer, after)) if lease < newer => {
                let violation = Violation::OldLease {
                    effect: line.effect.clone(),
                    worker: format!("{} at {}", line.worker, line.at_ns),
                    after: format!("{} of {} at {}", after.effect, after.worker, after.at_ns),
                };
                let start_ms = starts.get(&line.effect).copied().unwrap_or(u64::MAX);
                let is_resumed = effects.suspensions.iter().any(|one| one.has_resumed(line, start_ms));
                if is_resumed { resumed.push(violation) } else { violations.push(violation) }
            }
            _ => newest = Some((lease, line)),
        }
    }
    (violations, resumed)
}

impl Suspension {
    /// Whether a line is of a call that was running meanwhile, and was ended soon after.
    fn has_resumed(&self, line: &WorkerLine, call_start_ms: u64) -> bool {
        let line_ms = u64::try_from(line.at_ns / 1_000_000).unwrap_or(u64::MAX);
        let end_ms = self.to_ms.saturating_add(MAX_RESUMED_MS);
        self.worker == line.worker && call_start_ms <= self.from_ms && line_ms <= end_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::faults::call_history::{self, CallKind};

    const DEADLINE: Duration = Duration::from_secs(60);

    fn call(id: &str, kind: CallKind, outcome: Outcome) -> CallRecord {
        let end = CallEnd { at_ms: 2_000, outcome, detail: String::new(), audit_id: Some(id.to_owned()) };
        CallRecord { id: id.to_owned(), kind, start_ms: 1_000, end: Some(end) }
    }

    fn effects(names: &[&str]) -> Effects {
        let mut effects = Effects { audited: ["a", "b"].map(str::to_owned).into(), ..Effects::default() };
        for name in names {
            *effects.counts.entry((*name).to_owned()).or_default() += 1;
        }
        effects
    }

    fn names(calls: &[CallRecord], effects: &Effects) -> Vec<String> {
        let violations = check(calls, effects, DEADLINE).violations;
        let first = |text: String| text.split_once(':').map(|(name, _)| name.to_owned());
        violations.into_iter().filter_map(|violation| first(violation.to_string())).collect()
    }

    #[test]
    fn effects_agree_with_outcomes() {
        use CallKind::{FileAppend, FileRead, LongCall};
        use Outcome::{Denied, Done, Failed, NotSent, Unknown};
        let none: &[&str] = &[];
        for (kind, outcome, took_place, expected) in [
            (FileAppend, Done, &["a"][..], none),
            (FileAppend, Unknown, &["a"], none),
            (FileAppend, Unknown, none, none),
            (FileAppend, Failed, none, none),
            (FileRead, Done, none, none),
            (LongCall, Done, &["a.first", "a.last"], none),
            (LongCall, Unknown, &["a.first"], none),
            // A lost write.
            (FileAppend, Done, none, &["lost"]),
            (LongCall, Done, &["a.first"], &["lost"]),
            // An effect that took place twice.
            (FileAppend, Done, &["a", "a"], &["2 times"]),
            (FileAppend, Unknown, &["a", "a"], &["2 times"]),
            (FileAppend, Failed, &["a", "a"], &["2 times"]),
            // An error although it took effect.
            (FileAppend, Failed, &["a"], &["failed, with effect"]),
            (FileAppend, Denied, &["a"], &["failed, with effect"]),
            (FileAppend, NotSent, &["a"], &["failed, with effect"]),
            (FileAppend, Done, &["a", "z"], &["effect of no call"]),
        ] {
            let found = names(&[call("a", kind, outcome)], &effects(took_place));
            assert_eq!(found, expected, "{kind:?} {outcome:?} {took_place:?}");
        }
    }

    #[test]
    fn every_call_ends_in_time() {
        let mut late = call("a", CallKind::FileRead, Outcome::Unknown);
        late.start_ms = 0;
        late.end.as_mut().unwrap().at_ms = 60_001;
        assert_eq!(names(&[late], &effects(&[])), ["ended after 60 s"]);
        let mut open = call("a", CallKind::FileRead, Outcome::Unknown);
        open.end = None;
        assert_eq!(names(&[open], &effects(&[])), ["never ended"]);
    }

    #[test]
    fn every_reply_is_in_the_audit_log() {
        let calls =
            [call("a", CallKind::FileRead, Outcome::Done), call("c", CallKind::FileRead, Outcome::Done)];
        assert_eq!(names(&calls, &effects(&[])), ["not in the audit log"]);
    }

    #[test]
    fn a_worker_does_not_write_after_its_successor() {
        let line = |effect: &str, worker: &str, at_ns| WorkerLine {
            effect: effect.to_owned(),
            worker: worker.to_owned(),
            at_ns,
        };
        let start = |worker: &str, at_ns| ServiceStart { worker: worker.to_owned(), at_ns };
        let mut effects = Effects {
            service_starts: vec![start("one", 0), start("two", 100), start("one", 200)],
            lines: vec![line("a", "one", 10), line("b", "two", 110), line("c", "one", 210)],
            ..Effects::default()
        };
        let starts = BTreeMap::from([("d", 0), ("e", 0)].map(|(id, at)| (id.to_owned(), at)));
        let counts = |effects: &Effects| {
            let (violations, resumed) = check_leases(effects, &starts);
            (violations.len(), resumed.len())
        };
        assert_eq!(counts(&effects), (0, 0), "the first one takes over again");
        effects.lines.insert(2, line("d", "one", 120));
        assert_eq!(counts(&effects), (1, 0), "it writes while the other one serves");
        let suspension = Suspension { worker: "one".to_owned(), from_ms: 0, to_ms: 0 };
        effects.suspensions.push(suspension);
        assert_eq!(counts(&effects), (0, 1), "a command that was resumed");
        effects.lines.push(line("f", "one", 2_001_000_000));
        effects.lines.push(line("e", "two", 150));
        assert_eq!(counts(&effects), (1, 1), "a command of the other worker");
        effects.lines.push(line("g", "three", 250));
        assert_eq!(counts(&effects), (2, 1), "a worker that never served");
    }

    #[test]
    fn histories_are_read_from_lines() {
        let text = r#"{"id":"a","start":1,"kind":"file-append","front":"x"}
{"id":"b","start":2,"kind":"memory-read","front":"x"}
{"id":"a","end":3,"outcome":"done","detail":"","audit":"1"}"#;
        let calls = call_history::parse(text).unwrap();
        assert_eq!(names(&calls, &effects(&["a"])), ["never ended", "not in the audit log"]);
        assert!(call_history::parse(r#"{"id":"a","end":3,"outcome":"done"}"#).is_err());
    }
}
