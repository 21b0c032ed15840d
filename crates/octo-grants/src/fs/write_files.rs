//! Atomic file changes.

use super::batch::{Batch, ChangeAction, ChangeOrder, Content};
use super::intent_log::IntentPath;
use super::name_locks::lock_names;
use super::resolve::{LinkPolicy, TargetEntry, errno_error, split};
use super::undo_log::{LastChange, UndoKey, UndoLink};
use super::{EntryKind, Fs, RootedPath, Stat, file_fingerprint, hash, temp_names};
use octo_model::{Kind, ToolError};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

/// Options of a write.
#[derive(Debug, Clone, Default)]
pub struct Write {
    /// SHA-256 in hexadecimal (at least the first 16 digits) that the current content must have.
    pub if_hash: Option<String>,
    /// Fails if the file exists.
    pub create_new: bool,
    /// Creates missing directories.
    pub mkdirs: bool,
}

/// Result of a write.
#[derive(Debug, Clone)]
pub struct WriteResult {
    pub created: bool,
    pub stat: Stat,
    /// SHA-256 of the new content, in hexadecimal.
    pub hash: String,
    /// Whether the change can be undone.
    pub undo: bool,
}

/// One change of a batch.
#[derive(Debug, Clone)]
pub enum Change {
    /// Replaces or creates; sets the mode if given (`0o755` for a new executable), else retains it.
    Put {
        place: RootedPath,
        bytes: Vec<u8>,
        mode: Option<u32>,
        options: Write,
    },
    Remove {
        place: RootedPath,
        if_hash: Option<String>,
    },
    /// The new name must not exist.
    Rename {
        from: RootedPath,
        to: RootedPath,
    },
}

/// Result of an undo.
#[derive(Debug, Clone)]
pub struct UndoResult {
    pub place: RootedPath,
    /// The file did not exist before the change and was removed.
    pub removed: bool,
    /// Other files that were restored with it, because the change had renamed one to the other.
    pub others: Vec<UndoResult>,
}

impl Fs<super::Write> {
    /// Replaces or creates a file: temporary file, fsync, rename. Retains the mode.
    pub fn write(&self, place: &RootedPath, bytes: &[u8], options: &Write) -> Result<WriteResult, ToolError> {
        self.put(place, Content::Bytes(bytes), options)
    }

    /// Like [`Self::write`], appending `bytes` to the existing content.
    pub fn append(
        &self,
        place: &RootedPath,
        bytes: &[u8],
        options: &Write,
    ) -> Result<WriteResult, ToolError> {
        self.put(place, Content::Append(bytes), options)
    }

    fn put(
        &self,
        place: &RootedPath,
        content: Content<'_>,
        options: &Write,
    ) -> Result<WriteResult, ToolError> {
        self.workspace().batch(true, |batch| {
            let order = put_order(batch, place, content, None, options)?;
            single_result(batch.apply_all(vec![order])?)
        })
    }

    /// Applies all changes or none; rolls back on failure. Returns one result per change: for a removed file its
    /// previous state, for a renamed one its current state. Directories have no hash, nor have removed files that are
    /// not stored for undo.
    pub fn change(&self, changes: Vec<Change>) -> Result<Vec<WriteResult>, ToolError> {
        self.change_linked(changes, Vec::new())
    }

    /// Like [`Self::change`]; each group of changes, given by their indices, is later undone together.
    pub fn change_linked(
        &self,
        changes: Vec<Change>,
        groups: Vec<Vec<usize>>,
    ) -> Result<Vec<WriteResult>, ToolError> {
        self.workspace().batch(true, |batch| {
            batch.undo_groups = groups;
            let mut orders = Vec::with_capacity(changes.len());
            for change in &changes {
                orders.push(match change {
                    Change::Put { place, bytes, mode, options } => put_order(
                        batch,
                        place,
                        Content::Bytes(bytes),
                        mode.map(|mode| mode & 0o777),
                        options,
                    )?,
                    Change::Remove { place, if_hash } => {
                        if_hash.as_deref().map_or(Ok(()), hash::check_hash_format)?;
                        let spot = batch.resolve_target(place, LinkPolicy::Keep, false)?;
                        refuse_link(&spot)?;
                        ChangeOrder { spot, act: ChangeAction::Remove { if_hash: if_hash.as_deref() } }
                    }
                    Change::Rename { from, to } => {
                        let spot = batch.resolve_target(from, LinkPolicy::Keep, false)?;
                        let to = batch.resolve_target(to, LinkPolicy::Keep, false)?;
                        if spot.stat_existing()?.kind() == EntryKind::Folder {
                            self.check_same_protection(&spot, &to)?;
                        }
                        ChangeOrder { spot, act: ChangeAction::Move { to } }
                    }
                });
            }
            batch.apply_all(orders)
        })
    }

