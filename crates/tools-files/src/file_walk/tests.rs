//! The finding tools on real trees.

#![expect(clippy::disallowed_methods, reason = "tests create the files that the tools find")]

mod listing_tools;
mod outside_links;
mod search_tool;

use octo_toolkit::fs::{RootSpec, Workspace, WorkspaceSpec};
use octo_toolkit::{Capabilities, ToolError, ToolFixture};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// A workspace that lives as long as the test.
pub struct FindFixture {
    pub folder: TempDir,
    pub capabilities: Capabilities,
    bench: ToolFixture,
}

impl FindFixture {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = RootSpec {
            name: "ws".to_owned(),
            path: folder.path().to_owned(),
            alias_path: None,
            writable: true,
        };
        let workspace = Workspace::open(WorkspaceSpec { roots: vec![root], ..Default::default() }).unwrap();
        let doors = Capabilities::default().with(workspace);
        let kit =
            Self { folder, bench: ToolFixture::new(crate::toolbox(), doors.clone()), capabilities: doors };
        files.iter().for_each(|(path, text)| kit.write_file(path, text.as_bytes()));
        kit
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write_file(&self, path: &str, bytes: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub async fn try_call(&self, tool: &str, input: Value) -> Result<Value, ToolError> {
        self.bench.call(tool, input).await
    }

    pub async fn call(&self, tool: &str, input: Value) -> Value {
        self.try_call(tool, input.clone()).await.unwrap_or_else(|error| panic!("{tool} {input}: {error}"))
    }
}

/// The texts of a list.
pub fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}
