//! What a program says on standard error: the last of it, over all its starts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MOST_LINES: usize = 200;
const MOST_BYTES: usize = 64 << 10;
/// So much of it goes with an error.
const LAST_LINES: usize = 5;
const LAST_CHARS: usize = 400;
/// Shorter values than this are words that may stand anywhere.
const SHORTEST_SECRET: usize = 6;

#[derive(Default)]
pub(crate) struct Said(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines since the program was started last.
    fresh: usize,
    /// Variables that the program was given; their values are not repeated.
    hidden: BTreeMap<String, String>,
}

impl Said {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program is started (anew) with these variables.
    pub(crate) fn begin(&self, env: &BTreeMap<String, String>) {
        let mut ring = self.ring();
        ring.fresh = 0;
        ring.hidden.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Keeps a line, and gives it as it may be shown.
    pub(super) fn hear(&self, line: &str) -> String {
        let mut ring = self.ring();
        let line = ring.clean(line);
        ring.bytes += line.len();
        ring.lines.push_back(line.clone());
        ring.fresh = (ring.fresh + 1).min(MOST_LINES);
        while ring.lines.len() > MOST_LINES || (ring.bytes > MOST_BYTES && ring.lines.len() > 1) {
            let gone = ring.lines.pop_front().map_or(0, |line| line.len());
            ring.bytes = ring.bytes.saturating_sub(gone);
        }
        line
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.ring().lines.iter().cloned().collect()
    }

    /// The last lines since the start: they often tell why a program ended.
    pub(crate) fn last(&self) -> Option<String> {
        let ring = self.ring();
        let count = ring.fresh.min(LAST_LINES).min(ring.lines.len());
        let last: Vec<&str> = ring.lines.iter().skip(ring.lines.len() - count).map(String::as_str).collect();
        let last = last.join(" | ");
        let skip = last.chars().count().saturating_sub(LAST_CHARS);
        let last: String = last.chars().skip(skip).collect();
        (!last.trim().is_empty()).then_some(last)
    }
}

impl Ring {
    fn clean(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (name, value) in self.hidden.iter().filter(|(_, value)| value.len() >= SHORTEST_SECRET) {
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
        let said = Said::default();
        assert_eq!(said.last(), None);
        said.begin(&BTreeMap::from([("KEY".into(), "c4nary-s3cret".into()), ("ON".into(), "1".into())]));
        for n in 0..1000 {
            said.hear(&format!("line {n} with c4nary-s3cret"));
        }
        assert_eq!(said.lines().len(), MOST_LINES);
        let last = said.last().unwrap();
        assert!(last.ends_with("line 999 with $KEY") && last.contains("line 995"), "{last}");
        assert!(!said.lines().concat().contains("c4nary"));
        said.begin(&BTreeMap::new());
        assert_eq!(said.last(), None);
        said.hear("c4nary-s3cret again");
        assert_eq!(said.last().as_deref(), Some("$KEY again"));
    }

    #[test]
    fn long_lines_push_out_more() {
        let said = Said::default();
        for _ in 0..100 {
            said.hear(&"x".repeat(2000));
        }
        assert!(said.lines().iter().map(String::len).sum::<usize>() <= MOST_BYTES);
        assert_eq!(said.last().unwrap().len(), LAST_CHARS);
    }
}
