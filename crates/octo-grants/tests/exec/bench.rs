//! A workspace with programs in it, and a way to find their remains.

use octo_grants::exec::{Exec, ExecLimits, ExecSpec, Job, Program, SandboxChoice};
use octo_grants::fs::{Fs, Read, RootSpec, Workspace, WorkspaceSpec};
use octo_grants::{RootedPath, WorkPath};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub struct ExecFixture {
    pub exec: Exec,
    pub fs: Fs<Read>,
    /// Every process of this bench has it in its environment or arguments.
    pub mark: String,
    pub folder: tempfile::TempDir,
}

/// All sandboxes that work here. Without bubblewrap its cases are skipped with a message.
pub fn sandboxes() -> Vec<SandboxChoice> {
    let mut all = vec![SandboxChoice::None, SandboxChoice::Landlock];
    if Path::new("/usr/bin/bwrap").exists() {
        all.push(SandboxChoice::Bubblewrap);
    } else {
        eprintln!("BUBBLEWRAP IS MISSING: its cases were NOT tested");
    }
    all
}

/// Those that confine.
pub fn confining_sandboxes() -> Vec<SandboxChoice> {
    sandboxes().into_iter().filter(|choice| *choice != SandboxChoice::None).collect()
}

impl ExecFixture {
    pub fn new(sandbox: SandboxChoice) -> Self {
        Self::with(sandbox, |_| {})
    }

    pub fn with(sandbox: SandboxChoice, change: impl FnOnce(&mut ExecSpec)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::within(folder, sandbox, change)
    }

    pub fn within(
        folder: tempfile::TempDir,
        sandbox: SandboxChoice,
        change: impl FnOnce(&mut ExecSpec),
    ) -> Self {
        let root = |name: &str, writable| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            RootSpec { name: name.to_owned(), path, alias_path: None, writable }
        };
        let roots = vec![root("work", true), root("library", false)];
        std::fs::create_dir_all(folder.path().join("outside")).unwrap();
        let state = folder.path().join("state");
        let workspace = Workspace::open(WorkspaceSpec { roots, ..WorkspaceSpec::default() }).unwrap();
        let mut spec = ExecSpec {
            workspace: workspace.clone(),
            sandbox,
            limits: ExecLimits::default(),
            state,
            launcher: octo_grants::exec::launcher::test_launcher("launcher").unwrap(),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            pass_env: std::collections::BTreeMap::new(),
        };
        change(&mut spec);
        let mark = format!("octo-mark-{}-{:?}", std::process::id(), folder.path().file_name().unwrap());
        Self { exec: Exec::new(spec).unwrap(), fs: Fs::new(workspace), mark: mark.replace('"', ""), folder }
    }

    pub fn place(&self, path: &str) -> RootedPath {
        self.fs.place(&WorkPath::from(path)).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn job(&self, line: &str) -> Job {
        Job {
            program: Program::Shell(format!(": {}\n{line}", self.mark)),
            cwd: self.place("."),
            env: BTreeMap::from([("MARK".to_owned(), self.mark.clone())]),
            stdin: None,
            timeout: Duration::from_secs(10),
            max_output_bytes: 100_000,
            network: false,
            writes: true,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: None,
        }
    }

    /// Output of a command that must succeed.
    pub async fn output_of(&self, line: &str) -> String {
        let done = self.exec.run(self.job(line)).await.unwrap();
        let errors = String::from_utf8_lossy(&done.stderr.head).into_owned();
        assert_eq!(done.exit, octo_grants::exec::Exit::Code(0), "{line}: {errors}");
        String::from_utf8_lossy(&done.stdout.head).trim_end().to_owned()
    }

    /// Processes with the marker.
    pub fn leftover_processes(&self) -> Vec<String> {
        processes_with_mark(&self.mark)
    }

    pub async fn assert_nothing_left(&self, within: Duration) {
        let begun = Instant::now();
        loop {
            let left = self.leftover_processes();
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < within, "left: {left:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub fn processes_with_mark(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() || name == std::process::id().to_string() {
            continue;
        }
        let part = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let text = [part("cmdline"), part("environ")].concat();
        if text.windows(mark.len()).any(|window| window == mark.as_bytes()) {
            found.push(format!("{name}: {}", String::from_utf8_lossy(&part("cmdline")).replace('\0', " ")));
        }
    }
    found
}

/// Waits for a condition.
pub async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
