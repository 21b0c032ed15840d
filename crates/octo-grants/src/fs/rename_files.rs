//! Renames: within a root, between roots and between file systems.

use super::batch::{Batch, ChangeAction, ChangeOrder, Content};
use super::copy::copy_folder;
use super::file_fingerprint::{self, FileFingerprint};
use super::folder_tree::walk_tree;
use super::hash::copy_all;
use super::intent_log::IntentTxn;
use super::name_locks::lock_names;
use super::open_beneath::{open_entry, reopen};
use super::protected_paths::{Protection, protected_error};
use super::resolve::{LinkPolicy, TargetEntry, errno_error};
use super::undo_log::{MAX_UNDO_FILE_BYTES, UndoEntry, UndoLink};
use super::write_files::changed_since_error;
use super::{EntryKind, Fs, OpenFile, RootedPath, temp_names};
use octo_model::{Kind, ToolError};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;

impl Fs<super::Write> {
    /// Renames within a root or between roots. Without `overwrite` the new name must not exist (`RENAME_NOREPLACE`).
    /// Returns whether it can be undone.
    pub fn rename(&self, from: &RootedPath, to: &RootedPath, overwrite: bool) -> Result<bool, ToolError> {
        self.rename_entry(from, to, overwrite, None)
    }

    /// Undoes a rename of the entry with this id.
    pub(super) fn rename_back(&self, from: &RootedPath, to: &RootedPath, id: &str) -> Result<(), ToolError> {
        self.rename_entry(from, to, false, Some(id)).map(|_| ()).map_err(|error| match error.kind {
            Kind::NotFound | Kind::Conflict => changed_since_error(from),
            _ => error,
        })
    }

    fn rename_entry(
        &self,
        from: &RootedPath,
        to: &RootedPath,
        overwrite: bool,
        back: Option<&str>,
    ) -> Result<bool, ToolError> {
        let (old, new) = (TargetEntry::new(from, LinkPolicy::Keep)?, TargetEntry::new(to, LinkPolicy::Keep)?);
        self.workspace().check_writable(&old)?;
        self.workspace().check_writable(&new)?;
        let locks = lock_names([&old, &new].into_iter())?;
        let seen = old.stat_existing()?;
        if back.is_some_and(|id| seen.persistent_id() != id) {
            return Err(changed_since_error(from));
        }
        // rename(2) does nothing in this case and reports success.
        if overwrite && new.stat()?.is_some_and(|there| there.inode() == seen.inode()) {
            return Err(ToolError::invalid(format!(
                "`{}` and `{}` are the same file.",
                from.display(),
                to.display()
            ))
            .hint("Choose another new name; to drop one of two hard links, delete it."));
        }
        if seen.kind() == EntryKind::Folder {
            self.check_same_protection(&old, &new)?;
        }
        let tx = self.workspace().begin();
        let replaced = if overwrite { new.stat()? } else { None };
        let kept = if back.is_none() { self.keep_for_undo(&old, &new, replaced.as_ref(), &tx) } else { None };
        let renamed = if overwrite {
            rustix::fs::renameat(&old.folder, &old.name, &new.folder, &new.name)
        } else {
            temp_names::rename_new(&old.folder, &old.name, &new.folder, &new.name)
        };
        match renamed {
            Ok(()) => {
                temp_names::sync_folder(&new.folder).map_err(|errno| errno_error(to, errno))?;
                temp_names::sync_folder(&old.folder).map_err(|errno| errno_error(from, errno))?;
                let link = UndoLink::Move {
                    id: seen.persistent_id(),
                    from: Batch::intent_path(&old),
                    to: Batch::intent_path(&new),
                };
                Ok(kept.is_some_and(|kept| self.publish_move(kept, replaced.as_ref(), &link)))
            }
            Err(errno) => {
                self.discard_undo(kept);
                match errno {
                    Errno::XDEV => {
                        drop(locks);
                        self.move_across_devices(from, old, to, overwrite, seen.kind())
                    }
                    Errno::NOENT | Errno::ACCESS => Err(errno_error(from, errno)),
                    errno => Err(errno_error(to, errno)),
                }
            }
        }
    }

