//! Last lines of a program on standard error, across restarts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAX_LINES: usize = 200;
const MAX_BYTES: usize = 64 << 10;
/// Maximum lines of standard error in an error message.
const EXCERPT_LINES: usize = 5;
const EXCERPT_CHARS: usize = 400;
/// Shorter values are not redacted: they may be ordinary words.
const MIN_SECRET_LEN: usize = 6;

#[derive(Default)]
pub(crate) struct StderrLog(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines since the last start.
    lines_since_start: usize,
    /// Variables of the program; their values are redacted.
    secret_env: BTreeMap<String, String>,
}

impl StderrLog {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program is (re)started with these variables.
    pub(crate) fn start_process(&self, env: &BTreeMap<String, String>) {
        let mut ring = self.ring();
        ring.lines_since_start = 0;
        ring.secret_env.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Stores a line and returns it redacted.
    pub(super) fn push(&self, line: &str) -> String {
        let mut ring = self.ring();
        let line = ring.redact(line);
        ring.bytes += line.len();
        ring.lines.push_back(line.clone());
        ring.lines_since_start = (ring.lines_since_start + 1).min(MAX_LINES);
        while ring.lines.len() > MAX_LINES || (ring.bytes > MAX_BYTES && ring.lines.len() > 1) {
            let gone = ring.lines.pop_front().map_or(0, |line| line.len());
            ring.bytes = ring.bytes.saturating_sub(gone);
        }
        line
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.ring().lines.iter().cloned().collect()
    }

    /// Last lines since the start: they often contain why a program exited.
    pub(crate) fn excerpt(&self) -> Option<String> {
        let ring = self.ring();
        let count = ring.lines_since_start.min(EXCERPT_LINES).min(ring.lines.len());
        let last: Vec<&str> = ring.lines.iter().skip(ring.lines.len() - count).map(String::as_str).collect();
        let last = last.join(" | ");
        let skip = last.chars().count().saturating_sub(EXCERPT_CHARS);
        let last: String = last.chars().skip(skip).collect();
        (!last.trim().is_empty()).then_some(last)
    }
}

impl Ring {
    fn redact(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (name, value) in self.secret_env.iter().filter(|(_, value)| value.len() >= MIN_SECRET_LEN) {
            if line.contains(value) {
                line = line.replace(value, &format!("${name}"));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_without_what_the_program_was_given() {
        let said = StderrLog::default();
        assert_eq!(said.excerpt(), None);
        said.start_process(&BTreeMap::from([
            ("KEY".into(), "c4nary-s3cret".into()),
            ("ON".into(), "1".into()),
        ]));
        for n in 0..1000 {
            said.push(&format!("line {n} with c4nary-s3cret"));
        }
        assert_eq!(said.lines().len(), MAX_LINES);
        let last = said.excerpt().unwrap();
        assert!(last.ends_with("line 999 with $KEY") && last.contains("line 995"), "{last}");
        assert!(!said.lines().concat().contains("c4nary"));
        said.start_process(&BTreeMap::new());
        assert_eq!(said.excerpt(), None);
        said.push("c4nary-s3cret again");
        assert_eq!(said.excerpt().as_deref(), Some("$KEY again"));
    }

    #[test]
    fn long_lines_push_out_more() {
        let said = StderrLog::default();
        for _ in 0..100 {
            said.push(&"x".repeat(2000));
        }
        assert!(said.lines().iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert_eq!(said.excerpt().unwrap().len(), EXCERPT_CHARS);
    }
}
