//! A workspace, a directory of tools beside it, and a server that returns the request it received.

use crate::declared::{DeclaredToolsConfig, source};
use axum::extract::Request;
use octo_grants::config_dirs::ConfigDirs;
use octo_grants::exec::{ExecLimits, ExecSpec, SandboxChoice, launcher};
use octo_grants::fs::{RootSpec, WorkspaceSpec};
use octo_grants::net::NetSpec;
use octo_grants::{Capabilities, Exec, Net, Workspace};
use octo_model::{Caller, Json, Operation, ToolError};
use octo_toolkit::{CallContext, Source, SourceState};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub struct DeclaredFixture {
    pub source: Arc<dyn Source>,
    pub work: PathBuf,
    pub tools: PathBuf,
    _folder: tempfile::TempDir,
}

impl DeclaredFixture {
    pub fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (work, tools) = (folder.path().join("work"), folder.path().join("tools"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&tools).unwrap();
        fs::write(folder.path().join("secret.txt"), "beyond the workspace").unwrap();
        fs::write(work.join("notes.txt"), "alpha\nbeta\ngamma\n").unwrap();
        fs::write(tools.join("tools.yaml"), text).unwrap();
        let root = RootSpec { name: "work".to_owned(), path: work.clone(), alias_path: None, writable: true };
        let workspace =
            Workspace::open(WorkspaceSpec { roots: vec![root], ..WorkspaceSpec::default() }).unwrap();
        let exec = Exec::new(ExecSpec {
            workspace: workspace.clone(),
            sandbox: SandboxChoice::Auto,
            limits: ExecLimits::default(),
            state: folder.path().join("state"),
            launcher: launcher::test_launcher("declared::tests::launcher").unwrap(),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            pass_env: std::collections::BTreeMap::new(),
        })
        .unwrap();
        let net = Net::new(NetSpec { allow: vec!["127.0.0.1".to_owned()], ..NetSpec::default() }).unwrap();
        let source = source(DeclaredToolsConfig {
            folders: ConfigDirs::new(vec![tools.clone()]),
            doors: Capabilities::default().with(workspace).with(exec).with(net),
            environment: Arc::new(|name| (name == "TOKEN").then(|| "s3cret-token".to_owned())),
            reserved: ["fs_read_text".to_owned()].into(),
            state: SourceState::Ready,
        });
        Self { source, work, tools, _folder: folder }
    }

    pub fn names(&self) -> Vec<String> {
        self.source.listing().borrow().listing.tools.iter().map(|tool| tool.key.clone()).collect()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Result<Value, ToolError> {
        let deadline = Instant::now() + Duration::from_secs(30);
        let cx = CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
        let result = self.source.run(Operation::tool(name, Json::from(arguments)), &cx).await?;
        Ok(result.to_json().to().unwrap())
    }

    pub async fn text(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        let result = self.call(name, arguments).await?;
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }
}

/// Starts a server that returns the request it received; returns its address.
pub async fn echo_server() -> String {
    let app = axum::Router::new().fallback(|request: Request| async move {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let header = |name: &str| {
            parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let told = json!({
            "method": parts.method.as_str(), "uri": parts.uri.to_string(), "host": header("host"),
            "note": header("x-note"), "authorization": header("authorization"),
            "headers": parts.headers.len(),
            "body": serde_json::from_slice::<Value>(&body).unwrap_or_default(),
        });
        let status = match parts.uri.path() {
            "/missing" => http::StatusCode::NOT_FOUND,
            "/broken" => http::StatusCode::BAD_GATEWAY,
            _ => http::StatusCode::OK,
        };
        (status, told.to_string())
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}
