//! Worker threads of a walk and their shared queue.

use super::folder_listing::{FolderHandle, FolderListing, READ_BUFFER_BYTES, kind_of};
use super::ignore_rules::{IgnoreMatch, IgnoreRules};
use super::walk_entry::EntryLocation;
use super::{Step, Walk, WalkEntry};
use crate::fs::{EntryKind, temp_names};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::Scope;

/// Directories with more entries are split among threads.
const ENTRIES_PER_JOB: usize = 256;

/// Pending jobs. Last in, first out, so that few directories are open at a time.
#[derive(Default)]
pub(super) struct Queue {
    jobs: Vec<Job>,
    busy: usize,
    threads: usize,
}

pub(super) enum Job {
    Enter(Enter),
    Visit(Arc<Contents>, Range<usize>),
}

/// A directory to be read.
pub(super) struct Enter {
    /// Absent if too many directories are open.
    pub parent: Option<Arc<FolderHandle>>,
    /// Relative to the root.
    pub path: Vec<u8>,
    /// Depth of its entries.
    pub depth: usize,
    pub rules: Option<Arc<IgnoreRules>>,
}

/// A directory that was read.
pub(super) struct Contents {
    handle: Arc<FolderHandle>,
    listing: FolderListing,
    path: Vec<u8>,
    depth: usize,
    rules: Option<Arc<IgnoreRules>>,
}

/// Buffers that a thread reuses between jobs.
struct WorkerBuffers {
    buffer: Vec<MaybeUninit<u8>>,
    path: Vec<u8>,
    new_jobs: Vec<Job>,
}

/// Marks a thread as idle after its job, also if the job panics.
struct BusyGuard<'w, 'a>(&'w Walk<'a>);

impl Drop for BusyGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
        }
        let mut queue = self.0.queue();
        queue.busy -= 1;
        if queue.busy == 0 || self.0.stopped() {
            self.0.ready.notify_all();
        }
    }
}

