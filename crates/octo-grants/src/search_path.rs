//! Search path of programs, resolved once at startup.
//!
//! Programs that run outside the sandbox are looked up only in directories that no tool can write. A directory
//! beneath a writable root, or reached through a link in one, may contain a different program at any time. In the
//! sandbox such directories remain in the search path.

use crate::exec::is_executable;
use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symlinks in a path.
const MAX_LINKS: usize = 40;

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// A program that is held open, so that replacing the file has no effect.
pub(crate) struct HeldProgram(pub OwnedFd);

/// Directories in which programs are looked up.
#[derive(Debug, Clone)]
pub struct SearchPath {
    whole: OsString,
    /// Real paths of the directories that no tool can write.
    trusted: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl SearchPath {
    /// `writable` lists the real paths of the directories that tools and their programs can write.
    pub fn new(whole: OsString, writable: Vec<PathBuf>) -> Self {
        let mut trusted = Vec::new();
        for folder in std::env::split_paths(&whole).filter(|folder| folder.is_absolute()) {
            let real = real_path(&folder, &writable).filter(|real| is_owner_controlled(real));
            trusted.extend(real.filter(|real| !trusted.contains(real)));
        }
        Self { whole, trusted, writable }
    }

    /// The unmodified search path, for programs in the sandbox.
    pub fn whole(&self) -> &OsStr {
        &self.whole
    }

    pub(crate) fn writable(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Real paths of the directories that no tool can write.
    pub fn folders(&self) -> &[PathBuf] {
        &self.trusted
    }

    /// Search path for programs outside the sandbox, and for those that run inside it on the hub's behalf.
    pub fn trusted(&self) -> OsString {
        // An entry of a search path contains no colon. A link target might; such a directory is skipped.
        let folders =
            self.trusted.iter().filter(|folder| !folder.as_os_str().as_encoded_bytes().contains(&b':'));
        std::env::join_paths(folders).unwrap_or_default()
    }

    /// Finds a program in a directory that no tool can write. The program itself must not link to a
    /// writable location.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.is_empty() || program.contains(['/', '\0']) {
            return None;
        }
        self.trusted
            .iter()
            .map(|folder| folder.join(program))
            .find(|path| is_executable(path) && self.accepts(path))
    }

    /// Whether the path, including its links, passes through no directory that tools can write.
    pub fn accepts(&self, path: &Path) -> bool {
        real_path(path, &self.writable).is_some()
    }

    /// Finds a program and holds it open.
    pub(crate) fn open_program(&self, program: &str) -> Option<HeldProgram> {
        let real = real_path(&self.find(program)?, &self.writable)?;
        rustix::fs::open(real, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok().map(HeldProgram)
    }
}

/// The real path, or `None` if it does not exist or passes through a directory in `writable`.
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

/// Whether only the owner, root and the hub's own group can write the directory.
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
