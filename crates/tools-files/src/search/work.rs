//! The search itself: ripgrep's engine over our walk.

use super::hit::Hit;
use super::lines::Lines;
use super::shelf::{BYTES, Shelf};
use super::{Output, Show, Wanted};
use crate::find::pace::Pace;
use crate::find::{told, unread};
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

/// After so many matches the search is given up: whoever asks for that much has asked the wrong question.
const TOO_MANY: u64 = 1_000_000;
/// The longest line that is searched.
const LONGEST_LINE: usize = 32 << 20;

/// A search under way.
struct Work<'a> {
    wanted: &'a Wanted,
    place: &'a RootedPath,
    pace: Pace<'a>,
    shelf: Mutex<Shelf>,
    /// Engines that no thread uses at the moment; each has buffers of its own.
    engines: Mutex<Vec<(Searcher, RegexMatcher)>>,
    gave_up: AtomicBool,
    /// Files that could not be searched.
    failed: AtomicUsize,
    /// The search began at a file, and that is binary.
    binary: AtomicBool,
}

pub fn search(
    wanted: &Wanted,
    place: &RootedPath,
    fs: &Fs<Read>,
    cx: &CallContext,
) -> Result<Output, ToolError> {
    let work = Work {
        wanted,
        place,
        pace: Pace::new(cx),
        shelf: Mutex::new(Shelf::new(wanted.most)),
        engines: Mutex::default(),
        gave_up: AtomicBool::new(false),
        failed: AtomicUsize::new(0),
        binary: AtomicBool::new(false),
    };
    let options = WalkOptions { hidden: wanted.hidden, ignored: wanted.ignored, ..WalkOptions::default() };
    let walked = fs.walk(place, &options, &|entry| work.visit(entry))?;
    work.pace.finish()?;
    let mut notes = unread(place, &walked);
    notes.extend(work.notes());
    let shelf = work.shelf.into_inner().unwrap_or_else(PoisonError::into_inner);
    let total_matches = shelf.total;
    let matches = shelf.into_hits(|path| told(place, path));
    let truncated = total_matches > matches.len() as u64;
    Ok(Output { matches, total_matches, truncated, total_is_exact: !work.gave_up.into_inner(), notes })
}

fn engine(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(LONGEST_LINE))
        .build()
}

impl Work<'_> {
    fn visit(&self, entry: &WalkEntry<'_>) -> Step {
        let glob = self.wanted.glob.as_ref();
        if entry.kind == EntryKind::Folder && glob.is_some_and(|glob| !glob.reaches(entry.path)) {
            return Step::Skip;
        }
        if entry.kind == EntryKind::File && glob.is_none_or(|glob| glob.matches(self.name(entry))) {
            self.look(entry);
        }
        if self.gave_up.load(Ordering::Relaxed) { Step::Stop } else { self.pace.step(entry) }
    }

    /// What the pattern for names is compared with.
    fn name<'e>(&'e self, entry: &'e WalkEntry<'_>) -> &'e Path {
        match entry.depth {
            0 => self.place.relative().file_name().map_or(entry.path, Path::new),
            _ => entry.path,
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, entry: &WalkEntry<'_>) {
        let Ok((file, _)) = entry.open() else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let free = self.engines.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (mut searcher, matcher) =
            free.unwrap_or_else(|| (engine(self.wanted.context), self.wanted.matcher.clone()));
        let room = if self.shelf().wants(entry.path) { self.wanted.most } else { 0 };
        let mut lines = Lines::new(&matcher, self.wanted.show, self.wanted.context, room, BYTES);
        let searched = searcher.search_reader(&matcher, Patient { file, pace: &self.pace }, &mut lines);
        let (hits, count, binary) = (std::mem::take(&mut lines.hits), lines.count, lines.binary);
        drop(lines);
        self.engines.lock().unwrap_or_else(PoisonError::into_inner).push((searcher, matcher));
        if binary {
            self.binary.store(entry.depth == 0, Ordering::Relaxed);
        } else if searched.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else if count > 0 {
            self.keep(entry.path, hits, count);
        }
    }

    fn keep(&self, path: &Path, hits: Vec<Hit>, count: u64) {
        let mut shelf = self.shelf();
        match self.wanted.show {
            Show::Lines => shelf.put(path, hits, count),
            Show::Files => shelf.put(path, vec![Hit::default()], 1),
            Show::Counts => shelf.put(path, vec![Hit { count: Some(count), ..Hit::default() }], 1),
        }
        if shelf.total > TOO_MANY {
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
        } else if self.shelf().total == 0 && !(self.wanted.hidden && self.wanted.ignored) {
            notes.push(
                "Ignored and hidden files were not searched; set ignored and hidden to do so.".to_owned(),
            );
        }
        notes
    }
}

/// A file that ends early when nobody waits for the answer any more.
struct Patient<'a> {
    file: File,
    pace: &'a Pace<'a>,
}

impl io::Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.pace.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}
