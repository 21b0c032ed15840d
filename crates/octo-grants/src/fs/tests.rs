//! Attacks, races and crashes against the grant as a whole.

mod attacks;
mod crashes;
mod oracle;
mod races;
mod tree_cases;
mod undo_cases;
mod write_cases;

use super::{
    Fs, HardLinks, RootSpec, RootedPath, WorkPath, Workspace, WorkspaceSpec, Write, default_protected,
};
use octo_model::ToolError;
use std::path::{Path, PathBuf};

/// A root, a directory outside of it, and the state directory.
pub(super) struct FsFixture {
    pub fs: Fs<Write>,
    pub folder: tempfile::TempDir,
}

pub(super) fn error_kind(error: &ToolError) -> &'static str {
    error.kind.as_str()
}

/// Settings of `FsFixture`, given the directory that contains everything.
pub(super) fn spec(folder: &Path) -> WorkspaceSpec {
    let root = |name: &str, path: PathBuf, writable| RootSpec {
        name: name.into(),
        path,
        alias_path: (name == "ws").then(|| "/host/ws".into()),
        writable,
    };
    WorkspaceSpec {
        roots: vec![root("ws", folder.join("ws"), true), root("fixed", folder.join("fixed"), false)],
        protected: default_protected(),
        hard_links: HardLinks::Allow,
        state: Some(folder.join("state")),
        ..WorkspaceSpec::default()
    }
}

impl FsFixture {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut WorkspaceSpec)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ws", "fixed", "outside", "ws-evil"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("outside/secret"), "SECRET").unwrap();
        let mut spec = spec(folder.path());
        change(&mut spec);
        Self { fs: Fs::new(Workspace::open(spec).unwrap()), folder }
    }

    pub fn root_path(&self) -> &Path {
        &self.fs.workspace().roots()[0].path
    }

    /// A path for the test itself, beneath the root.
    pub fn raw(&self, path: &str) -> PathBuf {
        self.folder.path().join("ws").join(path)
    }

    pub fn outside(&self, path: &str) -> PathBuf {
        self.folder.path().join("outside").join(path)
    }

    pub fn at(&self, path: &str) -> RootedPath {
        self.fs.place(&WorkPath::from(path)).unwrap()
    }

    pub fn put(&self, path: &str, content: &str) {
        let path = self.raw(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.raw(path)).unwrap()
    }

    pub fn link(&self, path: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.raw(path)).unwrap();
    }

    /// Temporary names left anywhere beneath the root.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        leftovers(&self.folder.path().join("ws"))
    }
}

pub(super) fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".octoprox-") {
            found.push(entry.path());
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(leftovers(&entry.path()));
        }
    }
    found
}
