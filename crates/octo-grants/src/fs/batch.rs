//! Batches of changes: all or none, under a lock, recorded in the intent log first.

mod change_step;

use super::intent_log::{Intent, IntentPath, IntentTxn};
use super::name_locks::lock_names;
use super::resolve::{LinkPolicy, TargetEntry, errno_error, split};
use super::undo_log::UndoLink;
use super::{EntryKind, RootedPath, Workspace, WriteResult, file_fingerprint, temp_names};
use change_step::ChangeStep;
use octo_model::ToolError;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Source of a file's new content.
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    /// The existing content, followed by these bytes.
    Append(&'a [u8]),
    File(&'a File),
}

pub(super) enum ChangeAction<'a> {
    Put { content: Content<'a>, mode: Option<u32>, if_hash: Option<&'a str>, create_new: bool },
    Remove { if_hash: Option<&'a str> },
    Move { to: TargetEntry },
}

/// One change of a batch: what to do with a name.
pub(super) struct ChangeOrder<'a> {
    pub spot: TargetEntry,
    pub act: ChangeAction<'a>,
}

/// One change of a workspace, of one or several files.
pub(super) struct Batch<'w> {
    pub workspace: &'w Workspace,
    pub intents: IntentTxn<'w>,
    /// Whether the change can be undone later.
    pub keeps_undo: bool,
    /// Orders that one undo reverts together, by index.
    pub undo_groups: Vec<Vec<usize>>,
    /// Directories created for it.
    created_folders: Vec<TargetEntry>,
}

impl Workspace {
    /// Applies a change; if it fails, removes the directories that were created for it.
    pub(super) fn batch<T>(
        &self,
        remember: bool,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut batch = Batch {
            workspace: self,
            intents: self.begin(),
            keeps_undo: remember,
            undo_groups: Vec::new(),
            created_folders: Vec::new(),
        };
        let result = work(&mut batch);
        if result.is_err() {
            for spot in batch.created_folders.iter().rev() {
                // Fails if it is no longer empty; then it stays.
                let _ = rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::REMOVEDIR);
            }
        }
        result
    }
}

impl<'w> Batch<'w> {
    pub fn intent_path(spot: &TargetEntry) -> IntentPath {
        IntentPath { root: spot.place.root().path.clone(), path: spot.real_path.clone() }
    }

    /// Resolves the name to change; refuses it if it must not be changed.
    pub fn resolve_target(
        &mut self,
        place: &RootedPath,
        links: LinkPolicy,
        mkdirs: bool,
    ) -> Result<TargetEntry, ToolError> {
        if mkdirs {
            let (parent, _) = split(place)?;
            self.make_folders(&place.at(parent))?;
        }
        let spot = TargetEntry::new(place, links)?;
        self.workspace.check_writable(&spot)?;
        Ok(spot)
    }

