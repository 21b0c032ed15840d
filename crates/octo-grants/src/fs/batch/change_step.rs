//! One step of a batch: inspected, staged beside the file, committed, and rolled back if another step fails.

use crate::fs::batch::{Batch, ChangeAction, ChangeOrder, Content};
use crate::fs::file_fingerprint::{self, FileFingerprint};
use crate::fs::hash::{HashingWriter, check_hash, copy_all};
use crate::fs::intent_log::{Intent, IntentPath};
use crate::fs::open_beneath::{open_entry, reopen};
use crate::fs::resolve::{changed_while_reading, errno_error, io_error, parent_of};
use crate::fs::undo_log::{MAX_UNDO_FILE_BYTES, UndoEntry, UndoKey, UndoLink};
use crate::fs::workspace::FsState;
use crate::fs::{EntryKind, WriteResult, temp_names};
use octo_model::{Kind, ToolError};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;

pub(in crate::fs) struct ChangeStep<'a> {
    pub order: ChangeOrder<'a>,
    before: Option<FileFingerprint>,
    /// Temporary names for the new file and for the old one.
    temp_name: OsString,
    backup_name: OsString,
    /// The new file.
    new_file: Option<FileFingerprint>,
    /// Hash of the new content, or of the old content if there is no new one.
    hash: String,
    undo_entry: Option<UndoEntry>,
    /// Name of the old file until the end of the batch.
    backup: Option<OsString>,
    done: bool,
}

impl<'a> ChangeStep<'a> {
    pub fn new(order: ChangeOrder<'a>) -> Result<Self, ToolError> {
        Ok(Self {
            order,
            before: None,
            temp_name: temp_names::new_temp_name().map_err(ToolError::internal)?,
            backup_name: temp_names::new_backup_name().map_err(ToolError::internal)?,
            new_file: None,
            hash: String::new(),
            undo_entry: None,
            backup: None,
            done: false,
        })
    }

    fn errno_error(&self, errno: Errno) -> ToolError {
        errno_error(&self.order.spot.place, errno)
    }

    /// Checks the current state against the caller's expectation, and stores it for undo.
    pub fn inspect(&mut self, batch: &Batch<'_>) -> Result<(), ToolError> {
        let spot = &self.order.spot;
        self.before = spot.stat()?;
        match (&self.order.act, &self.before) {
            (ChangeAction::Put { if_hash: Some(wanted), .. }, None) => {
                check_hash(&spot.place.display(), wanted, None)?
            }
            (ChangeAction::Put { .. }, None) => {}
            (ChangeAction::Put { create_new: true, .. }, Some(_)) => {
                return Err(self.errno_error(Errno::EXIST));
            }
            (ChangeAction::Put { .. } | ChangeAction::Remove { .. }, Some(seen)) => {
                batch.workspace.check_file(&spot.place, seen)?
            }
            (ChangeAction::Remove { .. } | ChangeAction::Move { .. }, None) => {
                return Err(self.errno_error(Errno::NOENT));
            }
            (ChangeAction::Move { to }, Some(_)) if to.stat()?.is_some() => {
                return Err(errno_error(&to.place, Errno::EXIST));
            }
            (ChangeAction::Move { .. }, Some(_)) => {}
        }
        self.read_before(batch)
    }

