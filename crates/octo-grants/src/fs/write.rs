//! Changing files: whole or not at all.

use super::batch::{Act, Batch, Content, Order, lock};
use super::intents::At;
use super::resolve::{Links, Spot, refusal, split};
use super::undo::{Last, Link, Whose};
use super::{EntryKind, Fs, RootedPath, Stat, hash, names, seen};
use octo_model::{Kind, ToolError};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

/// How a file is written.
#[derive(Debug, Clone, Default)]
pub struct Write {
    /// SHA-256 in hexadecimal (or its first 16 digits or more) that the present content must have.
    pub if_hash: Option<String>,
    /// The file must be new.
    pub create_new: bool,
    /// Makes missing folders.
    pub mkdirs: bool,
}

/// What a write has done.
#[derive(Debug, Clone)]
pub struct Written {
    pub created: bool,
    pub stat: Stat,
    /// SHA-256 of the new content, in hexadecimal.
    pub hash: String,
    /// Whether the change can be undone.
    pub undo: bool,
}

/// One part of a change of several files.
#[derive(Debug, Clone)]
pub enum Change {
    /// Replaces or creates; the mode is set when given (`0o755` for a new executable), else kept.
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
    /// The new name must be free.
    Rename {
        from: RootedPath,
        to: RootedPath,
    },
}

/// What undoing has done.
#[derive(Debug, Clone)]
pub struct Undone {
    pub place: RootedPath,
    /// The file did not exist before the change, and does not any more.
    pub removed: bool,
    /// Other files that were taken back with it, because the change had renamed one to the other.
    pub others: Vec<Undone>,
}

impl Fs<super::Write> {
    /// Replaces or creates a file: temporary file, fsync, rename; mode kept.
    pub fn write(&self, place: &RootedPath, bytes: &[u8], options: &Write) -> Result<Written, ToolError> {
        self.put(place, Content::Bytes(bytes), options)
    }

    /// The same with `bytes` after what is there.
    pub fn append(&self, place: &RootedPath, bytes: &[u8], options: &Write) -> Result<Written, ToolError> {
        self.put(place, Content::Append(bytes), options)
    }

    fn put(&self, place: &RootedPath, content: Content<'_>, options: &Write) -> Result<Written, ToolError> {
        self.workspace().batch(true, |batch| {
            let order = put(batch, place, content, None, options)?;
            only(batch.carry_out(vec![order])?)
        })
    }

    /// All of the changes or none; what fails half way is put back. Answers for each change in turn: about a removed
    /// file what it was, about a renamed one what it is; a folder has no hash, nor a removed file that is not kept.
    pub fn change(&self, changes: Vec<Change>) -> Result<Vec<Written>, ToolError> {
        self.change_linked(changes, Vec::new())
    }

    /// The same; each group of changes, by their places in the list, is later undone together.
    pub fn change_linked(
        &self,
        changes: Vec<Change>,
        groups: Vec<Vec<usize>>,
    ) -> Result<Vec<Written>, ToolError> {
        self.workspace().batch(true, |batch| {
            batch.linked = groups;
            let mut orders = Vec::with_capacity(changes.len());
            for change in &changes {
                orders.push(match change {
                    Change::Put { place, bytes, mode, options } => {
                        put(batch, place, Content::Bytes(bytes), mode.map(|mode| mode & 0o777), options)?
                    }
                    Change::Remove { place, if_hash } => {
                        if_hash.as_deref().map_or(Ok(()), hash::check)?;
                        let spot = batch.spot(place, Links::Keep, false)?;
                        refuse_link(&spot)?;
                        Order { spot, act: Act::Remove { if_hash: if_hash.as_deref() } }
                    }
                    Change::Rename { from, to } => {
                        let spot = batch.spot(from, Links::Keep, false)?;
                        let to = batch.spot(to, Links::Keep, false)?;
                        if spot.must()?.kind() == EntryKind::Folder {
                            self.keeps_protection(&spot, &to)?;
                        }
                        Order { spot, act: Act::Move { to } }
                    }
                });
            }
            batch.carry_out(orders)
        })
    }

