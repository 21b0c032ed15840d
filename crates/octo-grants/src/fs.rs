//! Files beneath the workspace roots. Paths are resolved by the kernel (`openat2`, `RESOLVE_BENEATH`).

mod batch;
mod concurrency;
mod copy;
mod crash_recovery;
mod file_fingerprint;
mod folder_tree;
mod hash;
mod intent_log;
mod name_locks;
mod open_beneath;
mod protected_paths;
mod read_files;
mod rename_files;
mod resolve;
mod root;
mod temp_names;
#[cfg(test)]
mod tests;
mod undo_log;
mod walk;
mod work_path;
mod workspace;
mod write_files;

pub(crate) use open_beneath::path_of;
pub use protected_paths::ChangeOrigin;
pub use read_files::{EntryKind, Folder, FolderEntry, OpenFile, Stat};
pub use root::{Root, RootSpec};
pub use walk::{Step, WalkEntry, WalkOptions, Walked};
pub use work_path::{RootedPath, WorkPath};
pub use workspace::{HardLinks, Workspace, WorkspaceSpec, default_protected};
pub use write_files::{Change, UndoResult, Write as WriteOptions, WriteResult};

use crate::{Capabilities, Grant};
use octo_model::{Caller, ToolError};
use std::marker::PhantomData;

/// Access mode: read only.
#[derive(Debug, Clone, Copy)]
pub struct Read;

/// Access mode: read and write.
#[derive(Debug, Clone, Copy)]
pub struct Write;

/// File access to the workspace, with the access mode `M`.
pub struct Fs<M> {
    workspace: Workspace,
    mode: PhantomData<fn() -> M>,
}

impl<M> Clone for Fs<M> {
    fn clone(&self) -> Self {
        Self { workspace: self.workspace.clone(), mode: PhantomData }
    }
}

impl<M: 'static> Fs<M> {
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, mode: PhantomData }
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Runs blocking work outside the runtime's worker threads. Concurrent jobs per caller are limited; the rest wait.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let fs = self.clone();
        let slot = fs.workspace.job_slot().await?;
        let job = move || {
            let _until_the_end = slot;
            work(&fs)
        };
        tokio::task::spawn_blocking(job).await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }

    /// Refuses a protected path, whether it exists or not: for programs that write by themselves.
    pub fn check_changeable(&self, place: &RootedPath) -> Result<(), ToolError> {
        self.check_change(place, ChangeOrigin::Caller)
    }

    /// The same for a change whose content has this origin.
    pub fn check_change(&self, place: &RootedPath, origin: ChangeOrigin) -> Result<(), ToolError> {
        self.workspace.check_path(&place.root, &place.relative, &place.display(), origin)
    }
}

impl<M: 'static> Grant for Fs<M> {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open::<Workspace>().map(Self::new)
    }

    fn for_caller(self, caller: &Caller) -> Self {
        Self::new(self.workspace.for_caller(caller))
    }

    fn for_profile(self, profile: &str) -> Self {
        Self::new(self.workspace.for_profile(profile))
    }
}
