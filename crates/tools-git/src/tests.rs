//! The tools through the test bench, with the real git.

#![expect(clippy::disallowed_methods, reason = "tests prepare repositories by hand")]

mod argument_injection;
mod end_to_end;
mod hostile_matrix;
mod hostile_repo;
mod http_remotes;
mod read_tools;
mod repo_attacks;
mod workspace_bounds;

use crate::{GitSettings, ssh_toolbox, toolbox};
use octo_toolkit::exec::{ExecLimits, ExecSpec, Sandbox, SandboxChoice, launcher};
use octo_toolkit::fs::{RootSpec, WorkspaceSpec, default_protected};
use octo_toolkit::{Capabilities, Exec, Net, SshKey, ToolError, ToolFixture, Workspace};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Not a test: programs are started through this binary.
#[test]
#[ignore = "the launcher of the other tests"]
fn launcher() {
    let _ = launcher::main([]);
}

/// A workspace with one root, tools on it, and a directory beside it that must stay untouched.
pub struct GitFixture {
    bench: ToolFixture,
    ssh_bench: ToolFixture,
    folder: tempfile::TempDir,
    pub key: SshKey,
}

pub fn allowed() -> GitSettings {
    GitSettings { allow_commit: true, allow_push: true, ..GitSettings::default() }
}

impl GitFixture {
    pub fn new(settings: GitSettings) -> Self {
        Self::with(settings, SandboxChoice::Auto, Net::default())
    }

    /// With network access.
    pub fn reaching(net: Net) -> Self {
        Self::with(allowed(), SandboxChoice::Auto, net)
    }

    /// Without a sandbox, so that only the tools' own protection counts.
    pub fn without_sandbox(settings: GitSettings) -> Self {
        Self::with(settings, SandboxChoice::None, Net::default())
    }

    /// Without a sandbox, and with network access.
    pub fn unconfined(net: Net) -> Self {
        Self::with(allowed(), SandboxChoice::None, net)
    }

    fn with(settings: GitSettings, sandbox: SandboxChoice, net: Net) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (root, state) = (folder.path().join("root"), folder.path().join("state"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(folder.path().join("beside")).unwrap();
        let root_spec =
            RootSpec { name: "work".to_owned(), path: root.clone(), alias_path: None, writable: true };
        let workspace = Workspace::open(WorkspaceSpec {
            roots: vec![root_spec],
            protected: default_protected(),
            ..WorkspaceSpec::default()
        })
        .unwrap();
        let exec = |sandbox| {
            Exec::new(ExecSpec {
                workspace: workspace.clone(),
                sandbox,
                limits: ExecLimits::default(),
                state: state.clone(),
                launcher: launcher::test_launcher("tests::launcher").unwrap(),
                path: OsString::from("/usr/local/bin:/usr/bin:/bin"),
                pass_env: std::collections::BTreeMap::new(),
            })
            .unwrap()
        };
        let mut chosen = exec(sandbox);
        if chosen.sandbox() == Sandbox::None {
            chosen = exec(SandboxChoice::None);
        }
        let key = SshKey::new(&state, &root);
        let doors = Capabilities::default().with(workspace).with(chosen).with(key.clone()).with(net);
        let bench = ToolFixture::new(toolbox(settings), doors.clone());
        Self { bench, ssh_bench: ToolFixture::new(ssh_toolbox(), doors), folder, key }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn outside_dir(&self) -> PathBuf {
        self.folder.path().join("beside")
    }

    pub fn tools(&self) -> &[octo_toolkit::ErasedTool] {
        self.bench.tools()
    }

    pub async fn try_call(&self, name: &str, input: Value) -> Result<Value, ToolError> {
        let bench = if name.starts_with("ssh_") { &self.ssh_bench } else { &self.bench };
        bench.call(name, input).await
    }

    pub async fn call(&self, name: &str, input: Value) -> Value {
        self.try_call(name, input.clone()).await.unwrap_or_else(|error| {
            panic!("{name} {input}: {error} ({:?})", error.detail);
        })
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The workspace that examples are written for.
    pub fn demo(&self) {
        self.write("notes.txt", "alpha\nbeta\n");
        self.write("README.md", "# Demo\n\nA small project.\n");
        self.write("src/main.rs", "fn main() {}\n");
        let root = self.root();
        git(&root, &["init", "-q", "-b", "main"]);
        git(&root, &["add", "."]);
        git(&root, &["commit", "-q", "-m", "Begin"]);
        self.write("notes.txt", "alpha\nbeta\ngamma\n");
        git(&root, &["commit", "-q", "-a", "-m", "Say more"]);
        self.write("notes.txt", "alpha\nbeta\ngamma\ndelta\n");
    }
}

/// Plain git, as a user would run it, but with no settings of this machine.
pub fn git(at: &Path, args: &[&str]) -> String {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "git {args:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    text
}
