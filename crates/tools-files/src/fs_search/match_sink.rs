//! Search sink for one file: converts the searcher's lines to matches.

use super::Show;
use super::search_match::{SearchMatch, context_line};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::collections::VecDeque;
use std::io;

/// Collects the matches of one file. Beyond its limits it only counts.
pub struct MatchSink<'a> {
    matcher: &'a RegexMatcher,
    show: Show,
    context: usize,
    /// Remaining matches and bytes.
    max_matches: usize,
    remaining_bytes: usize,
    pub matches: Vec<SearchMatch>,
    /// Matching lines.
    pub count: u64,
    pub binary: bool,
    /// The preceding lines, with their numbers.
    recent: VecDeque<(u64, String)>,
}

impl<'a> MatchSink<'a> {
    pub fn new(matcher: &'a RegexMatcher, show: Show, context: usize, room: usize, bytes: usize) -> Self {
        let (hits, recent) = (Vec::new(), VecDeque::new());
        Self {
            matcher,
            show,
            context,
            max_matches: room,
            remaining_bytes: bytes,
            matches: hits,
            count: 0,
            binary: false,
            recent,
        }
    }

    fn has_room(&self) -> bool {
        self.show == Show::Lines && self.matches.len() < self.max_matches && self.remaining_bytes > 0
    }

    /// A line that may precede or follow a match.
    fn pass(&mut self, number: u64, line: &[u8]) {
        if self.context == 0 {
            return;
        }
        let reach = self.context as u64;
        let open = self.matches.iter_mut().rev().take(self.context);
        for hit in open.take_while(|hit| hit.line.is_some_and(|at| at + reach >= number)) {
            hit.after.push(context_line(line));
        }
        if self.has_room() {
            self.recent.push_back((number, context_line(line)));
            if self.recent.len() > self.context {
                self.recent.pop_front();
            }
        }
    }
}

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.count += 1;
        let (number, line) = (found.line_number().unwrap_or_default(), found.bytes());
        let hit = self.has_room().then(|| {
            let start = self.matcher.find(line).ok().flatten().map_or(0, |at| at.start());
            let mut hit = SearchMatch::new(number, line, start);
            let near = self.recent.iter().filter(|(at, _)| at + self.context as u64 >= number);
            hit.before = near.map(|(_, text)| text.clone()).collect();
            hit
        });
        self.pass(number, line);
        if let Some(hit) = hit {
            self.remaining_bytes = self.remaining_bytes.saturating_sub(hit.size());
            self.matches.push(hit);
        }
        Ok(self.show != Show::Files)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.pass(line.line_number().unwrap_or_default(), line.bytes());
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        self.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}