impl Walk<'_> {
    /// Walks everything beneath the start. Starts with one thread; more are spawned when there is work to share.
    pub(super) fn run(&self, first: Contents) {
        let all = 0..first.listing.len();
        {
            let mut queue = self.queue();
            queue.threads = 1;
            queue.jobs.push(Job::Visit(Arc::new(first), all));
        }
        std::thread::scope(|scope| self.run_worker(scope));
    }

    fn run_worker<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut desk = WorkerBuffers {
            buffer: vec![MaybeUninit::uninit(); READ_BUFFER_BYTES],
            path: Vec::new(),
            new_jobs: Vec::new(),
        };
        while let Some(job) = self.next() {
            let _busy = BusyGuard(self);
            match job {
                Job::Enter(enter) => {
                    if let Some(contents) = self.read(&enter, &mut desk.buffer) {
                        let all = 0..contents.listing.len();
                        self.visit_all(&Arc::new(contents), all, &mut desk);
                    }
                }
                Job::Visit(contents, range) => self.visit_all(&contents, range, &mut desk),
            }
            self.submit_jobs(scope, &mut desk.new_jobs);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits for the next job; `None` when all are done.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if self.stopped() {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn submit_jobs<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, fresh: &mut Vec<Job>) {
        if fresh.is_empty() {
            return;
        }
        let more = fresh.len() > 1;
        let hire = {
            let mut queue = self.queue();
            queue.jobs.append(fresh);
            let hire = queue.jobs.len() > 1 && queue.threads < self.threads;
            queue.threads += usize::from(hire);
            hire
        };
        if hire {
            // Without another thread the walk is only slower.
            let _ = std::thread::Builder::new()
                .name("walk".to_owned())
                .spawn_scoped(scope, || self.run_worker(scope));
        }
        if more {
            self.ready.notify_all();
        } else {
            self.ready.notify_one();
        }
    }

    fn read(&self, enter: &Enter, buffer: &mut [MaybeUninit<u8>]) -> Option<Contents> {
        let opened = match &enter.parent {
            Some(parent) => parent.enter(enter.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()),
            None => self.start.descend(enter.path.get(self.prefix..).unwrap_or_default()),
        };
        match opened {
            Ok(handle) => Some(self.contents(handle, enter, buffer)),
            Err(errno) => {
                self.record_unread(&enter.path, errno);
                None
            }
        }
    }

    pub(super) fn contents(
        &self,
        handle: Arc<FolderHandle>,
        enter: &Enter,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Contents {
        let (listing, read) = FolderListing::read(handle.as_fd(), buffer);
        if let Err(errno) = read {
            self.record_unread(&enter.path, errno);
        }
        let mut path = enter.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        let rules = if self.options.ignored {
            None
        } else {
            IgnoreRules::within(enter.rules.as_ref(), handle.as_fd(), listing.ignore_files, path.len())
        };
        Contents { handle, listing, path, depth: enter.depth, rules }
    }

    /// Records a directory that could not be read. One that was removed or replaced by a link in the meantime is no
    /// longer part of the tree.
    fn record_unread(&self, path: &[u8], errno: Errno) {
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
            let path = Path::new(OsStr::from_bytes(path.get(self.prefix..).unwrap_or_default()));
            self.walked.lock().unwrap_or_else(PoisonError::into_inner).add(path);
        }
    }

    fn visit_all(&self, contents: &Arc<Contents>, range: Range<usize>, desk: &mut WorkerBuffers) {
        let mine = range.start..range.end.min(range.start + ENTRIES_PER_JOB);
        let mut from = mine.end;
        while from < range.end {
            let to = range.end.min(from + ENTRIES_PER_JOB);
            desk.new_jobs.push(Job::Visit(Arc::clone(contents), from..to));
            from = to;
        }
        desk.path.clear();
        desk.path.extend_from_slice(&contents.path);
        for index in mine {
            if self.stopped() {
                return;
            }
            self.visit_one(contents, index, desk);
        }
    }

    fn visit_one(&self, contents: &Contents, index: usize, desk: &mut WorkerBuffers) {
        let Some((name, listed)) = contents.listing.get(index) else { return };
        let Some(kind) = kind_of(contents.handle.as_fd(), name, listed) else { return };
        desk.path.truncate(contents.path.len());
        desk.path.extend_from_slice(name.to_bytes());
        let Some(ignored) = self.visit_decision(contents, name.to_bytes(), &desk.path, kind) else { return };
        let entry = WalkEntry {
            path: Path::new(OsStr::from_bytes(desk.path.get(self.prefix..).unwrap_or_default())),
            kind,
            depth: contents.depth,
            ignored,
            at: EntryLocation::Child(contents.handle.as_fd(), name),
            hard_links: self.hard_links,
        };
        match (self.visit)(&entry) {
            Step::Stop => self.stop.store(true, Ordering::Relaxed),
            Step::Skip => {}
            Step::Continue => {
                let deeper = self.options.max_depth.is_none_or(|max| contents.depth < max);
                if kind == EntryKind::Folder && deeper && !ignored {
                    desk.new_jobs.push(Job::Enter(Enter {
                        parent: contents.handle.has_room().then(|| Arc::clone(&contents.handle)),
                        path: desk.path.clone(),
                        depth: contents.depth + 1,
                        rules: contents.rules.clone(),
                    }));
                }
            }
        }
    }

    /// Whether an entry is visited, and if so, whether it is ignored.
    fn visit_decision(&self, contents: &Contents, name: &[u8], path: &[u8], kind: EntryKind) -> Option<bool> {
        if temp_names::is_temp_name(OsStr::from_bytes(name)) || self.hub_data == Some(path) {
            return None;
        }
        let verdict = match &contents.rules {
            Some(rules) => rules.match_path(path, kind == EntryKind::Folder),
            None => IgnoreMatch::NoMatch,
        };
        if !self.options.hidden && name.starts_with(b".") && verdict != IgnoreMatch::Whitelisted {
            return None;
        }
        let ignored = verdict == IgnoreMatch::Ignored || (name == b".git" && !self.options.ignored);
        (!ignored || self.options.tell_ignored).then_some(ignored)
    }
}
