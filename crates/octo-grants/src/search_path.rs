//! The search path of programs, looked at once when the hub starts.
//!
//! What runs outside a sandbox is looked up only where no tool can write: a folder beneath a writable root, or one that a link
//! leads into such a root for, may hold another program at any time. In the sandbox such folders stay in the search path.

use crate::exec::is_executable;
use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// How many links a path may lead through.
const MAX_LINKS: usize = 40;

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// A program that was found, held open: whatever has its name later, this one is run.
pub(crate) struct HeldProgram(pub OwnedFd);

/// The folders that programs are looked up in.
#[derive(Debug, Clone)]
pub struct SearchPath {
    whole: OsString,
    /// The real paths of those that no tool can write.
    trusted: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl SearchPath {
    /// `writable` are the real paths of the folders that tools and their programs can write.
    pub fn new(whole: OsString, writable: Vec<PathBuf>) -> Self {
        let mut trusted = Vec::new();
        for folder in std::env::split_paths(&whole).filter(|folder| folder.is_absolute()) {
            let real = real_path(&folder, &writable).filter(|real| is_owner_controlled(real));
            trusted.extend(real.filter(|real| !trusted.contains(real)));
        }
        Self { whole, trusted, writable }
    }

    /// As it was given: for programs in the sandbox.
    pub fn whole(&self) -> &OsStr {
        &self.whole
    }

    pub(crate) fn writable(&self) -> &[PathBuf] {
        &self.writable
    }

    /// The real paths of the folders that no tool can write.
    pub fn folders(&self) -> &[PathBuf] {
        &self.trusted
    }

    /// The search path of what runs outside the sandbox, and of what runs within it on the hub's behalf.
    pub fn trusted(&self) -> OsString {
        // Each came out of a search path, so none has a colon in it but by a link; such a one is of no use.
        let folders =
            self.trusted.iter().filter(|folder| !folder.as_os_str().as_encoded_bytes().contains(&b':'));
        std::env::join_paths(folders).unwrap_or_default()
    }

    /// A program in a folder that no tool can write, which is itself no link to where one can.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.is_empty() || program.contains(['/', '\0']) {
            return None;
        }
        self.trusted
            .iter()
            .map(|folder| folder.join(program))
            .find(|path| is_executable(path) && self.accepts(path))
    }

    /// Whether the way to a path leads through no folder that tools can write.
    pub(crate) fn accepts(&self, path: &Path) -> bool {
        real_path(path, &self.writable).is_some()
    }

    /// Finds a program and keeps it open.
    pub(crate) fn open_program(&self, program: &str) -> Option<HeldProgram> {
        let real = real_path(&self.find(program)?, &self.writable)?;
        rustix::fs::open(real, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok().map(HeldProgram)
    }
}

/// The real path, unless there is none or the way there leads through a folder of `writable`.
fn real_path(path: &Path, writable: &[PathBuf]) -> Option<PathBuf> {
    let mut left: VecDeque<OsString> = path_parts(path)?;
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = left.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        if writable.iter().any(|folder| next.starts_with(folder)) {
            return None;
        }
        if !next.symlink_metadata().ok()?.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        let target = std::fs::read_link(&next).ok().filter(|_| links <= MAX_LINKS)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        let mut way = path_parts(&target)?;
        way.append(&mut left);
        left = way;
    }
    Some(at)
}

fn path_parts(path: &Path) -> Option<VecDeque<OsString>> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(Some(part.as_os_str().to_owned())),
        Component::RootDir | Component::CurDir => Some(None),
        Component::Prefix(_) => None,
    };
    path.components().map(name).collect::<Option<Vec<_>>>().map(|all| all.into_iter().flatten().collect())
}

/// Whether nobody writes the folder but its owner, root and the hub's own group.
fn is_owner_controlled(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|about| {
        let group = about.gid() == 0 || about.gid() == rustix::process::getegid().as_raw();
        about.is_dir() && about.mode() & OTHERS_WRITE == 0 && (about.mode() & GROUP_WRITES == 0 || group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn folders_that_tools_can_write_are_left_out() {
        let ground = tempfile::tempdir().unwrap();
        let at = |name: &str| ground.path().canonicalize().unwrap().join(name);
        for folder in ["ws/venv/bin", "own/bin", "own/public", "own/group", "other"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let program = |path: &str| {
            fs::write(at(path), "#!/bin/sh\n").unwrap();
            fs::set_permissions(at(path), fs::Permissions::from_mode(0o755)).unwrap();
        };
        for path in ["ws/venv/bin/tool", "own/bin/fine", "own/public/tool", "other/far"] {
            program(path);
        }
        fs::set_permissions(at("own/public"), fs::Permissions::from_mode(0o777)).unwrap();
        symlink(at("ws/venv/bin"), at("own/in")).unwrap();
        symlink("../ws", at("own/way")).unwrap();
        symlink(at("other"), at("ws/out")).unwrap();
        symlink(at("own/bin"), at("own/alias")).unwrap();
        symlink(at("ws/venv/bin/tool"), at("own/bin/tool")).unwrap();
        symlink(at("own/loop"), at("own/loop")).unwrap();
        let whole = std::env::join_paths(
            [
                "ws/venv/bin",
                "own/in",
                "own/way/venv/bin",
                "ws/out",
                "own/public",
                "own/loop",
                "own/alias",
                "own/bin",
                "none",
            ]
            .map(at),
        )
        .unwrap();
        let path = SearchPath::new(whole.clone(), vec![at("ws")]);
        assert_eq!(path.folders(), [at("own/bin")]);
        assert_eq!(path.trusted(), at("own/bin").into_os_string());
        assert_eq!(path.whole(), whole);
        assert_eq!(path.find("fine"), Some(at("own/bin/fine")));
        assert_eq!(path.find("tool"), None, "it leads into the root");
        assert_eq!(path.find("far"), None);
        let all = SearchPath::new(whole, Vec::new());
        assert_eq!(all.folders(), [at("ws/venv/bin"), at("other"), at("own/bin")]);
    }
}
