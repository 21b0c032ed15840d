//! A workspace, its grants, and callers.

use crate::{ShellSettings, toolbox};
use octo_grants::exec::{ExecLimits, ExecSpec, SandboxChoice, Sessions, launcher};
use octo_grants::fs::{RootSpec, WorkspaceSpec};
use octo_grants::{Capabilities, Exec, Workspace};
use octo_model::{CallId, Caller, Json, JsonObject, ToolError};
use octo_ports::{Port, ResultStore, ResultWriter, StoreError, StoreResult};
use octo_toolkit::{AskError, BoxFuture, CallContext, CallHeader, Peer, Toolbox};
use serde_json::Value;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Stores what it is given; the handle is its index.
#[derive(Default)]
pub struct MemoryResultStore(Mutex<Vec<String>>);

impl MemoryResultStore {
    pub fn text(&self, handle: &str) -> String {
        let at: usize = handle.trim_start_matches("kept-").parse().unwrap();
        self.0.lock().unwrap()[at].clone()
    }
}

impl ResultStore for MemoryResultStore {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, whole: Json) -> BoxFuture<'a, StoreResult<String>> {
        let mut texts = self.0.lock().unwrap();
        let whole: Value = serde_json::from_slice(whole.bytes()).unwrap();
        texts.push(whole["content"][0]["text"].as_str().unwrap().to_owned());
        let handle = format!("kept-{}", texts.len() - 1);
        Box::pin(async { Ok(handle) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async { Err(StoreError::NotFound(Port::Results)) })
    }
}

/// Records progress notifications.
#[derive(Default)]
pub struct ProgressRecorder(pub Mutex<Vec<Value>>);

impl Peer for ProgressRecorder {
    fn capabilities(&self) -> &JsonObject {
        static NONE: OnceLock<JsonObject> = OnceLock::new();
        NONE.get_or_init(JsonObject::new)
    }

    fn notify(&self, _: &str, params: JsonObject) {
        self.0.lock().unwrap().push(params.to_json().to().unwrap());
    }

    fn ask<'a>(&'a self, _: &'a str, _: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async { Err(AskError::Unable) })
    }
}

pub struct ShellFixture {
    toolbox: Toolbox,
    capabilities: Capabilities,
    pub results: Arc<MemoryResultStore>,
    pub folder: tempfile::TempDir,
}

impl ShellFixture {
    pub fn new() -> Self {
        Self::with(ShellSettings::default())
    }

    pub fn with(settings: ShellSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("notes.txt"), "alpha\nbeta\ngamma\n").unwrap();
        std::fs::write(root.join("src/main.rs"), "fn main() {}\n").unwrap();
        std::fs::write(root.join("README.md"), "# Readme\n").unwrap();
        let roots = vec![RootSpec { name: "work".to_owned(), path: root, alias_path: None, writable: true }];
        let workspace = Workspace::open(WorkspaceSpec { roots, ..WorkspaceSpec::default() }).unwrap();
        let exec = Exec::new(ExecSpec {
            workspace: workspace.clone(),
            sandbox: SandboxChoice::Auto,
            limits: ExecLimits::default(),
            state: folder.path().join("state"),
            launcher: launcher::test_launcher("tests::launcher").unwrap(),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            pass_env: std::collections::BTreeMap::new(),
        })
        .unwrap();
        let shelf = Arc::new(MemoryResultStore::default());
        let doors = Capabilities::default()
            .with(workspace)
            .with(Sessions::new(exec.clone()))
            .with(exec)
            .with(ResultWriter::new(Arc::clone(&shelf) as Arc<dyn ResultStore>));
        Self { toolbox: toolbox(settings), capabilities: doors, results: shelf, folder }
    }

    pub fn tools(&self) -> &[octo_toolkit::ErasedTool] {
        &self.toolbox.tools
    }

    pub fn cx(&self, caller: &str) -> CallContext {
        let deadline = Instant::now() + Duration::from_secs(30);
        CallContext::new(Arc::new(Caller::named(caller)), deadline, CancellationToken::new())
    }

    /// The context of a client that requests progress.
    pub fn cx_with_progress(&self, peer: &Arc<ProgressRecorder>) -> CallContext {
        let mut header = CallHeader::clone(&self.cx("local"));
        header.progress_token = Some(Json::text("token"));
        CallContext::from_header(header, CancellationToken::new(), Arc::clone(peer) as Arc<_>)
    }

    pub async fn call(&self, name: &str, input: Value) -> Result<Value, ToolError> {
        self.call_as(&self.cx("local"), name, input).await
    }

    pub async fn call_as(&self, cx: &CallContext, name: &str, input: Value) -> Result<Value, ToolError> {
        let tool = self.toolbox.tools.iter().find(|tool| tool.name == name).unwrap();
        let answer = tool.run(Json::from(input), &self.capabilities, cx).await?;
        Ok(answer.to().unwrap())
    }

    pub async fn fine(&self, name: &str, input: Value) -> Value {
        self.call(name, input.clone()).await.unwrap_or_else(|error| panic!("{name} {input}: {error:?}"))
    }

    pub fn write_file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("work").join(name), text).unwrap();
    }
}