    /// Undo entries for both names; that of the new name holds the replaced content. `None` if that cannot be stored.
    fn keep_for_undo(
        &self,
        old: &TargetEntry,
        new: &TargetEntry,
        replaced: Option<&FileFingerprint>,
        tx: &IntentTxn<'_>,
    ) -> Option<[UndoEntry; 2]> {
        let undos = &self.workspace().fs_state()?.undos;
        let content = match replaced {
            Some(seen) if seen.kind() != EntryKind::File || seen.size() > MAX_UNDO_FILE_BYTES => return None,
            Some(seen) => {
                let found = open_entry(&new.folder, &new.name, OFlags::PATH).ok()?;
                file_fingerprint::of_fd(&found).ok().filter(|now| now.is_unchanged(seen))?;
                Some(File::from(reopen(&found, OFlags::empty()).ok()?))
            }
            None => None,
        };
        let first = undos.begin(&self.undo_key(&Batch::intent_path(old)), tx).ok()?;
        let Ok(mut second) = undos.begin(&self.undo_key(&Batch::intent_path(new)), tx) else {
            undos.discard(&first);
            return None;
        };
        let filled = content
            .map_or(Ok(0), |content| copy_all(content.take(MAX_UNDO_FILE_BYTES + 1), &mut second.file));
        if filled.is_ok_and(|bytes| bytes <= MAX_UNDO_FILE_BYTES) {
            return Some([first, second]);
        }
        self.discard_undo(Some([first, second]));
        None
    }

    fn publish_move(
        &self,
        [old, new]: [UndoEntry; 2],
        replaced: Option<&FileFingerprint>,
        link: &UndoLink,
    ) -> bool {
        let Some(state) = self.workspace().fs_state() else { return false };
        let first = state.undos.publish(old, None, None, link);
        let second = state.undos.publish(new, replaced.map(FileFingerprint::mode), None, link);
        let published = first.and(second);
        published.inspect_err(|error| tracing::warn!(%error, "change cannot be undone")).is_ok()
    }

    fn discard_undo(&self, kept: Option<[UndoEntry; 2]>) {
        if let Some(state) = self.workspace().fs_state() {
            kept.iter().flatten().for_each(|kept| state.undos.discard(kept));
        }
    }

    /// The contents of a directory must be as protected under the new name as before; otherwise renaming twice would
    /// bypass the protection.
    pub(super) fn check_same_protection(
        &self,
        old: &TargetEntry,
        new: &TargetEntry,
    ) -> Result<(), ToolError> {
        let rules = self.workspace();
        walk_tree(&old.folder, &old.name, &old.error_at(), &mut |item| {
            let before = rules.protection(old.place.root(), &old.real_path.join(item.path));
            let after = rules.protection(new.place.root(), &new.real_path.join(item.path));
            match (before, after) {
                // The hub would no longer find its settings.
                (Some(protection @ Protection::Settings), _) | (Some(protection), None) => {
                    Err(protected_error(&old.place.join(item.path).display(), &protection))
                }
                (None, Some(protection)) => {
                    Err(protected_error(&new.place.join(item.path).display(), &protection))
                }
                _ => Ok(()),
            }
        })
    }

    /// Moves to another file system: copies, then removes the original.
    fn move_across_devices(
        &self,
        from: &RootedPath,
        old: TargetEntry,
        to: &RootedPath,
        overwrite: bool,
        kind: EntryKind,
    ) -> Result<bool, ToolError> {
        match kind {
            EntryKind::Folder => {
                self.refuse_protected(&old)?;
                copy_folder(self.workspace(), &old, to)?;
                self.remove_tree(from).map(|_| false)
            }
            EntryKind::File => {
                let OpenFile { file, stat, .. } = self.open_file(from)?;
                self.workspace().batch(true, |batch| {
                    batch.undo_groups = vec![vec![0, 1]];
                    let spot = batch.resolve_target(to, LinkPolicy::Keep, false)?;
                    let content = Content::File(&file);
                    let put = ChangeAction::Put {
                        content,
                        mode: Some(stat.mode & 0o777),
                        if_hash: None,
                        create_new: !overwrite,
                    };
                    let orders = vec![
                        ChangeOrder { spot, act: put },
                        ChangeOrder { spot: old, act: ChangeAction::Remove { if_hash: None } },
                    ];
                    batch.apply_all(orders).map(|written| written.iter().all(|one| one.undo))
                })
            }
            EntryKind::Symlink | EntryKind::Other => Err(ToolError::invalid(format!(
                "`{}` cannot be moved to another file system.",
                from.display()
            ))
            .hint("Only files and directories can; create it at the destination instead.")),
        }
    }
}
