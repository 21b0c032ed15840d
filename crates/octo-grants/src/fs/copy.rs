//! Copies: a file like any other write; a directory in a temporary place first, so that it appears atomically.

use super::batch::{Batch, ChangeAction, ChangeOrder, Content};
use super::folder_tree::{self, TreeEvent, TreeItem, walk_tree};
use super::intent_log::{Intent, IntentPath};
use super::name_locks::lock_names;
use super::open_beneath::open_entry;
use super::protected_paths::protected_error;
use super::resolve::{LinkPolicy, TargetEntry, errno_error, io_error, parent_of};
use super::{EntryKind, Fs, OpenFile, RootedPath, Workspace, file_fingerprint, temp_names};
use octo_model::ToolError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

impl Fs<super::Write> {
    /// Copies a file or a directory tree. Links that stay beneath the root are copied as links.
    pub fn copy(&self, from: &RootedPath, to: &RootedPath, overwrite: bool) -> Result<(), ToolError> {
        let (found, real) = from.find_real()?;
        if found.fingerprint.kind() != EntryKind::Folder {
            let OpenFile { file, stat, real } = self.open_file(from)?;
            return self.workspace().batch(true, |batch| {
                let spot = batch.resolve_target(to, LinkPolicy::Follow, false)?;
                if spot.real_path == real.relative() && spot.place.root().path == real.root().path {
                    return Err(ToolError::invalid("A file cannot be copied onto itself.")
                        .hint("Choose another new name."));
                }
                let mode = Some(stat.mode & 0o777);
                let act = ChangeAction::Put {
                    content: Content::File(&file),
                    mode,
                    if_hash: None,
                    create_new: !overwrite,
                };
                batch.apply_all(vec![ChangeOrder { spot, act }]).map(|_| ())
            });
        }
        // By its real path, so that the name is the directory's own and not a link's.
        let source = TargetEntry::new(&from.at(real.relative()), LinkPolicy::Keep)?;
        self.workspace().check_readable(&real, &from.display())?;
        copy_folder(self.workspace(), &source, to)
    }
}

/// Copies a directory to a name that does not exist.
pub(super) fn copy_folder(
    workspace: &Workspace,
    source: &TargetEntry,
    to: &RootedPath,
) -> Result<(), ToolError> {
    workspace.batch(true, |batch| {
        let target = batch.resolve_target(to, LinkPolicy::Keep, false)?;
        if target.stat()?.is_some() {
            return Err(errno_error(to, Errno::EXIST)
                .hint("Directories are not merged: remove it first or choose another name."));
        }
        if target
            .place
            .root()
            .path
            .join(&target.real_path)
            .starts_with(source.place.root().path.join(&source.real_path))
        {
            return Err(ToolError::invalid("A directory cannot be copied into itself.")
                .hint("Choose a destination outside of it."));
        }
        let _lock = lock_names(std::iter::once(&target))?;
        let temp = temp_names::new_temp_name().map_err(ToolError::internal)?;
        let path = parent_of(&target.real_path).join(&temp);
        batch.intents.write(&Intent::Temp(IntentPath {
            root: target.place.root().path.clone(),
            path: path.clone(),
        }))?;
        let copy = TreeCopy { batch, source, target: &target, temp: &path };
        let result = copy.copy_tree(&temp).and_then(|()| {
            temp_names::rename_new(&target.folder, &temp, &target.folder, &target.name)
                .map_err(|errno| errno_error(to, errno))
        });
        if result.is_err() {
            let _ = folder_tree::remove_forced(&target.folder, &temp);
            return result;
        }
        temp_names::sync_folder(&target.folder).map_err(|errno| errno_error(to, errno))
    })
}

struct TreeCopy<'a, 'w> {
    batch: &'a Batch<'w>,
    source: &'a TargetEntry,
    target: &'a TargetEntry,
    /// Temporary path of the copy, beneath the target's root.
    temp: &'a Path,
}

