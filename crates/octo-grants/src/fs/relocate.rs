//! Renames, within a root, between roots and between file systems.

use super::batch::{Act, Batch, Content, Order, lock};
use super::copy::copy_folder;
use super::hash::pour;
use super::intents::Tx;
use super::protect::{SETTINGS, protected};
use super::resolve::{Links, Spot, open_entry, refusal, reopen};
use super::seen::{self, Seen};
use super::tree::walk;
use super::undo::{FILE_BYTES, Kept, Link};
use super::write::changed_since;
use super::{EntryKind, Fs, Opened, RootedPath, names};
use octo_model::{Kind, ToolError};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;

impl Fs<super::Write> {
    /// Renames, within a root or between roots; without `overwrite` the new name must be free (`RENAME_NOREPLACE`).
    /// Tells whether it can be undone.
    pub fn rename(&self, from: &RootedPath, to: &RootedPath, overwrite: bool) -> Result<bool, ToolError> {
        self.renamed(from, to, overwrite, None)
    }

    /// Undoes a renaming of what has this id.
    pub(super) fn rename_back(&self, from: &RootedPath, to: &RootedPath, id: &str) -> Result<(), ToolError> {
        self.renamed(from, to, false, Some(id)).map(|_| ()).map_err(|error| match error.kind {
            Kind::NotFound | Kind::Conflict => changed_since(from),
            _ => error,
        })
    }

    fn renamed(
        &self,
        from: &RootedPath,
        to: &RootedPath,
        overwrite: bool,
        back: Option<&str>,
    ) -> Result<bool, ToolError> {
        let (old, new) = (Spot::new(from, Links::Keep)?, Spot::new(to, Links::Keep)?);
        self.workspace().guard(&old)?;
        self.workspace().guard(&new)?;
        let locks = lock([&old, &new].into_iter())?;
        let seen = old.must()?;
        if back.is_some_and(|id| seen.id() != id) {
            return Err(changed_since(from));
        }
        // The system takes this for done and does nothing.
        if overwrite && new.look()?.is_some_and(|there| there.inode() == seen.inode()) {
            return Err(ToolError::invalid(format!("`{}` and `{}` are the same.", from.display(), to.display()))
                .hint("Give another new name; one of two names of a file goes away by deleting it."));
        }
        if seen.kind() == EntryKind::Folder {
            self.keeps_protection(&old, &new)?;
        }
        let tx = self.workspace().begin();
        let replaced = if overwrite { new.look()? } else { None };
        let kept = if back.is_none() { self.keep_for_undo(&old, &new, replaced.as_ref(), &tx) } else { None };
        let renamed = if overwrite {
            rustix::fs::renameat(&old.folder, &old.leaf, &new.folder, &new.leaf)
        } else {
            names::rename_new(&old.folder, &old.leaf, &new.folder, &new.leaf)
        };
        match renamed {
            Ok(()) => {
                names::settle(&new.folder).map_err(|errno| refusal(to, errno))?;
                names::settle(&old.folder).map_err(|errno| refusal(from, errno))?;
                let link = Link::Move { id: seen.id(), from: Batch::at(&old), to: Batch::at(&new) };
                Ok(kept.is_some_and(|kept| self.publish_move(kept, replaced.as_ref(), &link)))
            }
            Err(errno) => {
                self.drop_kept(kept);
                match errno {
                    Errno::XDEV => {
                        drop(locks);
                        self.carry_over(from, old, to, overwrite, seen.kind())
                    }
                    Errno::NOENT | Errno::ACCESS => Err(refusal(from, errno)),
                    errno => Err(refusal(to, errno)),
                }
            }
        }
    }