    /// True when the folder is new.
    pub fn make_folder(&self, place: &RootedPath, parents: bool) -> Result<bool, ToolError> {
        self.workspace().batch(true, |batch| {
            let there = match place.lookup(OFlags::PATH) {
                Ok(fd) => Some(seen::about(fd).map_err(|errno| refusal(place, errno))?),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(refusal(place, errno)),
            };
            match there.map(|seen| seen.kind()) {
                Some(EntryKind::Folder) => return Ok(false),
                Some(_) => {
                    return Err(refusal(place, Errno::EXIST).hint("It is no folder; choose another name."));
                }
                None => {}
            }
            let (parent, _) = split(place)?;
            if !parents {
                place.at(parent).find()?;
            }
            let new = batch.folders(place)?;
            batch.settle_folders()?;
            Ok(new)
        })
    }

    /// Removes a file, a link (never what it points to) or an empty folder.
    pub fn remove(&self, place: &RootedPath) -> Result<(), ToolError> {
        self.workspace().batch(true, |batch| {
            let spot = batch.spot(place, Links::Keep, false)?;
            let flags = match spot.must()?.kind() {
                EntryKind::File => {
                    return batch
                        .carry_out(vec![Order { spot, act: Act::Remove { if_hash: None } }])
                        .map(|_| ());
                }
                EntryKind::Folder => AtFlags::REMOVEDIR,
                EntryKind::Symlink | EntryKind::Other => AtFlags::empty(),
            };
            let _lock = lock(std::iter::once(&spot))?;
            rustix::fs::unlinkat(&spot.folder, &spot.leaf, flags).map_err(|errno| refusal(place, errno))?;
            names::settle(&spot.folder).map_err(|errno| refusal(place, errno))
        })
    }

    /// Takes back the caller's own last change of a file, unless somebody else has changed it since. Both names of a
    /// renaming are taken back together.
    pub fn undo(&self, place: &RootedPath) -> Result<Undone, ToolError> {
        if let Some((last, at)) = self.last_change(place, Links::Keep)?
            && let Link::Move { id, from, to } = last.link
        {
            return self.undo_move(place, &at, &id, &from, &to);
        }
        let Some((last, at)) = self.last_change(place, Links::Follow)? else { return Err(nothing(place)) };
        let mut all = vec![(self.place_of(place, &at)?, last)];
        if let Some((_, Last { link: Link::Group { id, others }, .. })) = all.first() {
            let (id, others) = (id.clone(), others.clone());
            for at in others {
                let other = self.place_of(place, &at)?;
                let last = self.last_at(&at)?;
                let same =
                    |last: &Last| matches!(&last.link, Link::Group { id: theirs, .. } if *theirs == id);
                all.push((other.clone(), last.filter(same).ok_or_else(|| changed_since(&other))?));
            }
        }
        self.workspace().batch(false, |batch| {
            let mut orders = Vec::with_capacity(all.len());
            for (place, last) in &all {
                let spot = batch.spot(place, Links::Keep, false)?;
                orders.push(Order { spot, act: undoing(last) });
            }
            batch.carry_out(orders).map(|_| ()).map_err(|error| match error.kind {
                Kind::NotFound | Kind::Conflict => changed_since(place),
                _ => error,
            })
        })?;
        let mut undone = Vec::with_capacity(all.len());
        for (other, last) in all {
            self.forget_change(&Batch::at(&Spot::new(&other, Links::Keep)?));
            undone.push(Undone { place: other, removed: last.before.is_none(), others: Vec::new() });
        }
        let others = undone.split_off(1);
        Ok(Undone { place: place.clone(), removed: undone.iter().all(|one| one.removed), others })
    }

