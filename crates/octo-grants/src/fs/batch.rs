//! Changes of names: all of them or none, under a lock, noted before they begin.

use super::intents::{At, Note, Tx};
use super::resolve::{Links, Spot, refusal, split};
use super::step::Step;
use super::undo::Link;
use super::{EntryKind, RootedPath, Workspace, Written, names, seen};
use octo_model::ToolError;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the new content of a file comes from.
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    /// What is there, and then these.
    Append(&'a [u8]),
    File(&'a File),
}

pub(super) enum Act<'a> {
    Put { content: Content<'a>, mode: Option<u32>, if_hash: Option<&'a str>, create_new: bool },
    Remove { if_hash: Option<&'a str> },
    Move { to: Spot },
}

/// One part of a batch: what to do with a name.
pub(super) struct Order<'a> {
    pub spot: Spot,
    pub act: Act<'a>,
}

/// Writers of one process that want the same name wait for each other.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Locks the names of these spots, always in the same order.
pub(super) fn lock<'s>(
    spots: impl Iterator<Item = &'s Spot>,
) -> Result<Vec<MutexGuard<'static, ()>>, ToolError> {
    let mut places = Vec::new();
    for spot in spots {
        let folder = seen::about(&spot.folder).map_err(|errno| refusal(&spot.place, errno))?;
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((folder.inode(), &spot.leaf));
        places.push((hash % LOCKS.len() as u64) as usize);
    }
    places.sort_unstable();
    places.dedup();
    let locks = places.into_iter().filter_map(|at| LOCKS.get(at));
    Ok(locks.map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner)).collect())
}

/// One change of a workspace, of one file or of many.
pub(super) struct Batch<'w> {
    pub workspace: &'w Workspace,
    pub tx: Tx<'w>,
    /// Whether the change can be undone later.
    pub remember: bool,
    /// Orders that one undo takes back together, by their places in the list.
    pub linked: Vec<Vec<usize>>,
    /// Folders that were made for it.
    made: Vec<Spot>,
}

impl Workspace {
    /// Makes a change; folders that were made for one that fails are removed again.
    pub(super) fn batch<T>(
        &self,
        remember: bool,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut batch =
            Batch { workspace: self, tx: self.begin(), remember, linked: Vec::new(), made: Vec::new() };
        let result = work(&mut batch);
        if result.is_err() {
            for spot in batch.made.iter().rev() {
                // It may have got other content meanwhile, and then it stays.
                let _ = rustix::fs::unlinkat(&spot.folder, &spot.leaf, AtFlags::REMOVEDIR);
            }
        }
        result
    }
}

impl<'w> Batch<'w> {
    pub fn at(spot: &Spot) -> At {
        At { root: spot.place.root().path.clone(), path: spot.real.clone() }
    }

    /// Finds the name that is to be changed and refuses it when it must not be.
    pub fn spot(&mut self, place: &RootedPath, links: Links, mkdirs: bool) -> Result<Spot, ToolError> {
        if mkdirs {
            let (parent, _) = split(place)?;
            self.folders(&place.at(parent))?;
        }
        let spot = Spot::new(place, links)?;
        self.workspace.guard(&spot)?;
        Ok(spot)
    }