    /// Creates a directory. Returns false if it exists.
    pub fn make_folder(&self, place: &RootedPath, parents: bool) -> Result<bool, ToolError> {
        self.workspace().batch(true, |batch| {
            let there = match place.lookup(OFlags::PATH) {
                Ok(fd) => Some(file_fingerprint::of_fd(fd).map_err(|errno| errno_error(place, errno))?),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(errno_error(place, errno)),
            };
            match there.map(|seen| seen.kind()) {
                Some(EntryKind::Folder) => return Ok(false),
                Some(_) => {
                    return Err(
                        errno_error(place, Errno::EXIST).hint("It is not a directory; choose another name.")
                    );
                }
                None => {}
            }
            let (parent, _) = split(place)?;
            if !parents {
                place.at(parent).find()?;
            }
            let new = batch.make_folders(place)?;
            batch.sync_folders()?;
            Ok(new)
        })
    }

    /// Removes a file, a link (never its target) or an empty directory.
    pub fn remove(&self, place: &RootedPath) -> Result<(), ToolError> {
        self.workspace().batch(true, |batch| {
            let spot = batch.resolve_target(place, LinkPolicy::Keep, false)?;
            let flags = match spot.stat_existing()?.kind() {
                EntryKind::File => {
                    return batch
                        .apply_all(vec![ChangeOrder { spot, act: ChangeAction::Remove { if_hash: None } }])
                        .map(|_| ());
                }
                EntryKind::Folder => AtFlags::REMOVEDIR,
                EntryKind::Symlink | EntryKind::Other => AtFlags::empty(),
            };
            let _lock = lock_names(std::iter::once(&spot))?;
            rustix::fs::unlinkat(&spot.folder, &spot.name, flags)
                .map_err(|errno| errno_error(place, errno))?;
            temp_names::sync_folder(&spot.folder).map_err(|errno| errno_error(place, errno))
        })
    }

    /// Undoes the caller's last change of a file, unless it has been changed since. Both names of a rename are
    /// restored together.
    pub fn undo(&self, place: &RootedPath) -> Result<UndoResult, ToolError> {
        if let Some((last, at)) = self.last_change(place, LinkPolicy::Keep)?
            && let UndoLink::Move { id, from, to } = last.link
        {
            return self.undo_move(place, &at, &id, &from, &to);
        }
        let Some((last, at)) = self.last_change(place, LinkPolicy::Follow)? else {
            return Err(nothing_to_undo(place));
        };
        let mut all = vec![(self.rooted_path(place, &at)?, last)];
        if let Some((_, LastChange { link: UndoLink::Group { id, others }, .. })) = all.first() {
            let (id, others) = (id.clone(), others.clone());
            for at in others {
                let other = self.rooted_path(place, &at)?;
                let last = self.last_at(&at)?;
                let same = |last: &LastChange| matches!(&last.link, UndoLink::Group { id: theirs, .. } if *theirs == id);
                all.push((other.clone(), last.filter(same).ok_or_else(|| changed_since_error(&other))?));
            }
        }
        self.workspace().batch(false, |batch| {
            let mut orders = Vec::with_capacity(all.len());
            for (place, last) in &all {
                let spot = batch.resolve_target(place, LinkPolicy::Keep, false)?;
                orders.push(ChangeOrder { spot, act: undo_action(last) });
            }
            batch.apply_all(orders).map(|_| ()).map_err(|error| match error.kind {
                Kind::NotFound | Kind::Conflict => changed_since_error(place),
                _ => error,
            })
        })?;
        let mut undone = Vec::with_capacity(all.len());
        for (other, last) in all {
            self.forget_change(&Batch::intent_path(&TargetEntry::new(&other, LinkPolicy::Keep)?));
            undone.push(UndoResult { place: other, removed: last.before.is_none(), others: Vec::new() });
        }
        let others = undone.split_off(1);
        Ok(UndoResult { place: place.clone(), removed: undone.iter().all(|one| one.removed), others })
    }

