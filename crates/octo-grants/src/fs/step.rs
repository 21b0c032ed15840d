//! One part of a batch: looked at, prepared beside the file, put in place, and taken back when another part fails.

use super::batch::{Act, Batch, Content, Order};
use super::hash::{Hashing, expect, pour};
use super::intents::{At, Note};
use super::resolve::{open_entry, parent_of, refusal, refusal_io, reopen, restless};
use super::root::State;
use super::seen::{self, Seen};
use super::undo::{FILE_BYTES, Kept, Link, Whose};
use super::{EntryKind, Written, names};
use octo_model::{Kind, ToolError};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;

pub(super) struct Step<'a> {
    pub order: Order<'a>,
    before: Option<Seen>,
    /// Names for the new file and for the old one.
    temp: OsString,
    spare: OsString,
    /// The new file.
    fresh: Option<Seen>,
    /// Of the new content; of the old content where there is no new one.
    hash: String,
    kept: Option<Kept>,
    /// Under which name the old file waits for the end of the batch.
    aside: Option<OsString>,
    done: bool,
}

impl<'a> Step<'a> {
    pub fn new(order: Order<'a>) -> Result<Self, ToolError> {
        Ok(Self {
            order,
            before: None,
            temp: names::temporary().map_err(ToolError::internal)?,
            spare: names::aside().map_err(ToolError::internal)?,
            fresh: None,
            hash: String::new(),
            kept: None,
            aside: None,
            done: false,
        })
    }

    fn refusal(&self, errno: Errno) -> ToolError {
        refusal(&self.order.spot.place, errno)
    }

    /// Checks what is there against what the caller expects, and keeps it for undoing.
    pub fn inspect(&mut self, batch: &Batch<'_>) -> Result<(), ToolError> {
        let spot = &self.order.spot;
        self.before = spot.look()?;
        match (&self.order.act, &self.before) {
            (Act::Put { if_hash: Some(wanted), .. }, None) => expect(&spot.place.display(), wanted, None)?,
            (Act::Put { .. }, None) => {}
            (Act::Put { create_new: true, .. }, Some(_)) => return Err(self.refusal(Errno::EXIST)),
            (Act::Put { .. } | Act::Remove { .. }, Some(seen)) => {
                batch.workspace.check_file(&spot.place, seen)?
            }
            (Act::Remove { .. } | Act::Move { .. }, None) => return Err(self.refusal(Errno::NOENT)),
            (Act::Move { to }, Some(_)) if to.look()?.is_some() => {
                return Err(refusal(&to.place, Errno::EXIST));
            }
            (Act::Move { .. }, Some(_)) => {}
        }
        self.read_before(batch)
    }