    /// Makes the folders of a path that are missing; tells whether any was.
    pub fn folders(&mut self, place: &RootedPath) -> Result<bool, ToolError> {
        let before = self.made.len();
        let mut here = PathBuf::new();
        let mut above: Option<OwnedFd> = None;
        for part in place.inside().components() {
            here.push(part);
            let place = place.at(&here);
            above = Some(match place.lookup(OFlags::PATH | OFlags::DIRECTORY) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => self.folder(&place, above)?,
                Err(errno) => return Err(refusal(&place, errno)),
            });
        }
        Ok(self.made.len() > before)
    }

    fn folder(&mut self, place: &RootedPath, above: Option<OwnedFd>) -> Result<OwnedFd, ToolError> {
        let (_, leaf) = split(place)?;
        let above = match above {
            Some(above) => above,
            None => place
                .at(Path::new("."))
                .lookup(OFlags::PATH | OFlags::DIRECTORY)
                .map_err(|e| refusal(place, e))?,
        };
        let spot = Spot::within(place, above, leaf)?;
        self.workspace.guard(&spot)?;
        if spot.look()?.is_some_and(|seen| seen.kind() == EntryKind::Symlink) {
            return Err(refusal(place, Errno::LOOP));
        }
        self.tx.note(&Note::Made(Self::at(&spot)))?;
        let made = rustix::fs::mkdirat(&spot.folder, &spot.leaf, Mode::from_raw_mode(0o777));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd =
            super::resolve::open_entry(&spot.folder, &spot.leaf, flags).map_err(|e| refusal(place, e))?;
        match made {
            Ok(()) => self.made.push(spot),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(refusal(place, errno)),
        }
        Ok(fd)
    }

    /// Makes new folders durable.
    pub fn settle_folders(&self) -> Result<(), ToolError> {
        self.made.iter().try_for_each(|spot| names::settle(&spot.folder).map_err(|e| refusal(&spot.place, e)))
    }

    /// Does all of it or nothing.
    pub fn carry_out(&self, orders: Vec<Order<'_>>) -> Result<Vec<Written>, ToolError> {
        let spots = orders.iter().flat_map(|order| [Some(&order.spot), order.act.target()]).flatten();
        let _locks = lock(spots)?;
        once(&orders)?;
        let links = self.links(&orders)?;
        let mut steps = Vec::with_capacity(orders.len());
        let result = self.attempt(orders, &mut steps);
        if result.is_err() {
            steps.iter_mut().rev().for_each(Step::take_back);
        }
        for step in &mut steps {
            step.clean(self.workspace.memory());
        }
        result?;
        steps.into_iter().zip(links).map(|(step, link)| step.written(self, &link)).collect()
    }

    /// For each order what is undone with it.
    fn links(&self, orders: &[Order<'_>]) -> Result<Vec<Link>, ToolError> {
        let mut links = vec![Link::None; orders.len()];
        for group in &self.linked {
            let id = names::random().map_err(ToolError::internal)?;
            for &at in group {
                let others = group.iter().filter(|&&other| other != at);
                let others = others.filter_map(|&other| orders.get(other)).map(|order| Self::at(&order.spot));
                if let Some(link) = links.get_mut(at) {
                    *link = Link::Group { id: id.clone(), others: others.collect() };
                }
            }
        }
        Ok(links)
    }

    fn attempt<'a>(&self, orders: Vec<Order<'a>>, steps: &mut Vec<Step<'a>>) -> Result<(), ToolError> {
        let several = orders.len() > 1;
        for order in orders {
            steps.push(Step::new(order)?);
        }
        for step in steps.iter_mut() {
            step.inspect(self)?;
        }
        for step in steps.iter_mut() {
            step.stage(self)?;
        }
        if several {
            steps.iter().try_for_each(|step| self.tx.note(&step.note()))?;
            self.tx.settle()?;
        }
        steps.iter_mut().try_for_each(Step::commit)?;
        self.settle_folders()?;
        let mut settled = HashSet::new();
        for spot in steps.iter().flat_map(|step| [Some(&step.order.spot), step.order.act.target()]).flatten()
        {
            let folder = seen::about(&spot.folder).map_err(|errno| refusal(&spot.place, errno))?;
            if settled.insert(folder.inode()) {
                names::settle(&spot.folder).map_err(|errno| refusal(&spot.place, errno))?;
            }
        }
        if several { self.tx.note(&Note::Done) } else { Ok(()) }
    }
}

impl Act<'_> {
    /// The other name that a part of a batch is about.
    pub fn target(&self) -> Option<&Spot> {
        match self {
            Self::Move { to } => Some(to),
            Self::Put { .. } | Self::Remove { .. } => None,
        }
    }
}

/// The parts of a batch must not meet: each is checked against what is there before any of them.
fn once(orders: &[Order<'_>]) -> Result<(), ToolError> {
    let mut names = HashSet::new();
    for spot in orders.iter().flat_map(|order| [Some(&order.spot), order.act.target()]).flatten() {
        let folder = seen::about(&spot.folder).map_err(|errno| refusal(&spot.place, errno))?;
        if !names.insert((folder.inode(), spot.leaf.clone())) {
            return Err(ToolError::invalid(format!("`{}` is named twice in one change.", spot.place.display()))
                .hint("Put everything that happens to one file into one part of the change."));
        }
    }
    Ok(())
}
