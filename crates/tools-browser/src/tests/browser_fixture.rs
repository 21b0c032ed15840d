//! Grants and a server with pages.

use super::test_pages;
use crate::browser_sessions::BrowserSessions;
use crate::engine::Engine;
use crate::{BrowserSettings, tools};
use octo_grants::chromium::{BrowserSandbox, ChromiumSpec};
use octo_grants::fs::{RootSpec, WorkspaceSpec};
use octo_grants::net::NetSpec;
use octo_model::Caller;
use octo_toolkit::exec::launcher;
use octo_toolkit::{
    CallContext, Capabilities, Chromium, Json, Net, ToolError, ToolOutput, Toolbox, Workspace,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub struct BrowserFixture {
    pub browser: BrowserSessions,
    toolbox: Toolbox,
    capabilities: Capabilities,
    pub folder: tempfile::TempDir,
    /// Base URL of the pages.
    pub base_url: String,
}

impl BrowserFixture {
    pub async fn new() -> Self {
        Self::with(BrowserSettings::default()).await
    }

    pub async fn with(settings: BrowserSettings) -> Self {
        Self::with_browser(BrowserSessions::new(Engine::new(), settings)).await
    }

    pub async fn with_browser(browser: BrowserSessions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("notes.txt"), "alpha\n").unwrap();
        let roots = vec![RootSpec { name: "work".to_owned(), path: root, alias_path: None, writable: true }];
        let workspace = Workspace::open(WorkspaceSpec { roots, ..WorkspaceSpec::default() }).unwrap();
        let net = Net::new(NetSpec { allow: vec!["127.0.0.1".to_owned()], ..NetSpec::default() }).unwrap();
        let chromium = Chromium::new(ChromiumSpec {
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            state: folder.path().join("state"),
            launcher: launcher::test_launcher("tests::launcher").unwrap(),
            sandbox: BrowserSandbox::Auto,
            net,
        })
        .unwrap();
        let capabilities = Capabilities::default().with(workspace).with(chromium);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, test_pages::router()).await });
        Self { toolbox: tools(browser.clone()), browser, capabilities, folder, base_url }
    }

    pub async fn call_raw(&self, name: &str, input: Value) -> Result<ToolOutput, ToolError> {
        self.call_raw_as(Caller::local(), name, input).await
    }

    pub async fn call_raw_as(
        &self,
        caller: Caller,
        name: &str,
        input: Value,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self.toolbox.tools.iter().find(|tool| tool.name == name).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let cx = CallContext::new(Arc::new(caller), deadline, CancellationToken::new());
        tool.run_with_images(Json::from(input), &self.capabilities, &cx).await
    }

    /// Processes of the browser: those with the directory of this fixture in their arguments.
    pub fn processes(&self) -> Vec<u32> {
        let state_dir = self.folder.path().join("state");
        let mark = state_dir.to_str().unwrap().as_bytes();
        let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let ours = line.windows(mark.len()).any(|part| part == mark);
            entry.file_name().to_str()?.parse().ok().filter(|_| ours)
        });
        processes.collect()
    }

    pub async fn call(&self, name: &str, input: Value) -> Result<Value, ToolError> {
        Ok(self.call_raw(name, input).await?.typed.to().unwrap())
    }

    /// A call that must succeed.
    pub async fn ok(&self, name: &str, input: Value) -> Value {
        let said = format!("{name} {input}");
        self.call(name, input).await.unwrap_or_else(|error| panic!("{said}: {error} {:?}", error.detail))
    }

    /// Opens a page of the server.
    pub async fn open(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.base_url);
        self.ok("browser_navigate", serde_json::json!({"url": url})).await
    }

    /// Snapshot of the page.
    pub async fn snapshot(&self) -> String {
        string_field(&self.ok("browser_snapshot", serde_json::json!({})).await, "snapshot")
    }
}

pub fn string_field(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// The ref on the line of a snapshot that contains these words.
pub fn find_ref(page: &str, words: &str) -> String {
    let line =
        page.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in\n{page}"));
    let rest = line.split_once(words).unwrap().1;
    rest.split_once("[ref=")
        .unwrap_or_else(|| panic!("no ref in {line}"))
        .1
        .split(']')
        .next()
        .unwrap()
        .to_owned()
}
