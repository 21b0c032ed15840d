//! File system view of programs: one table, from which bubblewrap's mounts and Landlock's rules are derived.
//!
//! Roots are held by descriptors, and no program can replace a part of their paths: of roots within a writable root
//! only the outer one is mounted, and it contains the others. Nothing else within a writable root has a mount or rule
//! of its own, not even a repository's `.git`: bubblewrap resolves both ends of a mount by path, and another program
//! could replace them with a link at that moment. The only exception is the hub's state directory with its parent
//! directories, which are mounted for every program, so that none can rename them.

use super::ExecSpec;
use super::proxy_port;
use super::start_program::StartRequest;
use super::toolchains::Toolchains;
use crate::fs::{Root, path_of};
use octo_model::ToolError;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Visibility of a path. Ordered so that a directory comes before its contents.
#[derive(Debug, Clone)]
pub(super) enum PathVisibility {
    /// Part of the system.
    System,
    /// A link, as on the host.
    Link(PathBuf),
    /// Part of a toolchain.
    Toolchain(Arc<OwnedFd>),
    /// A root, or a path that the job may read.
    Read(Arc<OwnedFd>),
    Write(Arc<OwnedFd>),
    /// Hidden, because it is within a visible path.
    Hidden,
}

#[derive(Debug)]
pub(super) struct MountView {
    pub table: BTreeMap<PathBuf, PathVisibility>,
    /// Links in the program's private home, where toolchains look for themselves.
    pub home_links: Vec<(PathBuf, PathBuf)>,
}

/// Mounts common to all programs, opened at startup.
pub(super) struct HostMounts {
    pub toolchains: Toolchains,
    /// State directory of the hub.
    pub state: OwnedFd,
    /// Home directory of the hub's user, if it is a personal one.
    pub home: Option<PathBuf>,
}

impl HostMounts {
    pub fn open(spec: &ExecSpec, path: &crate::SearchPath) -> Result<Self, ToolError> {
        // A home within a system directory is not personal.
        let home = std::env::home_dir().filter(|home| {
            !SYSTEM_DIRS.iter().any(|path| Path::new(path).starts_with(home)) && !home.starts_with("/usr")
        });
        let private: Vec<&Path> = home.as_deref().into_iter().chain([spec.state.as_path()]).collect();
        let toolchains = Toolchains::open(path, &SYSTEM_DIRS, &private, home.as_deref());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let state = rustix::fs::open(&spec.state, flags, Mode::empty()).map_err(ToolError::internal)?;
        Ok(Self { toolchains, state, home })
    }
}

const SYSTEM_DIRS: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"];