    /// Gives a renamed entry its old name back, and what it replaced its content.
    fn undo_move(&self, place: &RootedPath, at: &At, id: &str, from: &At, to: &At) -> Result<Undone, ToolError> {
        let (old, new) = (self.place_of(place, from)?, self.place_of(place, to)?);
        let same = |last: &Last| matches!(&last.link, Link::Move { id: theirs, .. } if theirs == id);
        let replaced = self.last_at(to)?.filter(same).and_then(|last| last.before);
        self.rename_back(&new, &old, id)?;
        self.forget_change(from);
        let removed = replaced.is_none();
        if let Some((mode, bytes)) = replaced {
            self.workspace().batch(false, |batch| {
                let spot = batch.spot(&new, Links::Keep, false)?;
                let content = Content::Bytes(&bytes);
                let act = Act::Put { content, mode: Some(mode), if_hash: None, create_new: true };
                batch.carry_out(vec![Order { spot, act }]).map(|_| ())
            })?;
        }
        self.forget_change(to);
        let undone = |place: RootedPath, removed: bool| Undone { place, removed, others: Vec::new() };
        let (mut first, other) = match at == from {
            true => (undone(old, false), undone(new, removed)),
            false => (undone(new, removed), undone(old, false)),
        };
        first.others.push(other);
        Ok(first)
    }

    /// The caller's last change of what a place names, and where that is.
    fn last_change(&self, place: &RootedPath, links: Links) -> Result<Option<(Last, At)>, ToolError> {
        let spot = Spot::new(place, links)?;
        self.workspace().guard(&spot)?;
        let at = Batch::at(&spot);
        Ok(self.last_at(&at)?.map(|last| (last, at)))
    }

    fn last_at(&self, at: &At) -> Result<Option<Last>, ToolError> {
        let Some(state) = self.workspace().memory() else { return Ok(None) };
        state.undos.last(&self.whose(at)).map_err(ToolError::internal)
    }

    fn forget_change(&self, at: &At) {
        if let Some(state) = self.workspace().memory() {
            state.undos.remove(&self.whose(at));
        }
    }

    pub(super) fn whose<'a>(&'a self, at: &'a At) -> Whose<'a> {
        Whose { root: &at.root, real: &at.path, by: self.workspace().by() }
    }

    /// A place by its real path, spelled like another one where they share a root.
    fn place_of(&self, like: &RootedPath, at: &At) -> Result<RootedPath, ToolError> {
        if like.root().path == at.root {
            return Ok(like.at(&at.path));
        }
        let root = self.workspace().roots().iter().find(|root| root.path == at.root);
        root.map(|root| RootedPath::beneath(root, &at.path)).ok_or_else(|| nothing(like))
    }
}

fn nothing(place: &RootedPath) -> ToolError {
    ToolError::not_found(format!("There is no change of `{}` to undo.", place.display()))
        .hint("Only your last change of a file that was made here is kept, once, and not for large files.")
}

pub(super) fn changed_since(place: &RootedPath) -> ToolError {
    let message = format!("`{}` was changed again after the change to undo.", place.display());
    ToolError::new(Kind::Conflict, message).hint("Read it, and write what it should be.")
}

fn undoing(last: &Last) -> Act<'_> {
    let if_hash = last.after.as_deref();
    match &last.before {
        Some((mode, bytes)) => Act::Put {
            content: Content::Bytes(bytes),
            mode: Some(*mode),
            if_hash,
            create_new: if_hash.is_none(),
        },
        None => Act::Remove { if_hash },
    }
}

/// The order to put content at a place.
fn put<'a>(
    batch: &mut Batch<'_>,
    place: &RootedPath,
    content: Content<'a>,
    mode: Option<u32>,
    options: &'a Write,
) -> Result<Order<'a>, ToolError> {
    let if_hash = options.if_hash.as_deref();
    if_hash.map_or(Ok(()), hash::check)?;
    let spot = batch.spot(place, Links::Follow, options.mkdirs)?;
    Ok(Order { spot, act: Act::Put { content, mode, if_hash, create_new: options.create_new } })
}

/// A link is removed by itself, since it has no content that could be put back.
fn refuse_link(spot: &Spot) -> Result<(), ToolError> {
    if spot.must()?.kind() != EntryKind::Symlink {
        return Ok(());
    }
    Err(ToolError::invalid(format!("`{}` is a link.", spot.place.display()))
        .hint("Remove the link by itself, or name the file that it points to."))
}

fn only(written: Vec<Written>) -> Result<Written, ToolError> {
    written.into_iter().next().ok_or_else(|| ToolError::internal("a write without an answer"))
}