    /// Entries for both names; the one of the new name has the content that it had. Nothing when that cannot be kept.
    fn keep_for_undo(
        &self,
        old: &Spot,
        new: &Spot,
        replaced: Option<&Seen>,
        tx: &Tx<'_>,
    ) -> Option<[Kept; 2]> {
        let undos = &self.workspace().memory()?.undos;
        let content = match replaced {
            Some(seen) if seen.kind() != EntryKind::File || seen.size() > FILE_BYTES => return None,
            Some(seen) => {
                let found = open_entry(&new.folder, &new.leaf, OFlags::PATH).ok()?;
                seen::about(&found).ok().filter(|now| now.unchanged(seen))?;
                Some(File::from(reopen(&found, OFlags::empty()).ok()?))
            }
            None => None,
        };
        let first = undos.begin(&self.whose(&Batch::at(old)), tx).ok()?;
        let Ok(mut second) = undos.begin(&self.whose(&Batch::at(new)), tx) else {
            undos.drop_kept(&first);
            return None;
        };
        let filled = content.map_or(Ok(0), |content| pour(content.take(FILE_BYTES + 1), &mut second.file));
        if filled.is_ok_and(|bytes| bytes <= FILE_BYTES) {
            return Some([first, second]);
        }
        self.drop_kept(Some([first, second]));
        None
    }

    fn publish_move(&self, [old, new]: [Kept; 2], replaced: Option<&Seen>, link: &Link) -> bool {
        let Some(state) = self.workspace().memory() else { return false };
        let first = state.undos.publish(old, None, None, link);
        let second = state.undos.publish(new, replaced.map(Seen::mode), None, link);
        let published = first.and(second);
        published.inspect_err(|error| tracing::warn!(%error, "a change cannot be undone")).is_ok()
    }

    fn drop_kept(&self, kept: Option<[Kept; 2]>) {
        if let Some(state) = self.workspace().memory() {
            kept.iter().flatten().for_each(|kept| state.undos.drop_kept(kept));
        }
    }

    /// What is in a folder must be as protected under its new name as it was, or renaming twice would be a way around it.
    pub(super) fn keeps_protection(&self, old: &Spot, new: &Spot) -> Result<(), ToolError> {
        let rules = self.workspace();
        walk(&old.folder, &old.leaf, &old.fail(), &mut |item| {
            let before = rules.protects(old.place.root(), &old.real.join(item.path));
            let after = rules.protects(new.place.root(), &new.real.join(item.path));
            match (before, after) {
                // Wherever they went, the hub would no longer find them.
                (Some(SETTINGS), _) => Err(protected(&old.place.join(item.path).display(), SETTINGS)),
                (Some(pattern), None) => Err(protected(&old.place.join(item.path).display(), pattern)),
                (None, Some(pattern)) => Err(protected(&new.place.join(item.path).display(), pattern)),
                _ => Ok(()),
            }
        })
    }

    /// To another file system: a copy, and then the old one goes.
    fn carry_over(
        &self,
        from: &RootedPath,
        old: Spot,
        to: &RootedPath,
        overwrite: bool,
        kind: EntryKind,
    ) -> Result<bool, ToolError> {
        match kind {
            EntryKind::Folder => {
                self.nothing_protected(&old)?;
                copy_folder(self.workspace(), &old, to)?;
                self.remove_tree(from).map(|_| false)
            }
            EntryKind::File => {
                let Opened { file, stat, .. } = self.open_file(from)?;
                self.workspace().batch(true, |batch| {
                    batch.linked = vec![vec![0, 1]];
                    let spot = batch.spot(to, Links::Keep, false)?;
                    let content = Content::File(&file);
                    let put = Act::Put {
                        content,
                        mode: Some(stat.mode & 0o777),
                        if_hash: None,
                        create_new: !overwrite,
                    };
                    let orders = vec![
                        Order { spot, act: put },
                        Order { spot: old, act: Act::Remove { if_hash: None } },
                    ];
                    batch.carry_out(orders).map(|written| written.iter().all(|one| one.undo))
                })
            }
            EntryKind::Symlink | EntryKind::Other => {
                Err(ToolError::invalid(format!("`{}` cannot be moved to another file system.", from.display()))
                    .hint("Only files and folders can; make it anew at the other place."))
            }
        }
    }
}
