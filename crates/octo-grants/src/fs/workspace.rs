//! A workspace: named roots, each read-only or read-write.

mod write_check;

use super::concurrency::{Concurrency, JobSlot};
use super::crash_recovery;
use super::intent_log::{IntentLog, IntentTxn};
use super::open_beneath::canonical_folder;
use super::protected_paths::ProtectedPaths;
use super::root::{Root, RootSpec};
use super::undo_log::UndoLog;
use octo_model::{Caller, Kind, Principal, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use super::protected_paths::default_protected;

/// Whether files with several hard links may be accessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HardLinks {
    #[default]
    Allow,
    Refuse,
}

/// Settings of a workspace. The first root is the default.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceSpec {
    pub roots: Vec<RootSpec>,
    /// Globs, relative to a root, that are never written; a leading `!` makes an exception.
    pub protected: Vec<String>,
    /// Additional protected globs per profile name.
    pub profiles: BTreeMap<String, Vec<String>>,
    pub hard_links: HardLinks,
    /// Settings of the hub, by canonical path: tools may read but never change them. A directory includes everything
    /// beneath it.
    pub settings: Vec<PathBuf>,
    /// Error and hint that tools return if there is no root.
    pub no_root: Option<(String, String)>,
    /// State directory of the hub: data to undo a change and to clean up after a crash.
    pub state: Option<PathBuf>,
}

/// The open roots of a workspace.
#[derive(Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
    /// Caller that changes files through this handle; `None` for the local user.
    changed_by: Option<Arc<str>>,
    /// Profile of the calls through this handle.
    profile: Option<Arc<str>>,
}

struct Inner {
    /// Set on open, or once later if it was opened without roots.
    roots: OnceLock<Vec<Arc<Root>>>,
    protected: ProtectedPaths,
    profiles: BTreeMap<String, ProtectedPaths>,
    hard_links: HardLinks,
    state: Option<FsState>,
    no_root: Option<(String, String)>,
    jobs: Concurrency,
}

/// State of the hub concerning files.
pub(super) struct FsState {
    path: PathBuf,
    pub intents: IntentLog,
    pub undos: UndoLog,
}

impl Workspace {
    /// Opens the roots and cleans up after a crash.
    pub fn open(spec: WorkspaceSpec) -> Result<Self, ToolError> {
        let roots: Vec<_> =
            spec.roots.into_iter().map(|root| Root::open(root).map(Arc::new)).collect::<Result<_, _>>()?;
        for (at, root) in roots.iter().enumerate() {
            if roots.iter().take(at).any(|other| other.name == root.name) {
                return Err(ToolError::invalid(format!("Duplicate root name `{}`.", root.name))
                    .hint("Give every root of a workspace a unique name."));
            }
        }
        let state = spec.state.map(|path| FsState::open(path, &roots)).transpose()?;
        let mut protected = ProtectedPaths::new(&spec.protected)?;
        protected.set_settings(spec.settings);
        if let Some(state) = &state {
            protected.set_hub_data(canonical_folder(&state.path)?);
        }
        let (hard_links, no_root) = (spec.hard_links, spec.no_root);
        let roots = if roots.is_empty() { OnceLock::new() } else { OnceLock::from(roots) };
        let profiles =
            spec.profiles.into_iter().map(|(name, patterns)| Ok((name, ProtectedPaths::new(&patterns)?)));
        let profiles = profiles.collect::<Result<_, ToolError>>()?;
        let inner = Arc::new(Inner {
            roots,
            protected,
            profiles,
            hard_links,
            state,
            no_root,
            jobs: Concurrency::default(),
        });
        Ok(Self { inner, changed_by: None, profile: None })
    }

    /// Returns the workspace bound to one caller; only that caller can undo its changes.
    #[must_use]
    pub fn for_caller(mut self, caller: &Caller) -> Self {
        let Principal { tenant, subject } = &caller.principal;
        let is_local = caller.principal == Caller::local().principal;
        self.changed_by = (!is_local).then(|| format!("{tenant}\0{subject}").into());
        self
    }

    pub(super) async fn job_slot(&self) -> Result<JobSlot, ToolError> {
        self.inner.jobs.acquire(&self.changed_by).await
    }

    /// Returns the workspace bound to one profile, which may protect more paths.
    #[must_use]
    pub fn for_profile(mut self, profile: &str) -> Self {
        self.profile = self.inner.profiles.contains_key(profile).then(|| profile.into());
        self
    }

    /// Additional protected paths of the profile of these calls.
    pub(super) fn profile_protected(&self) -> Option<&ProtectedPaths> {
        self.inner.profiles.get(self.profile.as_deref()?)
    }

    /// Caller that changes files through this handle.
    pub(super) fn changed_by(&self) -> Option<&str> {
        self.changed_by.as_deref()
    }

    /// The open roots; the first is the default.
    pub fn roots(&self) -> &[Arc<Root>] {
        self.inner.roots.get().map_or(&[], Vec::as_slice)
    }

    /// Opens the root of a workspace without roots. Existing roots are not replaced.
    pub fn set_root(&self, spec: RootSpec) -> Result<(), ToolError> {
        let root = Arc::new(Root::open(spec)?);
        let _ = self.inner.roots.set(vec![root]);
        Ok(())
    }

    /// Settings of the hub that no tool may change, by canonical path. Some are directories, and some may not exist
    /// yet.
    pub fn protected_files(&self) -> &[PathBuf] {
        self.protected().settings()
    }

    /// Error for a workspace without roots.
    pub fn no_root(&self) -> ToolError {
        match &self.inner.no_root {
            Some((why, remedy)) => ToolError::denied(why.clone()).hint(remedy.clone()),
            None => ToolError::denied("No workspace is configured.")
                .hint("Ask the operator to set `workspace`, or several directories in `roots`."),
        }
    }

    /// State directory of the hub.
    pub fn state(&self) -> Option<&Path> {
        self.inner.state.as_ref().map(|state| state.path.as_path())
    }

    /// Starts a change.
    pub(super) fn begin(&self) -> IntentTxn<'_> {
        IntentTxn::begin(self.fs_state().map(|state| &state.intents))
    }

    pub(super) fn fs_state(&self) -> Option<&FsState> {
        self.inner.state.as_ref()
    }

    pub(super) fn protected(&self) -> &ProtectedPaths {
        &self.inner.protected
    }

    pub(super) fn hard_links(&self) -> HardLinks {
        self.inner.hard_links
    }
}

impl FsState {
    fn open(path: PathBuf, roots: &[Arc<Root>]) -> Result<Self, ToolError> {
        let failed = |error: std::io::Error| {
            ToolError::new(
                Kind::Unavailable,
                format!("The hub's state directory for files cannot be used: {error}."),
            )
            .hint("Check that the hub may write to its state directory.")
        };
        let undo = path.join("fs/undo");
        // Old content must not be readable by other users.
        DirBuilder::new().recursive(true).mode(0o700).create(&undo).map_err(failed)?;
        let undos = UndoLog::open(undo).map_err(failed)?;
        let own = path.join("fs");
        // Serialized, so that no process mistakes an intent log for stale before its owner has locked it.
        let gate = File::create(own.join("lock")).map_err(failed)?;
        gate.lock().map_err(failed)?;
        crash_recovery::recover_all(&own, roots, &undos).map_err(failed)?;
        let intents = IntentLog::create(&own).map_err(failed)?;
        Ok(Self { path, intents, undos })
    }
}
