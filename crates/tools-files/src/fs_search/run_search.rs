//! Search: ripgrep's engine over the directory walk.

use super::match_collector::{MAX_COLLECTED_BYTES, MatchCollector};
use super::match_sink::MatchSink;
use super::search_match::SearchMatch;
use super::{Output, SearchQuery, Show};
use crate::file_walk::walk_progress::WalkProgress;
use crate::file_walk::{display_path, unread_notes};
use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use octo_toolkit::fs::{EntryKind, Read, Step, WalkEntry, WalkOptions};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The search stops after this many matches: the query is too broad.
const MAX_COUNTED_MATCHES: u64 = 1_000_000;
/// Maximum length of a searched line.
const MAX_LINE_BYTES: usize = 32 << 20;

/// A search in progress.
struct SearchRun<'a> {
    query: &'a SearchQuery,
    place: &'a RootedPath,
    progress: WalkProgress<'a>,
    collector: Mutex<MatchCollector>,
    /// Idle searchers; each has its own buffers.
    idle_searchers: Mutex<Vec<(Searcher, RegexMatcher)>>,
    gave_up: AtomicBool,
    /// Files that could not be searched.
    failed: AtomicUsize,
    /// The search started at a file that is binary.
    binary: AtomicBool,
}

pub fn search(
    wanted: &SearchQuery,
    place: &RootedPath,
    fs: &Fs<Read>,
    cx: &CallContext,
) -> Result<Output, ToolError> {
    let work = SearchRun {
        query: wanted,
        place,
        progress: WalkProgress::new(cx),
        collector: Mutex::new(MatchCollector::new(wanted.max_matches)),
        idle_searchers: Mutex::default(),
        gave_up: AtomicBool::new(false),
        failed: AtomicUsize::new(0),
        binary: AtomicBool::new(false),
    };
    let options = WalkOptions { hidden: wanted.hidden, ignored: wanted.ignored, ..WalkOptions::default() };
    let walked = fs.walk(place, &options, &|entry| work.visit(entry))?;
    work.progress.finish()?;
    let mut notes = unread_notes(place, &walked);
    notes.extend(work.notes());
    let shelf = work.collector.into_inner().unwrap_or_else(PoisonError::into_inner);
    let total_matches = shelf.total;
    let matches = shelf.into_matches(|path| display_path(place, path));
    let truncated = total_matches > matches.len() as u64;
    Ok(Output { matches, total_matches, truncated, total_is_exact: !work.gave_up.into_inner(), notes })
}

fn engine(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MAX_LINE_BYTES))
        .build()
}

impl SearchRun<'_> {
    fn visit(&self, entry: &WalkEntry<'_>) -> Step {
        let glob = self.query.glob.as_ref();
        if entry.kind == EntryKind::Folder && glob.is_some_and(|glob| !glob.may_match_below(entry.path)) {
            return Step::Skip;
        }
        if entry.kind == EntryKind::File && glob.is_none_or(|glob| glob.matches(self.name(entry))) {
            self.search_file(entry);
        }
        if self.gave_up.load(Ordering::Relaxed) { Step::Stop } else { self.progress.step(entry) }
    }

    /// Path that the glob is matched against.
    fn name<'e>(&'e self, entry: &'e WalkEntry<'_>) -> &'e Path {
        match entry.depth {
            0 => self.place.relative().file_name().map_or(entry.path, Path::new),
            _ => entry.path,
        }
    }

    fn collector(&self) -> MutexGuard<'_, MatchCollector> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn search_file(&self, entry: &WalkEntry<'_>) {
        let Ok((file, _)) = entry.open() else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let free = self.idle_searchers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (mut searcher, matcher) =
            free.unwrap_or_else(|| (engine(self.query.context), self.query.matcher.clone()));
        let room = if self.collector().accepts(entry.path) { self.query.max_matches } else { 0 };
        let mut lines =
            MatchSink::new(&matcher, self.query.show, self.query.context, room, MAX_COLLECTED_BYTES);
        let searched =
            searcher.search_reader(&matcher, CancellableFile { file, progress: &self.progress }, &mut lines);
        let (hits, count, binary) = (std::mem::take(&mut lines.matches), lines.count, lines.binary);
        drop(lines);
        self.idle_searchers.lock().unwrap_or_else(PoisonError::into_inner).push((searcher, matcher));
        if binary {
            self.binary.store(entry.depth == 0, Ordering::Relaxed);
        } else if searched.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else if count > 0 {
            self.collect(entry.path, hits, count);
        }
    }

    fn collect(&self, path: &Path, hits: Vec<SearchMatch>, count: u64) {
        let mut shelf = self.collector();
        match self.query.show {
            Show::Lines => shelf.add(path, hits, count),
            Show::Files => shelf.add(path, vec![SearchMatch::default()], 1),
            Show::Counts => {
                shelf.add(path, vec![SearchMatch { count: Some(count), ..SearchMatch::default() }], 1)
            }
        }
        if shelf.total > MAX_COUNTED_MATCHES {
            self.gave_up.store(true, Ordering::Relaxed);
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.failed.load(Ordering::Relaxed) {
            0 => {}
            1 => notes.push("1 file could not be searched.".to_owned()),
            some => notes.push(format!("{some} files could not be searched.")),
        }
        if self.binary.load(Ordering::Relaxed) {
            notes.push("The file is binary and was not searched.".to_owned());
        } else if self.collector().total == 0 && !(self.query.hidden && self.query.ignored) {
            notes.push(
                "Ignored and hidden files were skipped; set ignored and hidden to include them.".to_owned(),
            );
        }
        notes
    }
}

/// A file that ends early if the call is cancelled.
struct CancellableFile<'a> {
    file: File,
    progress: &'a WalkProgress<'a>,
}

impl io::Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_stopped() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}