    /// Creates the missing directories of a path; returns whether any was missing.
    pub fn make_folders(&mut self, place: &RootedPath) -> Result<bool, ToolError> {
        let before = self.created_folders.len();
        let mut here = PathBuf::new();
        let mut above: Option<OwnedFd> = None;
        for part in place.relative().components() {
            here.push(part);
            let place = place.at(&here);
            above = Some(match place.lookup(OFlags::PATH | OFlags::DIRECTORY) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => self.make_folder_at(&place, above)?,
                Err(errno) => return Err(errno_error(&place, errno)),
            });
        }
        Ok(self.created_folders.len() > before)
    }

    fn make_folder_at(&mut self, place: &RootedPath, above: Option<OwnedFd>) -> Result<OwnedFd, ToolError> {
        let (_, leaf) = split(place)?;
        let above = match above {
            Some(above) => above,
            None => place
                .at(Path::new("."))
                .lookup(OFlags::PATH | OFlags::DIRECTORY)
                .map_err(|e| errno_error(place, e))?,
        };
        let spot = TargetEntry::in_folder(place, above, leaf)?;
        self.workspace.check_writable(&spot)?;
        if spot.stat()?.is_some_and(|seen| seen.kind() == EntryKind::Symlink) {
            return Err(errno_error(place, Errno::LOOP));
        }
        self.intents.write(&Intent::MadeFolder(Self::intent_path(&spot)))?;
        let made = rustix::fs::mkdirat(&spot.folder, &spot.name, Mode::from_raw_mode(0o777));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd = super::open_beneath::open_entry(&spot.folder, &spot.name, flags)
            .map_err(|e| errno_error(place, e))?;
        match made {
            Ok(()) => self.created_folders.push(spot),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno_error(place, errno)),
        }
        Ok(fd)
    }

    /// Makes new directories durable.
    pub fn sync_folders(&self) -> Result<(), ToolError> {
        self.created_folders.iter().try_for_each(|spot| {
            temp_names::sync_folder(&spot.folder).map_err(|e| errno_error(&spot.place, e))
        })
    }

    /// Applies all orders or none.
    pub fn apply_all(&self, orders: Vec<ChangeOrder<'_>>) -> Result<Vec<WriteResult>, ToolError> {
        let spots = orders.iter().flat_map(|order| [Some(&order.spot), order.act.other_target()]).flatten();
        let _locks = lock_names(spots)?;
        refuse_duplicates(&orders)?;
        let links = self.undo_links(&orders)?;
        let mut steps = Vec::with_capacity(orders.len());
        let result = self.attempt(orders, &mut steps);
        if result.is_err() {
            steps.iter_mut().rev().for_each(ChangeStep::roll_back);
        }
        for step in &mut steps {
            step.remove_leftovers(self.workspace.fs_state());
        }
        result?;
        steps.into_iter().zip(links).map(|(step, link)| step.into_result(self, &link)).collect()
    }

    /// For each order, what is undone together with it.
    fn undo_links(&self, orders: &[ChangeOrder<'_>]) -> Result<Vec<UndoLink>, ToolError> {
        let mut links = vec![UndoLink::None; orders.len()];
        for group in &self.undo_groups {
            let id = temp_names::random_hex().map_err(ToolError::internal)?;
            for &at in group {
                let others = group.iter().filter(|&&other| other != at);
                let others =
                    others.filter_map(|&other| orders.get(other)).map(|order| Self::intent_path(&order.spot));
                if let Some(link) = links.get_mut(at) {
                    *link = UndoLink::Group { id: id.clone(), others: others.collect() };
                }
            }
        }
        Ok(links)
    }

    fn attempt<'a>(
        &self,
        orders: Vec<ChangeOrder<'a>>,
        steps: &mut Vec<ChangeStep<'a>>,
    ) -> Result<(), ToolError> {
        let several = orders.len() > 1;
        for order in orders {
            steps.push(ChangeStep::new(order)?);
        }
        for step in steps.iter_mut() {
            step.inspect(self)?;
        }
        for step in steps.iter_mut() {
            step.stage(self)?;
        }
        if several {
            steps.iter().try_for_each(|step| self.intents.write(&step.intent()))?;
            self.intents.sync()?;
        }
        steps.iter_mut().try_for_each(ChangeStep::commit)?;
        self.sync_folders()?;
        let mut settled = HashSet::new();
        for spot in
            steps.iter().flat_map(|step| [Some(&step.order.spot), step.order.act.other_target()]).flatten()
        {
            let folder =
                file_fingerprint::of_fd(&spot.folder).map_err(|errno| errno_error(&spot.place, errno))?;
            if settled.insert(folder.inode()) {
                temp_names::sync_folder(&spot.folder).map_err(|errno| errno_error(&spot.place, errno))?;
            }
        }
        if several { self.intents.write(&Intent::Done) } else { Ok(()) }
    }
}

impl ChangeAction<'_> {
    /// The second name that an order affects.
    pub fn other_target(&self) -> Option<&TargetEntry> {
        match self {
            Self::Move { to } => Some(to),
            Self::Put { .. } | Self::Remove { .. } => None,
        }
    }
}

/// The orders of a batch must not overlap: each is checked against the state before the batch.
fn refuse_duplicates(orders: &[ChangeOrder<'_>]) -> Result<(), ToolError> {
    let mut names = HashSet::new();
    for spot in orders.iter().flat_map(|order| [Some(&order.spot), order.act.other_target()]).flatten() {
        let folder =
            file_fingerprint::of_fd(&spot.folder).map_err(|errno| errno_error(&spot.place, errno))?;
        if !names.insert((folder.inode(), spot.name.clone())) {
            return Err(ToolError::invalid(format!(
                "`{}` occurs twice in one change.",
                spot.place.display()
            ))
            .hint("Combine all changes of one file into one part."));
        }
    }
    Ok(())
}
