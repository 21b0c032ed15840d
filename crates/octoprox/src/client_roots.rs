//! Workspace from the client's roots. If octoprox was started in an unsuitable directory, the client's roots are
//! requested when a tool first needs a directory. Only if the process serves a single client, since the workspace is
//! shared.

use crate::app_context::AppContext;
use crate::settings::{Environment, TrustStore, unfit_reason};
use crate::toolboxes::trusted_program_dirs;
use octo_grants::Workspace;
use octo_grants::fs::RootSpec;
use octo_model::{JsonObject, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Layer, Peer, Source};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use url::Url;

/// Opens the client's first suitable root, once.
pub struct ClientRoots {
    workspace: Workspace,
    world: Environment,
    /// Settings files and program directories of the hub: a root that contains any of them is refused.
    protected: Vec<PathBuf>,
    writable: bool,
    trust: TrustStore,
    is_asked: Mutex<bool>,
}

impl ClientRoots {
    pub fn new(session: &AppContext, workspace: Workspace) -> Arc<Self> {
        let loaded = &session.loaded;
        let programs = trusted_program_dirs(&loaded.settings);
        Arc::new(Self {
            workspace,
            world: session.world.clone(),
            protected: loaded.protected.iter().cloned().chain(programs).collect(),
            writable: !loaded.settings.files.read_only,
            trust: loaded.trust.clone(),
            is_asked: Mutex::new(false),
        })
    }

    /// A source that requests the client's roots before its first call.
    pub fn wrap(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(RootRequestingSource { source, roots: Arc::clone(self) })
    }

    /// Requests the roots, unless already done or in progress for another call.
    async fn request_roots(&self, peer: &Arc<dyn Peer>) {
        let Ok(mut is_asked) = self.is_asked.try_lock() else { return };
        if *is_asked || !self.workspace.roots().is_empty() {
            return;
        }
        let Ok(answer) = peer.ask("roots/list", JsonObject::new()).await else { return };
        *is_asked = true;
        let roots = answer.list("roots");
        let uris = roots.iter().filter_map(|root| root.members().ok()?.text("uri"));
        let Some(path) = uris.filter_map(|uri| self.root_path(&uri)).next() else { return };
        let shown = path.display().to_string();
        match self.adopt(path) {
            Ok(()) => tracing::info!(workspace = shown, reason = "root of the client", "workspace"),
            Err(error) => tracing::warn!(%error, workspace = shown, "cannot open a root of the client"),
        }
    }

    fn adopt(&self, path: PathBuf) -> Result<(), ToolError> {
        let writable = self.writable.then(|| path.clone());
        self.trust.clone().remember_roots(writable.as_slice()).map_err(ToolError::internal)?;
        let name = "workspace".to_owned();
        self.workspace.set_root(RootSpec { name, path, alias_path: None, writable: self.writable })
    }

    /// Returns the canonical directory of a URI, if it is suitable.
    fn root_path(&self, uri: &str) -> Option<PathBuf> {
        let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
        let folder = url.to_file_path().ok()?.canonicalize().ok().filter(|folder| folder.is_dir())?;
        let holds_protected = self.protected.iter().any(|path| path.starts_with(&folder));
        (unfit_reason(&self.world, &folder).is_none() && !holds_protected).then_some(folder)
    }
}

struct RootRequestingSource {
    source: Arc<dyn Source>,
    roots: Arc<ClientRoots>,
}

impl Layer for RootRequestingSource {
    fn inner(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            self.roots.request_roots(&cx.peer).await;
            self.source.run(op, cx).await
        })
    }
}
