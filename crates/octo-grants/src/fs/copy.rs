//! Copies: a file like any other write, a folder beside its new place first, so that it is there whole or not at all.

use super::batch::{Act, Batch, Content, Order, lock};
use super::intents::{At, Note};
use super::protect::protected;
use super::resolve::{Links, Spot, open_entry, parent_of, refusal, refusal_io};
use super::tree::{self, Event, Item, walk};
use super::{EntryKind, Fs, Opened, RootedPath, Workspace, names, seen};
use octo_model::ToolError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

impl Fs<super::Write> {
    /// Copies a file, or a folder with everything in it; links are copied as links when they stay beneath the root.
    pub fn copy(&self, from: &RootedPath, to: &RootedPath, overwrite: bool) -> Result<(), ToolError> {
        let (found, real) = from.find_real()?;
        if found.seen.kind() != EntryKind::Folder {
            let Opened { file, stat, real } = self.open_file(from)?;
            return self.workspace().batch(true, |batch| {
                let spot = batch.spot(to, Links::Follow, false)?;
                if spot.real == real.inside() && spot.place.root().path == real.root().path {
                    return Err(ToolError::invalid("A file cannot be copied onto itself.")
                        .hint("Give another new name."));
                }
                let mode = Some(stat.mode & 0o777);
                let act =
                    Act::Put { content: Content::File(&file), mode, if_hash: None, create_new: !overwrite };
                batch.carry_out(vec![Order { spot, act }]).map(|_| ())
            });
        }
        // Asked for by its real path, so that the name is the folder's own and not a link's.
        let source = Spot::new(&from.at(real.inside()), Links::Keep)?;
        self.workspace().guard_reading(&real, &from.display())?;
        copy_folder(self.workspace(), &source, to)
    }
}

/// Copies a folder to a name that is free.
pub(super) fn copy_folder(workspace: &Workspace, source: &Spot, to: &RootedPath) -> Result<(), ToolError> {
    workspace.batch(true, |batch| {
        let target = batch.spot(to, Links::Keep, false)?;
        if target.look()?.is_some() {
            return Err(refusal(to, Errno::EXIST)
                .hint("Folders are not merged: remove it first or choose another name."));
        }
        if target
            .place
            .root()
            .path
            .join(&target.real)
            .starts_with(source.place.root().path.join(&source.real))
        {
            return Err(ToolError::invalid("A folder cannot be copied into itself.")
                .hint("Give a new name outside of it."));
        }
        let _lock = lock(std::iter::once(&target))?;
        let temp = names::temporary().map_err(ToolError::internal)?;
        let path = parent_of(&target.real).join(&temp);
        batch.tx.note(&Note::Temp(At { root: target.place.root().path.clone(), path: path.clone() }))?;
        let copy = Copy { batch, source, target: &target, temp: &path };
        let result = copy.all(&temp).and_then(|()| {
            names::rename_new(&target.folder, &temp, &target.folder, &target.leaf)
                .map_err(|errno| refusal(to, errno))
        });
        if result.is_err() {
            let _ = tree::clear(&target.folder, &temp);
            return result;
        }
        names::settle(&target.folder).map_err(|errno| refusal(to, errno))
    })
}

struct Copy<'a, 'w> {
    batch: &'a Batch<'w>,
    source: &'a Spot,
    target: &'a Spot,
    /// Where the copy grows, beneath the target's root.
    temp: &'a Path,
}