/// The only parts of `/etc` that are visible.
const ETC_FILES: [&str; 18] = [
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

impl MountView {
    pub fn new(
        spec: &ExecSpec,
        ground: &HostMounts,
        order: Option<&StartRequest>,
    ) -> Result<Self, ToolError> {
        let home_links = ground.toolchains.home_links.clone();
        let mut view = Self { table: BTreeMap::new(), home_links };
        let roots = spec.workspace.roots();
        let writable: Vec<&Root> = roots.iter().map(AsRef::as_ref).filter(|root| root.writable).collect();
        // The mounted root contains what is beneath it.
        let beneath =
            |path: &Path| writable.iter().any(|root| path != root.path && path.starts_with(&root.path));
        for path in SYSTEM_DIRS {
            view.add_system(Path::new(path));
        }
        for name in ETC_FILES {
            let path = Path::new("/etc").join(name);
            if path.exists() {
                view.table.insert(path, PathVisibility::System);
            }
        }
        view.table.retain(|path, _| !beneath(path));
        for (path, held) in ground.toolchains.in_place() {
            view.table.insert(path.clone(), PathVisibility::Toolchain(Arc::clone(held)));
        }
        for root in roots.iter().filter(|root| !beneath(&root.path)) {
            root.check_in_place()?;
            let held = Arc::new(root.fd().try_clone_to_owned().map_err(ToolError::internal)?);
            let writes = root.writable && order.is_some_and(|order| order.writes);
            view.table.insert(
                root.path.clone(),
                if writes { PathVisibility::Write(held) } else { PathVisibility::Read(held) },
            );
        }
        if view.table.contains_key(Path::new("/")) {
            // The links already exist.
            view.table.retain(|_, seen| !matches!(seen, PathVisibility::Link(_)));
        }
        view.hide_state(spec, ground)?;
        if let Some(home) = &ground.home
            && matches!(
                view.nearest_visible(home),
                Some(PathVisibility::System | PathVisibility::Toolchain(_))
            )
        {
            view.table.insert(home.clone(), PathVisibility::Hidden);
        }
        if let Some(order) = order {
            if order.proxy_socket.is_some() {
                let held = proxy_port::open_opener(&spec.launcher).map_err(ToolError::internal)?;
                view.table.insert(proxy_port::OPENER_PATH.into(), PathVisibility::Read(Arc::new(held)));
            }
            for path in &order.readable {
                view.add_hub_path(path, false)?;
            }
            for path in &order.writable {
                view.add_hub_path(path, order.writes)?;
            }
        }
        Ok(view)
    }

    /// Hides the state directory if it is within a root. Every parent directory becomes a mount point, so that no
    /// program can rename one and find the data under another name.
    fn hide_state(&mut self, spec: &ExecSpec, ground: &HostMounts) -> Result<(), ToolError> {
        if self.nearest_visible(&spec.state).is_none() {
            return Ok(());
        }
        if path_of(ground.state.as_fd())? != spec.state {
            return Err(ToolError::denied("The hub's state directory was moved or removed.")
                .hint("Move it back, or ask the operator to restart the hub."));
        }
        let above = |root: &Root| spec.state.starts_with(&root.path) && self.table.contains_key(&root.path);
        if let Some(root) = spec.workspace.roots().iter().find(|root| above(root)) {
            let writes = matches!(self.table.get(&root.path), Some(PathVisibility::Write(_)));
            let way: Vec<&Path> =
                spec.state.ancestors().skip(1).take_while(|folder| *folder != root.path).collect();
            for folder in way {
                let inside = folder.strip_prefix(&root.path).map_err(ToolError::internal)?;
                let held = Arc::new(root.open_folder(inside).map_err(ToolError::internal)?);
                self.table.insert(
                    folder.to_owned(),
                    if writes { PathVisibility::Write(held) } else { PathVisibility::Read(held) },
                );
            }
        }
        self.table.insert(spec.state.clone(), PathVisibility::Hidden);
        Ok(())
    }

    /// A path of the hub that no tool can write; skipped if a root already contains it.
    fn add_hub_path(&mut self, path: &Path, writes: bool) -> Result<(), ToolError> {
        if matches!(self.nearest_visible(path), Some(PathVisibility::Read(_) | PathVisibility::Write(_))) {
            return Ok(());
        }
        match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(held) => {
                let held = Arc::new(held);
                self.table.insert(
                    path.to_owned(),
                    if writes { PathVisibility::Write(held) } else { PathVisibility::Read(held) },
                );
            }
            Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(ToolError::internal(errno)),
        }
        Ok(())
    }

    fn add_system(&mut self, path: &Path) {
        match std::fs::read_link(path) {
            Ok(target) => drop(self.table.insert(path.to_owned(), PathVisibility::Link(target))),
            Err(_) if path.is_dir() => drop(self.table.insert(path.to_owned(), PathVisibility::System)),
            Err(_) => {}
        }
    }

    /// The nearest visible path that contains this one.
    fn nearest_visible(&self, path: &Path) -> Option<&PathVisibility> {
        let nearest = path.ancestors().find_map(|above| self.table.get(above));
        nearest.filter(|seen| !matches!(seen, PathVisibility::Hidden))
    }

    /// Visible parts of the system, by path.
    pub fn system(&self) -> Vec<OsString> {
        let all = self
            .table
            .iter()
            .filter(|(_, seen)| matches!(seen, PathVisibility::System | PathVisibility::Link(_)));
        all.map(|(path, _)| path.clone().into_os_string()).collect()
    }

    /// Landlock rules for reading and writing. Landlock can allow paths but not hide parts of them again.
    pub fn landlock_rules(&self) -> Result<LandlockRules, ToolError> {
        let mut rules = LandlockRules::default();
        for (path, seen) in &self.table {
            let covers = |(hidden, seen): (&PathBuf, &PathVisibility)| {
                matches!(seen, PathVisibility::Hidden) && hidden.starts_with(path)
            };
            let covered = self.table.iter().any(covers);
            match seen {
                PathVisibility::Hidden => {}
                PathVisibility::System | PathVisibility::Link(_) | PathVisibility::Toolchain(_)
                    if covered => {}
                PathVisibility::System | PathVisibility::Link(_) => {
                    rules.system.push(path.clone().into_os_string())
                }
                PathVisibility::Read(_) | PathVisibility::Write(_) if covered => {
                    return Err(ToolError::unavailable(
                        "Programs cannot run: the state directory is inside a root, and this sandbox cannot hide it.",
                    )
                    .hint("Ask the operator to move the state directory out of the roots, or to install bubblewrap."));
                }
                PathVisibility::Toolchain(held) | PathVisibility::Read(held) => {
                    rules.read.push(Arc::clone(held))
                }
                PathVisibility::Write(held) => rules.write.push(Arc::clone(held)),
            }
        }
        Ok(rules)
    }
}

/// What Landlock lets a program open.
#[derive(Default)]
pub(super) struct LandlockRules {
    pub system: Vec<OsString>,
    pub read: Vec<Arc<OwnedFd>>,
    pub write: Vec<Arc<OwnedFd>>,
}