    /// Renames an entry back and restores the content that it replaced.
    fn undo_move(
        &self,
        place: &RootedPath,
        at: &IntentPath,
        id: &str,
        from: &IntentPath,
        to: &IntentPath,
    ) -> Result<UndoResult, ToolError> {
        let (old, new) = (self.rooted_path(place, from)?, self.rooted_path(place, to)?);
        let same =
            |last: &LastChange| matches!(&last.link, UndoLink::Move { id: theirs, .. } if theirs == id);
        let replaced = self.last_at(to)?.filter(same).and_then(|last| last.before);
        self.rename_back(&new, &old, id)?;
        self.forget_change(from);
        let removed = replaced.is_none();
        if let Some((mode, bytes)) = replaced {
            self.workspace().batch(false, |batch| {
                let spot = batch.resolve_target(&new, LinkPolicy::Keep, false)?;
                let content = Content::Bytes(&bytes);
                let act = ChangeAction::Put { content, mode: Some(mode), if_hash: None, create_new: true };
                batch.apply_all(vec![ChangeOrder { spot, act }]).map(|_| ())
            })?;
        }
        self.forget_change(to);
        let undone = |place: RootedPath, removed: bool| UndoResult { place, removed, others: Vec::new() };
        let (mut first, other) = match at == from {
            true => (undone(old, false), undone(new, removed)),
            false => (undone(new, removed), undone(old, false)),
        };
        first.others.push(other);
        Ok(first)
    }

    /// The caller's last change of a path, and its target entry.
    fn last_change(
        &self,
        place: &RootedPath,
        links: LinkPolicy,
    ) -> Result<Option<(LastChange, IntentPath)>, ToolError> {
        let spot = TargetEntry::new(place, links)?;
        self.workspace().check_writable(&spot)?;
        let at = Batch::intent_path(&spot);
        Ok(self.last_at(&at)?.map(|last| (last, at)))
    }

    fn last_at(&self, at: &IntentPath) -> Result<Option<LastChange>, ToolError> {
        let Some(state) = self.workspace().fs_state() else { return Ok(None) };
        state.undos.last_change(&self.undo_key(at)).map_err(ToolError::internal)
    }

    fn forget_change(&self, at: &IntentPath) {
        if let Some(state) = self.workspace().fs_state() {
            state.undos.remove(&self.undo_key(at));
        }
    }

    pub(super) fn undo_key<'a>(&'a self, at: &'a IntentPath) -> UndoKey<'a> {
        UndoKey { root: &at.root, real: &at.path, changed_by: self.workspace().changed_by() }
    }

    /// A path by its real location, spelled like another one if they share a root.
    fn rooted_path(&self, like: &RootedPath, at: &IntentPath) -> Result<RootedPath, ToolError> {
        if like.root().path == at.root {
            return Ok(like.at(&at.path));
        }
        let root = self.workspace().roots().iter().find(|root| root.path == at.root);
        root.map(|root| RootedPath::beneath(root, &at.path)).ok_or_else(|| nothing_to_undo(like))
    }
}

fn nothing_to_undo(place: &RootedPath) -> ToolError {
    ToolError::not_found(format!("No change of `{}` to undo.", place.display()))
        .hint("Only your last change of a file made with these tools is stored, and not for large files.")
}

pub(super) fn changed_since_error(place: &RootedPath) -> ToolError {
    let message = format!("`{}` has been changed since the change to undo.", place.display());
    ToolError::new(Kind::Conflict, message).hint("Read it, and write the desired content.")
}

fn undo_action(last: &LastChange) -> ChangeAction<'_> {
    let if_hash = last.after.as_deref();
    match &last.before {
        Some((mode, bytes)) => ChangeAction::Put {
            content: Content::Bytes(bytes),
            mode: Some(*mode),
            if_hash,
            create_new: if_hash.is_none(),
        },
        None => ChangeAction::Remove { if_hash },
    }
}

/// Order to write content to a path.
fn put_order<'a>(
    batch: &mut Batch<'_>,
    place: &RootedPath,
    content: Content<'a>,
    mode: Option<u32>,
    options: &'a Write,
) -> Result<ChangeOrder<'a>, ToolError> {
    let if_hash = options.if_hash.as_deref();
    if_hash.map_or(Ok(()), hash::check_hash_format)?;
    let spot = batch.resolve_target(place, LinkPolicy::Follow, options.mkdirs)?;
    Ok(ChangeOrder {
        spot,
        act: ChangeAction::Put { content, mode, if_hash, create_new: options.create_new },
    })
}

/// A link must be removed separately, because it has no content to restore.
fn refuse_link(spot: &TargetEntry) -> Result<(), ToolError> {
    if spot.stat_existing()?.kind() != EntryKind::Symlink {
        return Ok(());
    }
    Err(ToolError::invalid(format!("`{}` is a link.", spot.place.display()))
        .hint("Remove the link separately, or use the file that it points to."))
}

fn single_result(written: Vec<WriteResult>) -> Result<WriteResult, ToolError> {
    written.into_iter().next().ok_or_else(|| ToolError::internal("write returned no result"))
}
