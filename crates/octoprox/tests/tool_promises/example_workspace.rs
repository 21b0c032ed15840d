//! Workspace for examples: a git repository with two commits and an uncommitted change.

use super::example_hub::MemoryStores;
use octo_grants::{Capabilities, Clock, JqRunner};
use octo_ports::Stores;
use octoprox::settings::Settings;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

const FILES: [(&str, &str); 6] = [
    ("notes.txt", "alpha\nbeta\n"),
    ("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n"),
    ("README.md", "# Demo\n\nA small project.\n"),
    ("data.csv", "name,count\nada,3\ngrace,5\n"),
    ("docs/guide.md", "# Guide\n\nRead me.\n"),
    (
        "memory.jsonl",
        "{\"type\":\"entity\",\"name\":\"Ada\",\"entityType\":\"person\",\"observations\":[\"Likes tea\"]}\n",
    ),
];

/// Temporary workspace, with the state directory beside it.
pub struct ExampleWorkspace {
    folder: TempDir,
    pub settings: Settings,
}

impl ExampleWorkspace {
    pub fn new() -> Self {
        static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
        let first = TEMPLATE.get_or_init(repository);
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        run(Command::new("cp").arg("-r").arg(first.path()).arg(&workspace));
        std::fs::create_dir(folder.path().join("state")).unwrap();
        Self { folder, settings: Settings { workspace: Some(workspace), ..Settings::default() } }
    }

    /// All capabilities of the binary. The clock is fixed, so that examples have reproducible results.
    pub fn capabilities(&self, memory: &Arc<MemoryStores>) -> Capabilities {
        let program = Path::new(env!("CARGO_BIN_EXE_octoprox"));
        let state = self.folder.path().join("state");
        let kept = octo_store::sqlite(&state, octo_store::Options::default()).unwrap();
        let stores = Stores { results: Arc::clone(memory) as _, ..kept };
        let doors = octoprox::open_capabilities(
            &self.settings,
            &std::collections::BTreeMap::new(),
            octoprox::WorkspaceGuard::default(),
            &state,
            program,
            &stores,
        );
        let clock = Clock::fixed("2026-11-14T12:00:00Z".parse().unwrap());
        doors.unwrap().with(clock).with(JqRunner::new(Arc::clone(memory) as _))
    }
}

fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    for (commit, files) in [("Begin", &FILES[..1]), ("Add a program and its guide", &FILES[1..])] {
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        git(folder.path(), &["add", "--all"]);
        git(folder.path(), &["commit", "--quiet", "--message", commit]);
    }
    std::fs::write(folder.path().join("notes.txt"), "alpha\nbeta\ngamma\n").unwrap();
    folder
}

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    run(Command::new("git").current_dir(folder).args(who).args(arguments));
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
