//! Directory walk by descriptors: multi-threaded, respects ignore files, never follows links.

mod folder_listing;
mod ignore_rules;
mod parent_rules;
#[cfg(test)]
mod tests;
mod walk_entry;
mod walk_workers;

pub use walk_entry::WalkEntry;

use super::{EntryKind, Fs, HardLinks, RootedPath};
use folder_listing::{FolderHandle, READ_BUFFER_BYTES};
use octo_model::ToolError;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use walk_entry::EntryLocation;
use walk_workers::{Enter, Queue};

/// More threads only contend with each other.
const MAX_THREADS: usize = 8;

/// Maximum number of unread directories that are listed.
const MAX_NAMED: usize = 20;

#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// Includes names that start with a dot. (`.git` itself is never entered unless `ignored` is set, too.)
    pub hidden: bool,
    /// Includes what `.gitignore`, `.ignore` and `.git/info/exclude` exclude.
    pub ignored: bool,
    /// Visits ignored entries, flagged as such, but does not enter them.
    pub tell_ignored: bool,
    /// 1 for the direct entries of the directory.
    pub max_depth: Option<usize>,
    /// 0 for automatic.
    pub threads: usize,
}

/// What to do after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Continue,
    /// Do not enter this directory.
    Skip,
    /// End the walk.
    Stop,
}

/// What a walk could not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// Number of directories that could not be read.
    pub unread: usize,
    /// Some of them, relative to the start of the walk, sorted.
    pub unread_paths: Vec<PathBuf>,
}

impl Walked {
    fn add(&mut self, path: &Path) {
        self.unread += 1;
        if self.unread_paths.len() < MAX_NAMED {
            self.unread_paths.push(path.to_owned());
        }
    }
}

type Visit<'a> = dyn Fn(&WalkEntry<'_>) -> Step + Sync + 'a;

/// A walk in progress.
struct Walk<'a> {
    options: &'a WalkOptions,
    visit: &'a Visit<'a>,
    hard_links: HardLinks,
    /// Path of the state directory beneath the root, which is always skipped.
    hub_data: Option<&'a [u8]>,
    start: Arc<FolderHandle>,
    /// Length of the start path beneath the root, with its slash.
    prefix: usize,
    threads: usize,
    queue: Mutex<Queue>,
    ready: Condvar,
    stop: AtomicBool,
    walked: Mutex<Walked>,
}

impl<M: 'static> Fs<M> {
    /// Calls `visit` for every entry beneath a directory, from several threads, in unspecified order. The path may
    /// also be a file, which is then the only entry.
    pub fn walk(
        &self,
        place: &RootedPath,
        options: &WalkOptions,
        visit: &(dyn Fn(&WalkEntry<'_>) -> Step + Sync),
    ) -> Result<Walked, ToolError> {
        let hard_links = self.workspace().hard_links();
        let kind = place.find()?.fingerprint.kind();
        if kind == EntryKind::Other {
            // Returns the error for a pipe or device.
            self.open_file(place)?;
        }
        if kind != EntryKind::Folder {
            let (_, real) = place.find_real()?;
            self.workspace().check_readable(&real, &place.display())?;
            let at = EntryLocation::Start(place);
            visit(&WalkEntry { path: Path::new(""), kind, depth: 0, ignored: false, at, hard_links });
            return Ok(Walked::default());
        }
        if options.max_depth == Some(0) {
            return Ok(Walked::default());
        }
        let folder = self.open_folder(place)?;
        let real = Some(&folder.real.relative).filter(|real| real.as_path() != Path::new("."));
        let real = real.map(|real| real.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        let fd = folder.fd().try_clone_to_owned().map_err(ToolError::internal)?;
        let start = FolderHandle::new(fd, &Arc::new(AtomicUsize::new(0)));
        let rules = if options.ignored { None } else { parent_rules::rules_above(place.root.fd(), &real) };
        let own = self.workspace().protected().hub_data_within(&place.root);
        let walk = Walk {
            options,
            visit,
            hard_links,
            hub_data: own.map(|own| own.as_os_str().as_bytes()),
            start: Arc::clone(&start),
            prefix: if real.is_empty() { 0 } else { real.len() + 1 },
            threads: threads(options.threads),
            queue: Mutex::default(),
            ready: Condvar::new(),
            stop: AtomicBool::new(false),
            walked: Mutex::default(),
        };
        let mut buffer = vec![MaybeUninit::uninit(); READ_BUFFER_BYTES];
        let first = Enter { parent: None, path: real, depth: 1, rules };
        walk.run(walk.contents(start, &first, &mut buffer));
        let mut walked = walk.walked.into_inner().unwrap_or_else(PoisonError::into_inner);
        walked.unread_paths.sort();
        Ok(walked)
    }
}

fn threads(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS),
        some => some.min(MAX_THREADS),
    }
}
