//! The tools through the test bench, on real files.
#![expect(clippy::disallowed_methods, reason = "tests access files without the grant")]

mod edit_tool;
mod move_copy_delete;
mod patch_tool;
mod read_text_tools;
mod replace_tool;
mod write_tools;

use crate::toolbox;
use octo_toolkit::fs::{RootSpec, WorkspaceSpec};
use octo_toolkit::{Capabilities, Kind, Pdf, ToolError, ToolFixture, Workspace};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;

/// A separate workspace for every test.
struct FilesFixture {
    dir: TempDir,
    bench: ToolFixture,
}

impl FilesFixture {
    fn new(files: &[(&str, &[u8])]) -> Self {
        Self::protecting(files, Vec::new())
    }

    fn protecting(files: &[(&str, &[u8])], protected: Vec<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (root, state) = (dir.path().join("root"), dir.path().join("state"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&state).unwrap();
        let roots = vec![RootSpec { name: "work".into(), path: root, alias_path: None, writable: true }];
        let spec = WorkspaceSpec { roots, state: Some(state), protected, ..WorkspaceSpec::default() };
        let workspace = Workspace::open(spec).unwrap();
        let desk = Self {
            bench: ToolFixture::new(
                toolbox(),
                Capabilities::default().with(workspace).with(Pdf::new(Vec::new())),
            ),
            dir,
        };
        for (name, bytes) in files {
            desk.write_file(name, bytes);
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("root").join(name)
    }

    fn write_file(&self, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    fn exists(&self, name: &str) -> bool {
        std::fs::symlink_metadata(self.path(name)).is_ok()
    }

    fn mode(&self, name: &str) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    async fn call(&self, tool: &str, input: Value) -> Value {
        self.bench.call(tool, input.clone()).await.unwrap_or_else(|error| panic!("{tool} {input}: {error}"))
    }

    async fn fails(&self, tool: &str, input: Value) -> ToolError {
        match self.bench.call(tool, input.clone()).await {
            Ok(answer) => panic!("{tool} {input} gave {answer}"),
            Err(error) => error,
        }
    }
}

#[tokio::test]
async fn every_example_works_in_a_small_project() {
    let files: [(&str, &[u8]); 6] = [
        ("docs/logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("notes.txt", b"alpha\nbeta\ngamma\n"),
        ("src/main.rs", b"fn main() {\n    println!(\"hello\");\n}\n"),
        ("README.md", b"# Demo\n\nA small project.\n"),
        ("data.csv", b"name,count\nada,3\ngrace,5\n"),
        ("docs/guide.md", b"# Guide\n\nRead me.\n"),
    ];
    for tool in toolbox().tools {
        let desk = FilesFixture::new(&files);
        for example in &tool.examples {
            let answer = desk.call(tool.name, example.input.to().unwrap()).await;
            if let Some(wanted) = &example.output {
                assert_eq!(answer, wanted.to::<Value>().unwrap(), "{}: {}", tool.name, example.purpose);
            }
        }
    }
}

#[tokio::test]
async fn nothing_leads_out_of_the_workspace() {
    let desk = FilesFixture::new(&[("inside.txt", b"inside\n")]);
    std::fs::write(desk.dir.path().join("secret.txt"), "secret\n").unwrap();
    std::os::unix::fs::symlink("../secret.txt", desk.path("link")).unwrap();
    for path in ["../secret.txt", "link", "/etc/passwd", "a/../../secret.txt"] {
        let calls = [
            ("fs_read_text", json!({"path": path})),
            ("fs_read_bytes", json!({"path": path})),
            ("fs_write_text", json!({"path": path, "text": "x"})),
            ("fs_append", json!({"path": path, "text": "x"})),
            ("fs_edit", json!({"path": path, "edits": [{"old_text": "secret", "new_text": "x"}]})),
            ("fs_patch", json!({"path": path, "patch": "@@ -1 +1 @@\n-secret\n+x\n"})),
            ("fs_copy", json!({"source": path, "destination": "out.txt"})),
        ];
        for (tool, input) in calls {
            // A link itself may be copied; its target may not.
            if (tool, path) == ("fs_copy", "link") {
                continue;
            }
            let error = desk.fails(tool, input).await;
            assert!(
                matches!(error.kind, Kind::Denied | Kind::NotFound | Kind::Invalid),
                "{tool} {path}: {error}"
            );
            let said = error.text().replace(desk.path("").to_str().unwrap().trim_end_matches('/'), "");
            assert!(!said.contains(desk.dir.path().to_str().unwrap()), "{tool} {path}: {error}");
        }
    }
    assert_eq!(std::fs::read_to_string(desk.dir.path().join("secret.txt")).unwrap(), "secret\n");
}
