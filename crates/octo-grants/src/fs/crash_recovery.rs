//! Cleanup after a killed process: rolls back incomplete changes and removes temporary files.

use super::intent_log::{INTENT_FILE_PREFIX, Intent, IntentPath};
use super::open_beneath::open_real;
use super::resolve::parent_of;
use super::root::Root;
use super::undo_log::UndoLog;
use super::{EntryKind, file_fingerprint, folder_tree, temp_names};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Recovers the intents of every process that is no longer alive.
pub(super) fn recover_all(own: &Path, roots: &[Arc<Root>], undos: &UndoLog) -> std::io::Result<()> {
    for entry in std::fs::read_dir(own)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(INTENT_FILE_PREFIX) {
            recover_log(&entry.path(), roots, undos)?;
        }
    }
    Ok(())
}

fn recover_log(path: &Path, roots: &[Arc<Root>], undos: &UndoLog) -> std::io::Result<()> {
    let mut file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let mut changes: BTreeMap<u64, Vec<Intent>> = BTreeMap::new();
    // An unterminated last line was incomplete when the process died, so the change that it records had not started.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        if let Some((tx, note)) = Intent::parse(line) {
            changes.entry(tx).or_default().push(note);
        }
    }
    let mut sweep = Recovery { roots, undos, unresolved: String::new() };
    for (tx, notes) in changes {
        sweep.recover_change(tx, &notes);
    }
    if sweep.unresolved.is_empty() {
        return std::fs::remove_file(path);
    }
    // Intents for roots that are not open stay for a later start with them; the others must not be processed again.
    let next = path.with_file_name("next");
    std::fs::write(&next, sweep.unresolved)?;
    std::fs::rename(&next, path)
}

struct Recovery<'a> {
    roots: &'a [Arc<Root>],
    undos: &'a UndoLog,
    unresolved: String,
}

impl Recovery<'_> {
    fn recover_change(&mut self, tx: u64, notes: &[Intent]) {
        let complete = notes.contains(&Intent::Done);
        let before = self.unresolved.len();
        if !complete {
            notes.iter().rev().for_each(|note| self.try_to(tx, note, Self::roll_back));
        }
        notes.iter().for_each(|note| self.try_to(tx, note, Self::remove_leftovers));
        if !complete {
            notes.iter().rev().for_each(|note| self.try_to(tx, note, Self::remove_made_folder));
        } else if self.unresolved.len() > before {
            self.unresolved.push_str(&Intent::Done.encode(tx));
        }
    }

    fn try_to(&mut self, tx: u64, note: &Intent, work: fn(&Self, &Intent) -> Result<(), Errno>) {
        match work(self, note) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) if errno == UNKNOWN_ROOT => {
                let line = note.encode(tx);
                if !self.unresolved.contains(&line) {
                    self.unresolved.push_str(&line);
                }
            }
            Err(errno) => {
                tracing::warn!(%errno, "could not clean up after an interrupted change")
            }
        }
    }

    /// Directory and name that an intent refers to.
    fn find<'n>(&self, at: &'n IntentPath) -> Result<(OwnedFd, &'n OsStr), Errno> {
        let root = self.roots.iter().find(|root| root.path == at.root).ok_or(UNKNOWN_ROOT)?;
        let leaf = at.path.file_name().ok_or(Errno::NOENT)?;
        open_real(root.fd(), parent_of(&at.path)).map(|folder| (folder, leaf))
    }

    fn roll_back(&self, note: &Intent) -> Result<(), Errno> {
        match note {
            Intent::Create { at, id } => {
                let (folder, leaf) = self.find(at)?;
                if has_id(&folder, leaf, id) { unlink(&folder, leaf) } else { Ok(()) }
            }
            Intent::Replace { at, temp, old, id } => {
                let (folder, leaf) = self.find(at)?;
                if !has_id(&folder, leaf, id) {
                    return Ok(());
                }
                let back: &OsString =
                    if file_fingerprint::of_entry(&folder, old).is_ok() { old } else { temp };
                if has_id(&folder, back, id) {
                    Ok(())
                } else {
                    rustix::fs::renameat(&folder, back, &folder, leaf)
                }
            }
            Intent::Remove { at, old } => {
                let (folder, leaf) = self.find(at)?;
                match temp_names::rename_new(&folder, old, &folder, leaf) {
                    Err(Errno::EXIST) => Ok(()),
                    other => other,
                }
            }
            Intent::Move { from, to, id } => {
                let (old, new) = (self.find(from)?, self.find(to)?);
                if !has_id(&new.0, new.1, id) {
                    return Ok(());
                }
                // Without `RENAME_NOREPLACE`, a file has both names for a moment.
                if has_id(&old.0, old.1, id) {
                    return unlink(&new.0, new.1);
                }
                temp_names::rename_new(&new.0, new.1, &old.0, old.1)
            }
            Intent::Temp(_) | Intent::Undo(_) | Intent::MadeFolder(_) | Intent::Done => Ok(()),
        }
    }

    fn remove_leftovers(&self, note: &Intent) -> Result<(), Errno> {
        match note {
            Intent::Temp(at) => {
                let (folder, leaf) = self.find(at)?;
                discard(&folder, leaf)
            }
            Intent::Replace { at, temp, old, .. } => {
                let (folder, _) = self.find(at)?;
                discard(&folder, temp).and_then(|()| discard(&folder, old))
            }
            Intent::Remove { at, old } => {
                let (folder, _) = self.find(at)?;
                discard(&folder, old)
            }
            Intent::Undo(name) => {
                self.undos.remove_incomplete(name);
                Ok(())
            }
            Intent::Create { .. } | Intent::MadeFolder(_) | Intent::Move { .. } | Intent::Done => Ok(()),
        }
    }

    fn remove_made_folder(&self, note: &Intent) -> Result<(), Errno> {
        let Intent::MadeFolder(at) = note else { return Ok(()) };
        let (folder, leaf) = self.find(at)?;
        match rustix::fs::unlinkat(&folder, leaf, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::EXIST) => Ok(()),
            other => other,
        }
    }
}

/// Denotes a root that is not open; no system call here returns it.
const UNKNOWN_ROOT: Errno = Errno::NODEV;

fn has_id(folder: &OwnedFd, name: &OsStr, id: &str) -> bool {
    file_fingerprint::of_entry(folder, name).is_ok_and(|seen| seen.persistent_id() == id)
}

fn unlink(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Removes a temporary entry with everything beneath it.
fn discard(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match file_fingerprint::of_entry(folder, name) {
        _ if !temp_names::is_temp_name(name) => Ok(()),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
        Ok(seen) if seen.kind() == EntryKind::Folder => folder_tree::remove_forced(folder, name),
        Ok(_) => unlink(folder, name),
    }
}
