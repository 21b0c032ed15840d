//! Renames, within a root, between roots and between file systems.

use super::batch::{Act, Content, Order, lock};
use super::copy::copy_folder;
use super::protect::{SETTINGS, protected};
use super::resolve::{Links, Spot, refusal};
use super::tree::walk;
use super::{EntryKind, Fs, Opened, Place, names};
use octo_model::ToolError;
use rustix::io::Errno;

impl Fs<super::Write> {
    /// Renames, within a root or between roots; without `overwrite` the new name must be free (`RENAME_NOREPLACE`).
    pub fn rename(&self, from: &Place, to: &Place, overwrite: bool) -> Result<(), ToolError> {
        let (old, new) = (Spot::new(from, Links::Keep)?, Spot::new(to, Links::Keep)?);
        self.workspace().guard(&old)?;
        self.workspace().guard(&new)?;
        let locks = lock([&old, &new].into_iter())?;
        let seen = old.must()?;
        // The system takes this for done and does nothing.
        if overwrite && new.look()?.is_some_and(|there| there.inode() == seen.inode()) {
            return Err(ToolError::invalid(format!("`{}` and `{}` are the same.", from.told(), to.told()))
                .hint("Give another new name; one of two names of a file goes away by deleting it."));
        }
        if seen.kind() == EntryKind::Folder {
            self.keeps_protection(&old, &new)?;
        }
        let renamed = if overwrite {
            rustix::fs::renameat(&old.folder, &old.leaf, &new.folder, &new.leaf)
        } else {
            names::rename_new(&old.folder, &old.leaf, &new.folder, &new.leaf)
        };
        match renamed {
            Ok(()) => {
                names::settle(&new.folder).map_err(|errno| refusal(to, errno))?;
                names::settle(&old.folder).map_err(|errno| refusal(from, errno))
            }
            Err(Errno::XDEV) => {
                drop(locks);
                self.carry_over(from, old, to, overwrite, seen.kind())
            }
            Err(errno @ (Errno::NOENT | Errno::ACCESS)) => Err(refusal(from, errno)),
            Err(errno) => Err(refusal(to, errno)),
        }
    }

    /// What is in a folder must be as protected under its new name as it was, or renaming twice would be a way around it.
    pub(super) fn keeps_protection(&self, old: &Spot, new: &Spot) -> Result<(), ToolError> {
        let rules = self.workspace().protected();
        walk(&old.folder, &old.leaf, &old.fail(), &mut |item| {
            let before = rules.by(old.place.root(), &old.real.join(item.path));
            let after = rules.by(new.place.root(), &new.real.join(item.path));
            match (before, after) {
                // Wherever they went, the hub would no longer find them.
                (Some(SETTINGS), _) => Err(protected(&old.place.join(item.path).told(), SETTINGS)),
                (Some(pattern), None) => Err(protected(&old.place.join(item.path).told(), pattern)),
                (None, Some(pattern)) => Err(protected(&new.place.join(item.path).told(), pattern)),
                _ => Ok(()),
            }
        })
    }

    /// To another file system: a copy, and then the old one goes.
    fn carry_over(
        &self,
        from: &Place,
        old: Spot,
        to: &Place,
        overwrite: bool,
        kind: EntryKind,
    ) -> Result<(), ToolError> {
        match kind {
            EntryKind::Folder => {
                self.nothing_protected(&old)?;
                copy_folder(self.workspace(), &old, to)?;
                self.remove_tree(from).map(|_| ())
            }
            EntryKind::File => {
                let Opened { file, stat, .. } = self.open_file(from)?;
                self.workspace().batch(true, |batch| {
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
                    batch.carry_out(orders).map(|_| ())
                })
            }
            EntryKind::Symlink | EntryKind::Other => {
                Err(ToolError::invalid(format!("`{}` cannot be moved to another file system.", from.told()))
                    .hint("Only files and folders can; make it anew at the other place."))
            }
        }
    }
}
