//! Cleans up what a process that was killed has left: takes back half-done changes, removes our own names.

use super::intents::{At, Note, PREFIX};
use super::resolve::{open_real, parent_of};
use super::root::Root;
use super::undo::Undos;
use super::{EntryKind, names, seen, tree};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Sweeps after every process that does not live any more.
pub(super) fn all(own: &Path, roots: &[Arc<Root>], undos: &Undos) -> std::io::Result<()> {
    for entry in std::fs::read_dir(own)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            one(&entry.path(), roots, undos)?;
        }
    }
    Ok(())
}

fn one(path: &Path, roots: &[Arc<Root>], undos: &Undos) -> std::io::Result<()> {
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
    let mut changes: BTreeMap<u64, Vec<Note>> = BTreeMap::new();
    // A last line without an end was not whole when the process died, so what it announces was not begun.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        if let Some((tx, note)) = Note::parse(line) {
            changes.entry(tx).or_default().push(note);
        }
    }
    let mut sweep = Sweep { roots, undos, left: String::new() };
    for (tx, notes) in changes {
        sweep.change(tx, &notes);
    }
    if sweep.left.is_empty() {
        return std::fs::remove_file(path);
    }
    // Notes about roots that are not open now wait for a start with them; those that were seen to must not come again.
    let next = path.with_file_name("next");
    std::fs::write(&next, sweep.left)?;
    std::fs::rename(&next, path)
}

struct Sweep<'a> {
    roots: &'a [Arc<Root>],
    undos: &'a Undos,
    left: String,
}

impl Sweep<'_> {
    fn change(&mut self, tx: u64, notes: &[Note]) {
        let complete = notes.contains(&Note::Done);
        let before = self.left.len();
        if !complete {
            notes.iter().rev().for_each(|note| self.try_to(tx, note, Self::take_back));
        }
        notes.iter().for_each(|note| self.try_to(tx, note, Self::clear));
        if !complete {
            notes.iter().rev().for_each(|note| self.try_to(tx, note, Self::unmake));
        } else if self.left.len() > before {
            self.left.push_str(&Note::Done.line(tx));
        }
    }

    fn try_to(&mut self, tx: u64, note: &Note, work: fn(&Self, &Note) -> Result<(), Errno>) {
        match work(self, note) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) if errno == UNKNOWN => {
                let line = note.line(tx);
                if !self.left.contains(&line) {
                    self.left.push_str(&line);
                }
            }
            Err(errno) => {
                tracing::warn!(%errno, "something of an interrupted change could not be cleaned up")
            }
        }
    }

    /// The folder and the name of what a note is about.
    fn find<'n>(&self, at: &'n At) -> Result<(OwnedFd, &'n OsStr), Errno> {
        let root = self.roots.iter().find(|root| root.path == at.root).ok_or(UNKNOWN)?;
        let leaf = at.path.file_name().ok_or(Errno::NOENT)?;
        open_real(root, parent_of(&at.path)).map(|folder| (folder, leaf))
    }

    fn take_back(&self, note: &Note) -> Result<(), Errno> {
        match note {
            Note::Create { at, id } => {
                let (folder, leaf) = self.find(at)?;
                if has_id(&folder, leaf, id) { unlink(&folder, leaf) } else { Ok(()) }
            }
            Note::Replace { at, temp, old, id } => {
                let (folder, leaf) = self.find(at)?;
                if !has_id(&folder, leaf, id) {
                    return Ok(());
                }
                let back: &OsString = if seen::entry(&folder, old).is_ok() { old } else { temp };
                if has_id(&folder, back, id) {
                    Ok(())
                } else {
                    rustix::fs::renameat(&folder, back, &folder, leaf)
                }
            }
            Note::Remove { at, old } => {
                let (folder, leaf) = self.find(at)?;
                match names::rename_new(&folder, old, &folder, leaf) {
                    Err(Errno::EXIST) => Ok(()),
                    other => other,
                }
            }
            Note::Move { from, to, id } => {
                let (old, new) = (self.find(from)?, self.find(to)?);
                if !has_id(&new.0, new.1, id) {
                    return Ok(());
                }
                // Without a kind of renaming that refuses to replace, a file has both names for a moment.
                if has_id(&old.0, old.1, id) {
                    return unlink(&new.0, new.1);
                }
                names::rename_new(&new.0, new.1, &old.0, old.1)
            }
            Note::Temp(_) | Note::Undo(_) | Note::Made(_) | Note::Done => Ok(()),
        }
    }

    fn clear(&self, note: &Note) -> Result<(), Errno> {
        match note {
            Note::Temp(at) => {
                let (folder, leaf) = self.find(at)?;
                discard(&folder, leaf)
            }
            Note::Replace { at, temp, old, .. } => {
                let (folder, _) = self.find(at)?;
                discard(&folder, temp).and_then(|()| discard(&folder, old))
            }
            Note::Remove { at, old } => {
                let (folder, _) = self.find(at)?;
                discard(&folder, old)
            }
            Note::Undo(name) => {
                self.undos.forget(name);
                Ok(())
            }
            Note::Create { .. } | Note::Made(_) | Note::Move { .. } | Note::Done => Ok(()),
        }
    }

    fn unmake(&self, note: &Note) -> Result<(), Errno> {
        let Note::Made(at) = note else { return Ok(()) };
        let (folder, leaf) = self.find(at)?;
        match rustix::fs::unlinkat(&folder, leaf, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::EXIST) => Ok(()),
            other => other,
        }
    }
}

/// Stands for a root that is not open; no call here gives it.
const UNKNOWN: Errno = Errno::NODEV;

fn has_id(folder: &OwnedFd, name: &OsStr, id: &str) -> bool {
    seen::entry(folder, name).is_ok_and(|seen| seen.id() == id)
}

fn unlink(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Removes a name of ours, with everything in it.
fn discard(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match seen::entry(folder, name) {
        _ if !names::ours(name) => Ok(()),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
        Ok(seen) if seen.kind() == EntryKind::Folder => tree::clear(folder, name),
        Ok(_) => unlink(folder, name),
    }
}