    /// Hashes the old content and keeps a copy, as far as either is needed.
    fn read_before(&mut self, batch: &Batch<'_>) -> Result<(), ToolError> {
        let (wanted, needed) = match &self.order.act {
            // What is not kept need not be read, however large it is.
            Act::Put { if_hash, .. } | Act::Remove { if_hash } => (*if_hash, if_hash.is_some()),
            Act::Move { .. } => (None, true),
        };
        let spot = &self.order.spot;
        let undos = batch.workspace.memory().map(|state| &state.undos);
        let small = self.before.is_none_or(|before| before.size() <= FILE_BYTES);
        let keeps = batch.remember && small && !matches!(self.order.act, Act::Move { .. });
        self.kept = match undos.filter(|_| keeps) {
            Some(undos) => {
                let (root, by) = (&spot.place.root().path, batch.workspace.by());
                Some(undos.begin(&Whose { root, real: &spot.real, by }, &batch.tx)?)
            }
            None => None,
        };
        let Some(before) = self.before.filter(|before| before.kind() == EntryKind::File) else {
            return Ok(());
        };
        if !needed && self.kept.is_none() {
            return Ok(());
        }
        let file = match self.open(&before) {
            Ok(file) => file,
            // Whoever may only write a file can still replace it, but not take that back.
            Err(error) if error.kind == Kind::Denied && wanted.is_none() => {
                self.unkeep(batch.workspace.memory());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let spot = &self.order.spot;
        let failed = |error| refusal_io(&spot.place, error);
        let hash = match &mut self.kept {
            Some(kept) => {
                let mut to = Hashing::new(&mut kept.file);
                pour(file, &mut to).map_err(failed)?;
                to.finish()
            }
            None => {
                let mut to = Hashing::new(std::io::sink());
                pour(file, &mut to).map_err(failed)?;
                to.finish()
            }
        };
        if let Some(wanted) = wanted {
            expect(&spot.place.display(), wanted, Some(&hash))?;
        }
        self.hash = hash;
        Ok(())
    }

    /// The old file, as long as it is still the one that was looked at.
    fn open(&self, before: &Seen) -> Result<File, ToolError> {
        let spot = &self.order.spot;
        let found =
            open_entry(&spot.folder, &spot.leaf, OFlags::PATH).map_err(|errno| self.refusal(errno))?;
        if !seen::about(&found).is_ok_and(|now| now.unchanged(before)) {
            return Err(restless(&spot.place));
        }
        reopen(&found, OFlags::empty()).map(File::from).map_err(|errno| self.refusal(errno))
    }

    /// Writes the new content into a file beside the old one.
    pub fn stage(&mut self, batch: &Batch<'_>) -> Result<(), ToolError> {
        let spot = &self.order.spot;
        let beside = |name: &OsString| At {
            root: spot.place.root().path.clone(),
            path: parent_of(&spot.real).join(name),
        };
        if !matches!(self.order.act, Act::Move { .. }) && self.before.is_some() {
            batch.tx.note(&Note::Temp(beside(&self.spare)))?;
        }
        let Act::Put { content, mode, .. } = &self.order.act else { return Ok(()) };
        batch.tx.note(&Note::Temp(beside(&self.temp)))?;
        // A new file gets what the process gives to new files; one with a mode of its own is private until it has it.
        let private = mode.is_some() || self.before.is_some();
        let first = Mode::from_raw_mode(if private { 0o600 } else { 0o666 });
        let mut file = names::create(&spot.folder, &self.temp, first).map_err(|errno| self.refusal(errno))?;
        let failed = |error| refusal_io(&spot.place, error);
        let mut to = Hashing::new(&mut file);
        match content {
            Content::Bytes(bytes) => to.write_all(bytes).map_err(failed)?,
            Content::File(from) => {
                pour(*from, &mut to).map_err(failed)?;
            }
            Content::Append(bytes) => {
                if let Some(before) = &self.before {
                    pour(self.open(before)?, &mut to).map_err(failed)?;
                }
                to.write_all(bytes).map_err(failed)?;
            }
        }
        self.hash = to.finish();
        dress(&file, self.before.as_ref(), *mode).map_err(|errno| self.refusal(errno))?;
        file.sync_all().map_err(failed)?;
        self.fresh = Some(seen::about(&file).map_err(|errno| self.refusal(errno))?);
        Ok(())
    }

    /// What the next start has to know, should this process die before the batch is complete.
    pub fn note(&self) -> Note {
        let at = Batch::at(&self.order.spot);
        let id = |seen: &Option<Seen>| seen.map(|seen| seen.id()).unwrap_or_default();
        match &self.order.act {
            Act::Put { .. } if self.before.is_none() => Note::Create { at, id: id(&self.fresh) },
            Act::Put { .. } => {
                Note::Replace { at, temp: self.temp.clone(), old: self.spare.clone(), id: id(&self.fresh) }
            }
            Act::Remove { .. } => Note::Remove { at, old: self.spare.clone() },
            Act::Move { to } => Note::Move { from: at, to: Batch::at(to), id: id(&self.before) },
        }
    }

    /// Changes the name, unless somebody else was quicker.
    pub fn commit(&mut self) -> Result<(), ToolError> {
        let spot = &self.order.spot;
        let (folder, leaf) = (&spot.folder, spot.leaf.as_os_str());
        let same = |now: &Seen, before: &Seen| match self.order.act {
            // Other parts of the batch may have changed what is in a folder that is renamed.
            Act::Move { .. } => now.inode() == before.inode(),
            Act::Put { .. } | Act::Remove { .. } => now.unchanged(before),
        };
        if let Some(before) = &self.before
            && !spot.look()?.is_some_and(|now| same(&now, before))
        {
            return Err(restless(&spot.place));
        }
        match (&self.order.act, &self.before) {
            (Act::Put { create_new, .. }, None) => {
                names::rename_new(folder, &self.temp, folder, leaf).map_err(|errno| match errno {
                    Errno::EXIST if !create_new => restless(&spot.place),
                    errno => self.refusal(errno),
                })?;
            }
            (Act::Put { .. }, Some(before)) => {
                let aside =
                    names::swap(folder, &self.temp, leaf, &self.spare).map_err(|e| self.refusal(e))?;
                // What came out must be what was read; between the look and the swap somebody may have changed it.
                let same =
                    aside != self.temp || seen::entry(folder, aside).is_ok_and(|now| now.unchanged(before));
                if !same {
                    let error = restless(&spot.place);
                    if names::swap(folder, aside, leaf, &self.spare).is_err() {
                        self.spare_everything();
                    }
                    return Err(error);
                }
                self.aside = Some(aside.to_owned());
            }
            (Act::Remove { .. }, Some(before)) => {
                names::rename_new(folder, leaf, folder, &self.spare).map_err(|errno| self.refusal(errno))?;
                if !seen::entry(folder, &self.spare).is_ok_and(|now| now.unchanged(before)) {
                    let error = restless(&spot.place);
                    if names::rename_new(folder, &self.spare, folder, leaf).is_err() {
                        self.spare_everything();
                    }
                    return Err(error);
                }
                self.aside = Some(self.spare.clone());
            }
            (Act::Move { to }, Some(_)) => {
                names::rename_new(folder, leaf, &to.folder, &to.leaf).map_err(|errno| across(to, errno))?;
            }
            (Act::Remove { .. } | Act::Move { .. }, None) => return Err(self.refusal(Errno::NOENT)),
        }
        self.done = true;
        Ok(())
    }

    /// Puts back what was there before. What somebody else has changed since is left to them.
    pub fn take_back(&mut self) {
        if !std::mem::take(&mut self.done) {
            return;
        }
        let spot = &self.order.spot;
        let (folder, leaf) = (&spot.folder, spot.leaf.as_os_str());
        let ours = spot
            .look()
            .ok()
            .flatten()
            .zip(self.fresh)
            .is_some_and(|(now, fresh)| now.inode() == fresh.inode());
        let result = match (&self.order.act, &self.aside) {
            (Act::Put { .. }, None) if ours => rustix::fs::unlinkat(folder, leaf, AtFlags::empty()),
            (Act::Put { .. }, Some(aside)) if ours => rustix::fs::renameat(folder, aside, folder, leaf),
            (Act::Remove { .. }, Some(aside)) => names::rename_new(folder, aside, folder, leaf),
            (Act::Move { to }, _) => names::rename_new(&to.folder, &to.leaf, folder, leaf),
            _ => Ok(()),
        };
        if let Err(errno) = result {
            tracing::error!(%errno, "a file could not be put back after a failed change");
            self.spare_everything();
        }
    }

    /// Leaves somebody's content under a name of ours rather than lose it.
    fn spare_everything(&mut self) {
        tracing::error!(path = %self.order.spot.real.display(), kept = ?[&self.temp, &self.spare], "content is left aside");
        self.aside = None;
        self.temp = OsString::new();
        self.spare = OsString::new();
    }

    /// Removes what is not needed any more, whether the batch went well or not.
    pub fn clean(&mut self, memory: Option<&State>) {
        let folder = &self.order.spot.folder;
        // Whatever had the temporary name is in place by now, or is not wanted.
        for name in [&self.temp, &self.spare].into_iter().filter(|name| names::ours(name)) {
            names::moment();
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
        if !self.done {
            self.unkeep(memory);
        }
    }

    fn unkeep(&mut self, memory: Option<&State>) {
        if let Some((kept, state)) = self.kept.take().zip(memory) {
            state.undos.drop_kept(&kept);
        }
    }

    pub fn written(mut self, batch: &Batch<'_>, link: &Link) -> Result<Written, ToolError> {
        let removed = matches!(self.order.act, Act::Remove { .. });
        let mode = self.before.map(|before| before.mode());
        let after = (!removed).then_some(self.hash.as_str());
        let undo = self.kept.take().zip(batch.workspace.memory()).is_some_and(|(kept, state)| {
            let published = state.undos.publish(kept, mode, after, link);
            published.inspect_err(|error| tracing::warn!(%error, "a change cannot be undone")).is_ok()
        });
        let seen = self.fresh.or(self.before).ok_or_else(|| self.refusal(Errno::NOENT))?;
        Ok(Written { created: self.before.is_none(), stat: seen.stat(), hash: self.hash, undo })
    }
}

/// Owner and mode of the old file, as far as we may give them.
fn dress(file: &File, before: Option<&Seen>, mode: Option<u32>) -> Result<(), Errno> {
    let mut keeps_owner = true;
    if let Some(before) = before {
        let (user, group) = before.owner();
        if seen::about(file)?.owner() != (user, group) {
            let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            keeps_owner = rustix::fs::fchown(file, owner.0, owner.1).is_ok();
        }
    }
    match mode.or(before.map(Seen::mode)) {
        // The bits that lend the owner's rights are not for somebody else's file.
        Some(mode) if !keeps_owner => rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o1777)),
        Some(mode) => rustix::fs::fchmod(file, Mode::from_raw_mode(mode)),
        None => Ok(()),
    }
}

fn across(to: &super::resolve::Spot, errno: Errno) -> ToolError {
    match errno {
        Errno::XDEV => ToolError::invalid(format!("`{}` is on another file system.", to.place.display()))
            .hint("Write the new file and remove the old one instead of renaming."),
        errno => refusal(&to.place, errno),
    }
}