impl Copy<'_, '_> {
    fn all(&self, temp: &OsStr) -> Result<(), ToolError> {
        let fail = |errno| refusal(&self.target.place, errno);
        let top = make_folder(&self.target.folder, temp).map_err(fail)?;
        let mut folders = vec![top];
        let mut links = Vec::new();
        walk(&self.source.folder, &self.source.leaf, &self.source.fail(), &mut |item| {
            self.item(item, &mut folders, &mut links)
        })?;
        let mode = self.source.must()?.mode();
        let Some(top) = folders.pop() else { return Ok(()) };
        rustix::fs::fchmod(&top, Mode::from_raw_mode(mode & 0o777)).map_err(fail)?;
        // The copy has the depth that it will have in the end, so a link that leaves now would leave then.
        for link in links {
            let place = self.target.place.at(&self.temp.join(&link));
            match place.lookup(OFlags::PATH) {
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(refusal(&self.target.place.join(&link), errno)),
            }
        }
        // One call for all the files; one each would take longer by far.
        rustix::fs::syncfs(open_entry(&self.target.folder, temp, OFlags::RDONLY).map_err(fail)?).map_err(fail)
    }

    fn item(
        &self,
        item: &Item<'_>,
        folders: &mut Vec<OwnedFd>,
        links: &mut Vec<PathBuf>,
    ) -> Result<(), ToolError> {
        let fail = |errno| self.source.fail()(item.path, errno);
        if item.event == Event::Leave {
            let mode = Mode::from_raw_mode(item.seen.mode() & 0o777);
            return folders.pop().map_or(Ok(()), |folder| rustix::fs::fchmod(folder, mode).map_err(fail));
        }
        self.allowed(item)?;
        let Some(folder) = folders.last() else {
            return Err(ToolError::internal("copying without a folder"));
        };
        match item.seen.kind() {
            EntryKind::Folder => folders.push(make_folder(folder, item.name).map_err(fail)?),
            EntryKind::Symlink => {
                let place = self.source.place.at(&self.source.real.join(item.path));
                place.lookup(OFlags::PATH).map_err(|errno| match errno {
                    Errno::NOENT => {
                        fail(Errno::LOOP).hint("The link leads nowhere; remove it before copying.")
                    }
                    errno => fail(errno),
                })?;
                let target = rustix::fs::readlinkat(item.folder, item.name, Vec::new()).map_err(fail)?;
                rustix::fs::symlinkat(target, folder, item.name).map_err(fail)?;
                links.push(item.path.to_owned());
            }
            EntryKind::File | EntryKind::Other => self.file(item, folder)?,
        }
        Ok(())
    }

    /// Nothing becomes protected by being copied, but what is protected may be copied along.
    fn allowed(&self, item: &Item<'_>) -> Result<(), ToolError> {
        let workspace = self.batch.workspace;
        let rule = |spot: &Spot| {
            workspace.protects(spot.place.root(), &spot.real.join(item.path)).map(str::to_owned)
        };
        let from = self.source.place.at(&self.source.real.join(item.path));
        workspace.guard_reading(&from, &self.source.place.join(item.path).display())?;
        match (rule(self.source), rule(self.target)) {
            (None, Some(pattern)) => Err(protected(&self.target.place.join(item.path).display(), &pattern)),
            _ => Ok(()),
        }
    }

    fn file(&self, item: &Item<'_>, folder: &OwnedFd) -> Result<(), ToolError> {
        let place = self.source.place.join(item.path);
        self.batch.workspace.check_file(&place, &item.seen)?;
        let fail = |errno| refusal(&place, errno);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut from = File::from(open_entry(item.folder, item.name, flags).map_err(fail)?);
        if seen::about(&from).map_err(fail)?.inode() != item.seen.inode() {
            return Err(super::resolve::restless(&place));
        }
        let mut to = names::create(folder, item.name, Mode::RUSR | Mode::WUSR).map_err(fail)?;
        std::io::copy(&mut from, &mut to).map_err(|error| refusal_io(&place, error))?;
        rustix::fs::fchmod(&to, Mode::from_raw_mode(item.seen.mode() & 0o777)).map_err(fail)
    }
}

fn make_folder(folder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(folder.as_fd(), name, Mode::RWXU)?;
    open_entry(folder, name, OFlags::RDONLY | OFlags::DIRECTORY)
}
