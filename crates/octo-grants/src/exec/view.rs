//! What programs see of the file system: one table, from which bubblewrap's mounts and Landlock's rules follow.

use super::start::Order;
use super::{ExecSpec, Program};
use octo_model::ToolError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How a path is seen. Paths are ordered so that a folder comes before what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Part of the system or of a toolchain.
    System,
    /// A link, as on the real system.
    Link(PathBuf),
    /// A root, or something the job may read.
    Read,
    Write,
    /// Covered, since it lies within something that is seen.
    Hidden,
}

#[derive(Debug)]
pub(super) struct View {
    pub table: BTreeMap<PathBuf, Seen>,
    /// Links in the program's private home: where toolchains look for themselves.
    pub home_links: Vec<(PathBuf, PathBuf)>,
}

const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"];

/// Of `/etc` only what programs cannot do without.
const SETTINGS: [&str; 18] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "ssl",
];

impl View {
    pub fn new(spec: &ExecSpec, home: Option<&Path>, order: Option<&Order>) -> Self {
        let mut view = Self { table: BTreeMap::new(), home_links: Vec::new() };
        for path in SYSTEM {
            view.add_system(Path::new(path));
        }
        for name in SETTINGS {
            let path = Path::new("/etc").join(name);
            if path.exists() {
                view.table.insert(path, Seen::System);
            }
        }
        // A home within the system's own folders belongs to no person.
        let home = home.filter(|home| {
            !SYSTEM.iter().any(|path| Path::new(path).starts_with(home)) && !home.starts_with("/usr")
        });
        let private: Vec<&Path> = home.into_iter().chain([spec.state.as_path()]).collect();
        for folder in std::env::split_paths(&spec.path).filter(|folder| folder.is_absolute()) {
            if let Ok(folder) = folder.canonicalize() {
                view.add_toolchain(&folder, &private);
            }
        }
        for path in order.iter().flat_map(|order| &order.readable) {
            view.table.insert(path.clone(), Seen::Read);
        }
        for (path, writes) in order.iter().flat_map(|o| o.writable.iter().map(|path| (path, o.writes))) {
            view.table.insert(path.clone(), if writes { Seen::Write } else { Seen::Read });
        }
        for root in spec.workspace.roots() {
            let writes = root.writable && order.is_some_and(|order| order.writes);
            view.table.insert(root.path.clone(), if writes { Seen::Write } else { Seen::Read });
        }
        if let Some(order) = order.filter(|order| matches!(order.program, Program::Shell(_))) {
            view.keep_repositories(order);
        }
        if view.table.contains_key(Path::new("/")) {
            // They are there.
            view.table.retain(|_, seen| !matches!(seen, Seen::Link(_)));
        }
        view.hide(&spec.state, |_| true);
        if let Some(home) = home {
            view.hide(home, |seen| *seen == Seen::System);
        }
        view
    }

    /// A command line does not write to the repositories around it: a hook or a setting planted there would run outside the
    /// sandbox the next time that somebody uses git. The git tools do, and run nothing of it.
    fn keep_repositories(&mut self, order: &Order) {
        let root = order.cwd.root();
        let folders = root.path.join(order.cwd.inside());
        for folder in folders.ancestors().take_while(|folder| folder.starts_with(&root.path)) {
            let data = folder.join(".git");
            if data.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                self.table.insert(data, Seen::Read);
            }
        }
    }

    fn add_system(&mut self, path: &Path) {
        match std::fs::read_link(path) {
            Ok(target) => drop(self.table.insert(path.to_owned(), Seen::Link(target))),
            Err(_) if path.is_dir() => drop(self.table.insert(path.to_owned(), Seen::System)),
            Err(_) => {}
        }
    }

    /// A folder of the search path, with the rest of the toolchain that it belongs to.
    fn add_toolchain(&mut self, folder: &Path, private: &[&Path]) {
        if SYSTEM.iter().any(|path| folder.starts_with(path)) {
            return;
        }
        let holds_private = |path: &Path| private.iter().any(|private| private.starts_with(path));
        let parent = folder.parent().unwrap_or(folder);
        let name_is = |path: &Path, name: &str| path.file_name().is_some_and(|is| is == name);
        let whole = ["bin", "sbin", "shims"].iter().any(|name| name_is(folder, name))
            // These hold credentials and much else.
            && !name_is(parent, ".cargo") && !name_is(parent, ".local") && !holds_private(parent);
        if folder.starts_with("/nix/store") {
            self.table.insert("/nix/store".into(), Seen::System);
        } else if whole {
            self.table.insert(parent.to_owned(), Seen::System);
        } else if !holds_private(folder) {
            self.table.insert(folder.to_owned(), Seen::System);
        }
        if name_is(parent, ".cargo") {
            let rustup = parent.with_file_name(".rustup");
            for (target, link) in [
                (rustup, ".rustup"),
                (parent.join("registry"), ".cargo/registry"),
                (parent.join("git"), ".cargo/git"),
            ] {
                // A folder may stand in the search path twice, and two toolchains may want the same link: the first has it.
                let is_free = self.home_links.iter().all(|(taken, _)| taken != Path::new(link));
                if is_free && target.is_dir() {
                    self.table.insert(target.clone(), Seen::System);
                    self.home_links.push((link.into(), target));
                }
            }
        }
    }

    /// Covers a path where the nearest thing that is seen and holds it is one of `these`.
    fn hide(&mut self, path: &Path, these: impl Fn(&Seen) -> bool) {
        if self.above(path).is_some_and(these) {
            self.table.insert(path.to_owned(), Seen::Hidden);
        }
    }

    fn above(&self, path: &Path) -> Option<&Seen> {
        path.ancestors().find_map(|above| self.table.get(above)).filter(|seen| **seen != Seen::Hidden)
    }

    /// What Landlock lets a program read and write. It can open paths but not cover them again.
    pub fn rules(&self) -> Result<(Vec<OsString>, Vec<OsString>), ToolError> {
        let (mut read, mut write) = (Vec::new(), Vec::new());
        for (path, seen) in &self.table {
            let covers =
                |(hidden, seen): (&PathBuf, &Seen)| *seen == Seen::Hidden && hidden.starts_with(path);
            let covered = self.table.iter().any(covers);
            match seen {
                Seen::System | Seen::Link(_) if covered => {}
                Seen::System | Seen::Link(_) => read.push(path.clone().into_os_string()),
                Seen::Hidden => {}
                Seen::Read | Seen::Write if covered => {
                    return Err(ToolError::unavailable(
                        "Programs cannot run here: the hub's own data lies within a root, and this sandbox cannot hide it.",
                    )
                    .hint("Ask the operator to keep the hub's data outside the roots, or to install bubblewrap."));
                }
                Seen::Read => read.push(path.clone().into_os_string()),
                Seen::Write => write.push(path.clone().into_os_string()),
            }
        }
        Ok((read, write))
    }
}
