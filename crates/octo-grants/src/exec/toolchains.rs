//! Toolchains in the search path: which directories besides its own a program needs. They are opened once at startup.

use crate::SearchPath;
use crate::fs::path_of;
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Siblings of a `bin` in a home directory. The rest of the parent directory may contain credentials.
const BESIDE_BIN: &[&str] = &["include", "lib", "lib64", "libexec", "pyvenv.cfg", "share"];

/// Siblings of a shim directory: each shim is a script that asks its version manager for the actual program.
const BESIDE_SHIMS: &[&str] = &[
    "bin", "goenv.d", "installs", "lib", "libexec", "nodenv.d", "plugins", "pyenv.d", "rbenv.d", "share",
    "version", "versions",
];

/// Toolchains that need more, each recognized by something beside its `bin`.
const KNOWN_TOOLCHAINS: &[(&str, &[&str])] = &[
    // Go
    ("pkg/tool", &["VERSION", "go.env", "pkg", "src"]),
    // Java
    ("lib/modules", &["conf", "jmods", "release"]),
    // Volta
    ("tools/image", &["tools"]),
];

/// These contain credentials and much else beside their `bin`.
const PRIVATE_PARENTS: [&str; 2] = [".cargo", ".local"];

/// Parent directories of homes. Linuxbrew's is not personal.
const HOMES: [&str; 2] = ["/home", "/root"];
const LINUXBREW: &str = "/home/linuxbrew";

pub(super) struct Toolchains {
    /// Real paths, none of which a tool can write.
    folders: Vec<(PathBuf, Arc<OwnedFd>)>,
    /// Links in the program's private home, where toolchains look for themselves.
    pub home_links: Vec<(PathBuf, PathBuf)>,
}

impl Toolchains {
    /// `system` is visible anyway; parents of `private` must not become visible.
    pub fn open(path: &SearchPath, system: &[&str], private: &[&Path], home: Option<&Path>) -> Self {
        let mut all = Self { folders: Vec::new(), home_links: Vec::new() };
        for folder in path.folders() {
            if !system.iter().any(|path| folder.starts_with(path)) {
                all.add(folder, private, home);
            }
        }
        all
    }

    /// Those that are still at their path.
    pub fn in_place(&self) -> impl Iterator<Item = &(PathBuf, Arc<OwnedFd>)> {
        self.folders.iter().filter(|(path, held)| path_of(held.as_fd()).is_ok_and(|now| now == *path))
    }

    /// Adds a directory of the search path, with the rest of its toolchain.
    fn add(&mut self, folder: &Path, private: &[&Path], home: Option<&Path>) {
        let holds_private = |path: &Path| private.iter().any(|private| private.starts_with(path));
        let parent = folder.parent().unwrap_or(folder);
        let is_in_a_home = home.into_iter().chain(HOMES.map(Path::new)).any(|home| folder.starts_with(home))
            && !folder.starts_with(LINUXBREW);
        if folder.starts_with("/nix/store") {
            self.open_folder(Path::new("/nix/store"));
            return;
        }
        let has_kin = ["bin", "sbin", "shims"].iter().any(|name| is_named(folder, name))
            && !PRIVATE_PARENTS.iter().any(|name| is_named(parent, name))
            && !holds_private(parent);
        if has_kin && !is_in_a_home {
            self.open_folder(parent);
            return;
        }
        if !holds_private(folder) {
            self.open_folder(folder);
        }
        if has_kin {
            let beside = if is_named(folder, "shims") { BESIDE_SHIMS } else { BESIDE_BIN };
            let known = KNOWN_TOOLCHAINS
                .iter()
                .filter(|(mark, _)| parent.join(mark).exists())
                .flat_map(|(_, more)| *more);
            for name in beside.iter().chain(known) {
                self.open_folder(&parent.join(name));
            }
        }
        if is_named(parent, ".cargo") {
            self.add_cargo(parent);
        }
    }

    fn add_cargo(&mut self, cargo: &Path) {
        for (target, link) in [
            (cargo.with_file_name(".rustup"), ".rustup"),
            (cargo.join("registry"), ".cargo/registry"),
            (cargo.join("git"), ".cargo/git"),
        ] {
            // If two toolchains need the same link, the first one gets it.
            let is_free = self.home_links.iter().all(|(taken, _)| taken != Path::new(link));
            if is_free && self.open_folder(&target) {
                self.home_links.push((link.into(), target));
            }
        }
    }

    /// Opens an existing path; a link is not followed, because it may lead anywhere.
    fn open_folder(&mut self, path: &Path) -> bool {
        if self.folders.iter().any(|(known, _)| known == path) {
            return true;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(held) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
        // A link, or a path through one, has a different real path.
        let is_real = path_of(held.as_fd()).is_ok_and(|real| real == path)
            && path.symlink_metadata().is_ok_and(|about| !about.is_symlink());
        if is_real {
            self.folders.push((path.to_owned(), Arc::new(held)));
        }
        is_real
    }
}

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|is| is == name)
}