    /// Hashes the old content and copies it, if needed.
    fn read_before(&mut self, batch: &Batch<'_>) -> Result<(), ToolError> {
        let (wanted, needed) = match &self.order.act {
            // Content that is not stored need not be read, however large it is.
            ChangeAction::Put { if_hash, .. } | ChangeAction::Remove { if_hash } => {
                (*if_hash, if_hash.is_some())
            }
            ChangeAction::Move { .. } => (None, true),
        };
        let spot = &self.order.spot;
        let undos = batch.workspace.fs_state().map(|state| &state.undos);
        let small = self.before.is_none_or(|before| before.size() <= MAX_UNDO_FILE_BYTES);
        let keeps = batch.keeps_undo && small && !matches!(self.order.act, ChangeAction::Move { .. });
        self.undo_entry = match undos.filter(|_| keeps) {
            Some(undos) => {
                let (root, by) = (&spot.place.root().path, batch.workspace.changed_by());
                Some(undos.begin(&UndoKey { root, real: &spot.real_path, changed_by: by }, &batch.intents)?)
            }
            None => None,
        };
        let Some(before) = self.before.filter(|before| before.kind() == EntryKind::File) else {
            return Ok(());
        };
        if !needed && self.undo_entry.is_none() {
            return Ok(());
        }
        let file = match self.open_before(&before) {
            Ok(file) => file,
            // A file that is writable but not readable can be replaced, without undo.
            Err(error) if error.kind == Kind::Denied && wanted.is_none() => {
                self.discard_undo(batch.workspace.fs_state());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let spot = &self.order.spot;
        let failed = |error| io_error(&spot.place, error);
        let hash = match &mut self.undo_entry {
            Some(kept) => {
                let mut to = HashingWriter::new(&mut kept.file);
                copy_all(file, &mut to).map_err(failed)?;
                to.finish()
            }
            None => {
                let mut to = HashingWriter::new(std::io::sink());
                copy_all(file, &mut to).map_err(failed)?;
                to.finish()
            }
        };
        if let Some(wanted) = wanted {
            check_hash(&spot.place.display(), wanted, Some(&hash))?;
        }
        self.hash = hash;
        Ok(())
    }

    /// Opens the old file if it is still the one that was inspected.
    fn open_before(&self, before: &FileFingerprint) -> Result<File, ToolError> {
        let spot = &self.order.spot;
        let found =
            open_entry(&spot.folder, &spot.name, OFlags::PATH).map_err(|errno| self.errno_error(errno))?;
        if !file_fingerprint::of_fd(&found).is_ok_and(|now| now.is_unchanged(before)) {
            return Err(changed_while_reading(&spot.place));
        }
        reopen(&found, OFlags::empty()).map(File::from).map_err(|errno| self.errno_error(errno))
    }

    /// Writes the new content to a temporary file beside the old one.
    pub fn stage(&mut self, batch: &Batch<'_>) -> Result<(), ToolError> {
        let spot = &self.order.spot;
        let beside = |name: &OsString| IntentPath {
            root: spot.place.root().path.clone(),
            path: parent_of(&spot.real_path).join(name),
        };
        if !matches!(self.order.act, ChangeAction::Move { .. }) && self.before.is_some() {
            batch.intents.write(&Intent::Temp(beside(&self.backup_name)))?;
        }
        let ChangeAction::Put { content, mode, .. } = &self.order.act else { return Ok(()) };
        batch.intents.write(&Intent::Temp(beside(&self.temp_name)))?;
        // A new file gets the default mode of the process; one with an explicit mode is private until it is set.
        let private = mode.is_some() || self.before.is_some();
        let first = Mode::from_raw_mode(if private { 0o600 } else { 0o666 });
        let mut file = temp_names::create(&spot.folder, &self.temp_name, first)
            .map_err(|errno| self.errno_error(errno))?;
        let failed = |error| io_error(&spot.place, error);
        let mut to = HashingWriter::new(&mut file);
        match content {
            Content::Bytes(bytes) => to.write_all(bytes).map_err(failed)?,
            Content::File(from) => {
                copy_all(*from, &mut to).map_err(failed)?;
            }
            Content::Append(bytes) => {
                if let Some(before) = &self.before {
                    copy_all(self.open_before(before)?, &mut to).map_err(failed)?;
                }
                to.write_all(bytes).map_err(failed)?;
            }
        }
        self.hash = to.finish();
        copy_ownership(&file, self.before.as_ref(), *mode).map_err(|errno| self.errno_error(errno))?;
        file.sync_all().map_err(failed)?;
        self.new_file = Some(file_fingerprint::of_fd(&file).map_err(|errno| self.errno_error(errno))?);
        Ok(())
    }

    /// Intent record for recovery, should this process die before the batch is complete.
    pub fn intent(&self) -> Intent {
        let at = Batch::intent_path(&self.order.spot);
        let id = |seen: &Option<FileFingerprint>| seen.map(|seen| seen.persistent_id()).unwrap_or_default();
        match &self.order.act {
            ChangeAction::Put { .. } if self.before.is_none() => {
                Intent::Create { at, id: id(&self.new_file) }
            }
            ChangeAction::Put { .. } => Intent::Replace {
                at,
                temp: self.temp_name.clone(),
                old: self.backup_name.clone(),
                id: id(&self.new_file),
            },
            ChangeAction::Remove { .. } => Intent::Remove { at, old: self.backup_name.clone() },
            ChangeAction::Move { to } => {
                Intent::Move { from: at, to: Batch::intent_path(to), id: id(&self.before) }
            }
        }
    }

    /// Changes the name, unless it was changed concurrently.
    pub fn commit(&mut self) -> Result<(), ToolError> {
        let spot = &self.order.spot;
        let (folder, leaf) = (&spot.folder, spot.name.as_os_str());
        let same = |now: &FileFingerprint, before: &FileFingerprint| match self.order.act {
            // Other steps of the batch may have changed the contents of a renamed directory.
            ChangeAction::Move { .. } => now.inode() == before.inode(),
            ChangeAction::Put { .. } | ChangeAction::Remove { .. } => now.is_unchanged(before),
        };
        if let Some(before) = &self.before
            && !spot.stat()?.is_some_and(|now| same(&now, before))
        {
            return Err(changed_while_reading(&spot.place));
        }
        match (&self.order.act, &self.before) {
            (ChangeAction::Put { create_new, .. }, None) => {
                temp_names::rename_new(folder, &self.temp_name, folder, leaf).map_err(
                    |errno| match errno {
                        Errno::EXIST if !create_new => changed_while_reading(&spot.place),
                        errno => self.errno_error(errno),
                    },
                )?;
            }
            (ChangeAction::Put { .. }, Some(before)) => {
                let aside = temp_names::exchange(folder, &self.temp_name, leaf, &self.backup_name)
                    .map_err(|e| self.errno_error(e))?;
                // The replaced file must be the one that was read; it may have changed between the check and the
                // swap.
                let same = aside != self.temp_name
                    || file_fingerprint::of_entry(folder, aside).is_ok_and(|now| now.is_unchanged(before));
                if !same {
                    let error = changed_while_reading(&spot.place);
                    if temp_names::exchange(folder, aside, leaf, &self.backup_name).is_err() {
                        self.keep_backups();
                    }
                    return Err(error);
                }
                self.backup = Some(aside.to_owned());
            }
            (ChangeAction::Remove { .. }, Some(before)) => {
                temp_names::rename_new(folder, leaf, folder, &self.backup_name)
                    .map_err(|errno| self.errno_error(errno))?;
                if !file_fingerprint::of_entry(folder, &self.backup_name)
                    .is_ok_and(|now| now.is_unchanged(before))
                {
                    let error = changed_while_reading(&spot.place);
                    if temp_names::rename_new(folder, &self.backup_name, folder, leaf).is_err() {
                        self.keep_backups();
                    }
                    return Err(error);
                }
                self.backup = Some(self.backup_name.clone());
            }
            (ChangeAction::Move { to }, Some(_)) => {
                temp_names::rename_new(folder, leaf, &to.folder, &to.name)
                    .map_err(|errno| cross_device_error(to, errno))?;
            }
            (ChangeAction::Remove { .. } | ChangeAction::Move { .. }, None) => {
                return Err(self.errno_error(Errno::NOENT));
            }
        }
        self.done = true;
        Ok(())
    }

    /// Restores the previous state. Concurrent changes by others are not overwritten.
    pub fn roll_back(&mut self) {
        if !std::mem::take(&mut self.done) {
            return;
        }
        let spot = &self.order.spot;
        let (folder, leaf) = (&spot.folder, spot.name.as_os_str());
        let ours = spot
            .stat()
            .ok()
            .flatten()
            .zip(self.new_file)
            .is_some_and(|(now, fresh)| now.inode() == fresh.inode());
        let result = match (&self.order.act, &self.backup) {
            (ChangeAction::Put { .. }, None) if ours => rustix::fs::unlinkat(folder, leaf, AtFlags::empty()),
            (ChangeAction::Put { .. }, Some(aside)) if ours => {
                rustix::fs::renameat(folder, aside, folder, leaf)
            }
            (ChangeAction::Remove { .. }, Some(aside)) => temp_names::rename_new(folder, aside, folder, leaf),
            (ChangeAction::Move { to }, _) => temp_names::rename_new(&to.folder, &to.name, folder, leaf),
            _ => Ok(()),
        };
        if let Err(errno) = result {
            tracing::error!(%errno, "could not restore a file after a failed change");
            self.keep_backups();
        }
    }

    /// Leaves foreign content under a temporary name rather than lose it.
    fn keep_backups(&mut self) {
        tracing::error!(path = %self.order.spot.real_path.display(), kept = ?[&self.temp_name, &self.backup_name], "content was left under a temporary name");
        self.backup = None;
        self.temp_name = OsString::new();
        self.backup_name = OsString::new();
    }

    /// Removes temporary files, whether the batch succeeded or not.
    pub fn remove_leftovers(&mut self, memory: Option<&FsState>) {
        let folder = &self.order.spot.folder;
        // The file with the temporary name is in place by now, or no longer needed.
        for name in
            [&self.temp_name, &self.backup_name].into_iter().filter(|name| temp_names::is_temp_name(name))
        {
            temp_names::crash_point();
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
        if !self.done {
            self.discard_undo(memory);
        }
    }

    fn discard_undo(&mut self, memory: Option<&FsState>) {
        if let Some((kept, state)) = self.undo_entry.take().zip(memory) {
            state.undos.discard(&kept);
        }
    }

    pub fn into_result(mut self, batch: &Batch<'_>, link: &UndoLink) -> Result<WriteResult, ToolError> {
        let removed = matches!(self.order.act, ChangeAction::Remove { .. });
        let mode = self.before.map(|before| before.mode());
        let after = (!removed).then_some(self.hash.as_str());
        let undo = self.undo_entry.take().zip(batch.workspace.fs_state()).is_some_and(|(kept, state)| {
            let published = state.undos.publish(kept, mode, after, link);
            published.inspect_err(|error| tracing::warn!(%error, "change cannot be undone")).is_ok()
        });
        let seen = self.new_file.or(self.before).ok_or_else(|| self.errno_error(Errno::NOENT))?;
        Ok(WriteResult { created: self.before.is_none(), stat: seen.stat(), hash: self.hash, undo })
    }
}

/// Copies owner and mode of the old file, as far as permitted.
fn copy_ownership(file: &File, before: Option<&FileFingerprint>, mode: Option<u32>) -> Result<(), Errno> {
    let mut keeps_owner = true;
    if let Some(before) = before {
        let (user, group) = before.owner();
        if file_fingerprint::of_fd(file)?.owner() != (user, group) {
            let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            keeps_owner = rustix::fs::fchown(file, owner.0, owner.1).is_ok();
        }
    }
    match mode.or(before.map(FileFingerprint::mode)) {
        // Setuid and setgid bits are dropped if the owner cannot be retained.
        Some(mode) if !keeps_owner => rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o1777)),
        Some(mode) => rustix::fs::fchmod(file, Mode::from_raw_mode(mode)),
        None => Ok(()),
    }
}

fn cross_device_error(to: &crate::fs::resolve::TargetEntry, errno: Errno) -> ToolError {
    match errno {
        Errno::XDEV => ToolError::invalid(format!("`{}` is on another file system.", to.place.display()))
            .hint("Write the new file and remove the old one instead of renaming."),
        errno => errno_error(&to.place, errno),
    }
}