impl TreeCopy<'_, '_> {
    fn copy_tree(&self, temp: &OsStr) -> Result<(), ToolError> {
        let fail = |errno| errno_error(&self.target.place, errno);
        let top = make_folder(&self.target.folder, temp).map_err(fail)?;
        let mut folders = vec![top];
        let mut links = Vec::new();
        walk_tree(&self.source.folder, &self.source.name, &self.source.error_at(), &mut |item| {
            self.copy_item(item, &mut folders, &mut links)
        })?;
        let mode = self.source.stat_existing()?.mode();
        let Some(top) = folders.pop() else { return Ok(()) };
        rustix::fs::fchmod(&top, Mode::from_raw_mode(mode & 0o777)).map_err(fail)?;
        // The copy already has its final depth, so a link that leaves the root now would leave it in the end.
        for link in links {
            let place = self.target.place.at(&self.temp.join(&link));
            match place.lookup(OFlags::PATH) {
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno_error(&self.target.place.join(&link), errno)),
            }
        }
        // One call for all files; syncing each one would take far longer.
        rustix::fs::syncfs(open_entry(&self.target.folder, temp, OFlags::RDONLY).map_err(fail)?).map_err(fail)
    }

    fn copy_item(
        &self,
        item: &TreeItem<'_>,
        folders: &mut Vec<OwnedFd>,
        links: &mut Vec<PathBuf>,
    ) -> Result<(), ToolError> {
        let fail = |errno| self.source.error_at()(item.path, errno);
        if item.event == TreeEvent::Leave {
            let mode = Mode::from_raw_mode(item.seen.mode() & 0o777);
            return folders.pop().map_or(Ok(()), |folder| rustix::fs::fchmod(folder, mode).map_err(fail));
        }
        self.check_protection(item)?;
        let Some(folder) = folders.last() else {
            return Err(ToolError::internal("copy without an open directory"));
        };
        match item.seen.kind() {
            EntryKind::Folder => folders.push(make_folder(folder, item.name).map_err(fail)?),
            EntryKind::Symlink => {
                let place = self.source.place.at(&self.source.real_path.join(item.path));
                place.lookup(OFlags::PATH).map_err(|errno| match errno {
                    Errno::NOENT => {
                        fail(Errno::LOOP).hint("The link has no target; remove it before copying.")
                    }
                    errno => fail(errno),
                })?;
                let target = rustix::fs::readlinkat(item.folder, item.name, Vec::new()).map_err(fail)?;
                rustix::fs::symlinkat(target, folder, item.name).map_err(fail)?;
                links.push(item.path.to_owned());
            }
            EntryKind::File | EntryKind::Other => self.copy_file(item, folder)?,
        }
        Ok(())
    }

    /// A copy must not create protected files, but protected files may be copied along.
    fn check_protection(&self, item: &TreeItem<'_>) -> Result<(), ToolError> {
        let workspace = self.batch.workspace;
        let rule =
            |spot: &TargetEntry| workspace.protection(spot.place.root(), &spot.real_path.join(item.path));
        let from = self.source.place.at(&self.source.real_path.join(item.path));
        workspace.check_readable(&from, &self.source.place.join(item.path).display())?;
        match (rule(self.source), rule(self.target)) {
            (None, Some(protection)) => {
                Err(protected_error(&self.target.place.join(item.path).display(), &protection))
            }
            _ => Ok(()),
        }
    }

    fn copy_file(&self, item: &TreeItem<'_>, folder: &OwnedFd) -> Result<(), ToolError> {
        let place = self.source.place.join(item.path);
        self.batch.workspace.check_file(&place, &item.seen)?;
        let fail = |errno| errno_error(&place, errno);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut from = File::from(open_entry(item.folder, item.name, flags).map_err(fail)?);
        if file_fingerprint::of_fd(&from).map_err(fail)?.inode() != item.seen.inode() {
            return Err(super::resolve::changed_while_reading(&place));
        }
        let mut to = temp_names::create(folder, item.name, Mode::RUSR | Mode::WUSR).map_err(fail)?;
        std::io::copy(&mut from, &mut to).map_err(|error| io_error(&place, error))?;
        rustix::fs::fchmod(&to, Mode::from_raw_mode(item.seen.mode() & 0o777)).map_err(fail)
    }
}

fn make_folder(folder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(folder.as_fd(), name, Mode::RWXU)?;
    open_entry(folder, name, OFlags::RDONLY | OFlags::DIRECTORY)
}
