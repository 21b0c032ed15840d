//! Programs that replace what the next program sees: links for directories, planted programs, renamed roots.

use crate::bench::{ExecFixture, confining_sandboxes};
use octo_grants::exec::{Exec, ExecLimits, ExecSpec, Exit, Job, Program, SandboxChoice};
use octo_grants::fs::{Fs, Read, RootSpec, Workspace, WorkspaceSpec};
use octo_grants::{RootedPath, WorkPath};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A home with a secret, and roots in it.
struct SwapFixture {
    folder: tempfile::TempDir,
    exec: Exec,
    fs: Fs<Read>,
}

impl SwapFixture {
    fn new(sandbox: SandboxChoice, roots: &[(&str, bool)], path: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("home")).unwrap();
        std::fs::write(at("home/secret"), "SECRET").unwrap();
        for (root, _) in roots {
            std::fs::create_dir_all(at(root)).unwrap();
        }
        let specs = roots.iter().map(|(root, writable)| RootSpec {
            name: root.rsplit('/').next().unwrap().to_owned(),
            path: at(root),
            alias_path: None,
            writable: *writable,
        });
        let workspace =
            Workspace::open(WorkspaceSpec { roots: specs.collect(), ..WorkspaceSpec::default() }).unwrap();
        for folder in path {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let usual = ["/usr/bin", "/bin"].map(PathBuf::from);
        let exec = Exec::new(ExecSpec {
            workspace: workspace.clone(),
            sandbox,
            limits: ExecLimits::default(),
            state: at("state"),
            launcher: octo_grants::exec::launcher::test_launcher("launcher").unwrap(),
            path: std::env::join_paths(path.iter().map(|name| at(name)).chain(usual)).unwrap(),
            pass_env: std::collections::BTreeMap::new(),
        });
        Self { exec: exec.unwrap(), fs: Fs::new(workspace), folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn place(&self, path: &str) -> RootedPath {
        self.fs.place(&WorkPath::from(path)).unwrap()
    }

    fn job(&self, cwd: &str, line: &str) -> Job {
        Job {
            program: Program::Shell(line.to_owned()),
            cwd: self.place(cwd),
            env: BTreeMap::new(),
            stdin: None,
            timeout: Duration::from_secs(20),
            max_output_bytes: 100_000,
            network: false,
            writes: true,
            readable: Vec::new(),
            writable: Vec::new(),
            on_output: None,
        }
    }

    /// Output of a command, or why it was not run.
    async fn output_of(&self, line: &str) -> String {
        match self.exec.run(self.job(".", line)).await {
            Ok(done) => {
                let text = [done.stdout.head, done.stderr.head].concat();
                String::from_utf8_lossy(&text).trim_end().to_owned()
            }
            Err(error) => error.text(),
        }
    }
}

/// Swaps two names continuously, as another program of the same root could.
struct Swapper(Arc<AtomicBool>, Option<std::thread::JoinHandle<u64>>);

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                let how = rustix::fs::RenameFlags::EXCHANGE;
                let done = rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &other, how);
                count += u64::from(done.is_ok());
            }
            count
        });
        Self(ends, Some(thread))
    }

    fn stop(mut self) -> u64 {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap()
    }
}

/// A link replaces `.git` while commands are started: they must never see its target.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_place_of_a_repository_s_data_shows_nothing() {
    for choice in confining_sandboxes() {
        for (cwd, way) in [(".", ".."), ("proj", "../..")] {
            let ground = SwapFixture::new(choice, &[("home/ws", true)], &[]);
            let folder = if cwd == "." { ground.at("home/ws") } else { ground.at("home/ws/proj") };
            std::fs::create_dir_all(folder.join(".git")).unwrap();
            symlink(way, folder.join(".link")).unwrap();
            let swapper = Swapper::start(folder.join(".git"), folder.join(".link"));
            let (begun, mut ran) = (Instant::now(), 0);
            while begun.elapsed() < Duration::from_secs(2) {
                let line = "for name in .git .link; do cat $name/secret; touch $name/planted; done";
                if let Ok(done) = ground.exec.run(ground.job(cwd, line)).await {
                    let said = String::from_utf8_lossy(&done.stdout.head).into_owned();
                    assert!(!said.contains("SECRET"), "{choice:?} {cwd} after {ran}");
                    ran += 1;
                }
                assert!(!ground.at("home/planted").exists(), "{choice:?} {cwd} after {ran}");
            }
            assert!(swapper.stop() > 1_000 && ran > 0, "{choice:?} {cwd} ran {ran}");
            let left: Vec<_> =
                std::fs::read_dir(ground.at("home")).unwrap().flatten().map(|e| e.file_name()).collect();
            assert_eq!(left.len(), 2, "{choice:?}: {left:?}");
        }
    }
}

/// An activated virtual environment lies in a root and in the search path.
#[tokio::test]
async fn a_planted_program_never_runs_outside_the_sandbox() {
    for choice in [SandboxChoice::Bubblewrap, SandboxChoice::Landlock, SandboxChoice::Auto] {
        let ground = SwapFixture::new(choice, &[("home/ws", true)], &["home/ws/proj/.venv/bin"]);
        let loot = ground.at("home/loot");
        let plant = |folder: &Path| {
            std::fs::create_dir_all(folder).unwrap();
            for name in ["bwrap", "setsid", "git", "sh", "true"] {
                let script =
                    format!("#!/bin/sh\ncat {} > {}\n", ground.at("home/secret").display(), loot.display());
                std::fs::write(folder.join(name), script).unwrap();
                std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        };
        plant(&ground.at("home/ws/proj/.venv/bin"));
        assert_eq!(ground.output_of("echo before").await, "before", "{choice:?}");
        assert!(
            ground.output_of("mv proj proj.old && mkdir -p proj/.venv/bin").await.is_empty(),
            "{choice:?}"
        );
        plant(&ground.at("home/ws/proj/.venv/bin"));
        assert_eq!(ground.output_of("echo after").await, "after", "{choice:?}");
        assert!(!loot.exists(), "{choice:?}");
        // Nor does the hub run it inside the sandbox for itself.
        let mut job = ground.job(".", "");
        job.program = Program::Argv(vec!["git".into(), "--version".into()]);
        let done = ground.exec.run(job).await.unwrap();
        assert!(done.stdout.head.starts_with(b"git version"), "{choice:?}");
        // A command line finds what its user has put there.
        let found = ground.exec.which("true").unwrap();
        assert_eq!(found, ground.at("home/ws/proj/.venv/bin/true"), "{choice:?}");
    }
}

#[tokio::test]
async fn a_link_in_the_place_of_a_search_folder_shows_nothing() {
    for choice in confining_sandboxes() {
        let ground = SwapFixture::new(choice, &[("home/ws", true)], &["home/ws/proj/.venv/bin"]);
        let said =
            ground.output_of("rmdir proj/.venv/bin && ln -s ../../.. proj/.venv/bin && echo done").await;
        assert_eq!(said, "done", "{choice:?}");
        let secret = ground.at("home/secret");
        let said = ground
            .output_of(&format!(
                "cat {0} proj/.venv/bin/secret; ls {1}",
                secret.display(),
                ground.at("home").display()
            ))
            .await;
        assert!(!said.contains("SECRET") && !said.contains("secret\n"), "{choice:?}: {said}");
    }
}

#[tokio::test]
async fn a_root_within_a_root_is_no_way_out() {
    for choice in confining_sandboxes() {
        let ground = SwapFixture::new(choice, &[("home/ws", true), ("home/ws/a/repos", true)], &[]);
        std::fs::write(ground.at("home/ws/a/repos/file"), "file").unwrap();
        assert_eq!(
            ground.output_of("cat a/repos/file && echo x > a/repos/new && echo fine").await,
            "filefine",
            "{choice:?}"
        );
        let line = "mv a old && mkdir a && ln -s ../.. a/repos && echo moved";
        assert_eq!(ground.output_of(line).await, "moved", "{choice:?}");
        let home = ground.at("home");
        let line = format!(
            "cat {0}/secret a/repos/secret; touch {0}/planted a/repos/planted; ls {0}/../state",
            home.display()
        );
        let said = ground.output_of(&line).await;
        assert!(!said.contains("SECRET"), "{choice:?}: {said}");
        assert!(!ground.at("home/planted").exists(), "{choice:?}");
        // The root itself no longer exists.
        let job = ground.job(&ground.at("home/ws/a/repos").to_string_lossy(), "true");
        assert!(ground.exec.run(job).await.is_err(), "{choice:?}");
    }
}

#[test]
fn a_root_that_is_only_read_lies_in_none_that_is_written() {
    for (outer, inner, fine) in
        [(true, true, true), (false, true, true), (false, false, true), (true, false, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("ws/inner")).unwrap();
        let root = |name: &str, path: &str, writable| RootSpec {
            name: name.to_owned(),
            path: at(path),
            alias_path: None,
            writable,
        };
        let roots = vec![root("outer", "ws", outer), root("inner", "ws/inner", inner)];
        let workspace = Workspace::open(WorkspaceSpec { roots, ..WorkspaceSpec::default() }).unwrap();
        let spec = ExecSpec {
            workspace,
            sandbox: SandboxChoice::Auto,
            limits: ExecLimits::default(),
            state: at("state"),
            launcher: Vec::new(),
            path: "/usr/bin".into(),
            pass_env: std::collections::BTreeMap::new(),
        };
        let made = Exec::new(spec).map(|_| ());
        assert_eq!(made.is_ok(), fine, "{outer} {inner}");
        if let Err(error) = made {
            assert!(error.hint.unwrap().contains("writable"));
        }
    }
}

/// The state directory deep within a root: no parent directory can be renamed.
#[tokio::test]
async fn the_way_to_the_hub_s_data_cannot_be_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |spec: &mut ExecSpec| spec.state = spec.state.with_file_name("work").join("a/b/hub");
    let bench = ExecFixture::within(folder, SandboxChoice::Bubblewrap, inside);
    std::fs::write(bench.path("work/a/b/hub/secret"), "SECRET").unwrap();
    std::fs::write(bench.path("work/a/file"), "file").unwrap();
    for line in ["mv a c", "mv a/b a/c", "mv a/b/hub a/b/c", "cat a/b/hub/secret"] {
        let done = bench.exec.run(bench.job(line)).await.unwrap();
        assert_ne!(done.exit, Exit::Code(0), "{line}");
    }
    assert_eq!(
        bench.output_of("cat a/file && echo x > a/new && echo x > a/b/new && find . -name secret").await,
        "file"
    );
    // Others may.
    std::fs::rename(bench.path("work/a"), bench.path("work/c")).unwrap();
    assert!(bench.exec.run(bench.job("cat c/b/hub/secret")).await.is_err());
}

/// Programs in a home directory, with credentials beside them.
#[tokio::test]
async fn only_the_toolchain_is_seen_of_the_folder_above_it() {
    for choice in confining_sandboxes() {
        let home = std::env::home_dir().unwrap();
        let Ok(folder) = tempfile::tempdir_in(&home) else { return };
        let at = |name: &str| folder.path().join(name);
        let tool = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(at(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        tool(".fly/bin/flyctl", "echo flyctl");
        std::fs::write(at(".fly/config.yml"), "SECRET").unwrap();
        tool(".docker/bin/docker", "cat ${0%/bin/*}/lib/part");
        std::fs::create_dir_all(at(".docker/lib")).unwrap();
        std::fs::write(at(".docker/lib/part"), "docker").unwrap();
        std::fs::write(at(".docker/config.json"), "SECRET").unwrap();
        tool(".pyenv/versions/3/bin/python", "echo python");
        tool(
            ".pyenv/libexec/pyenv",
            "exec \"${0%/libexec/*}/versions/$(cat ${0%/libexec/*}/version)/bin/$1\"",
        );
        std::fs::write(at(".pyenv/version"), "3").unwrap();
        tool(".pyenv/shims/python", &format!("exec {}/.pyenv/libexec/pyenv python", folder.path().display()));
        std::fs::write(at(".pyenv/credentials"), "SECRET").unwrap();
        tool(".nvm/versions/node/v1/bin/node", "cat ${0%/bin/*}/lib/node_modules");
        std::fs::create_dir_all(at(".nvm/versions/node/v1/lib")).unwrap();
        std::fs::write(at(".nvm/versions/node/v1/lib/node_modules"), "node").unwrap();
        let folders = [".fly/bin", ".docker/bin", ".pyenv/shims", ".nvm/versions/node/v1/bin"].map(at);
        let usual = ["/usr/bin", "/bin"].map(PathBuf::from);
        let path = std::env::join_paths(folders.into_iter().chain(usual)).unwrap();
        let bench = ExecFixture::with(choice, |spec| spec.path = path);
        assert_eq!(
            bench.output_of("flyctl; docker; echo; python; node").await,
            "flyctl\ndocker\npython\nnode",
            "{choice:?}"
        );
        for secret in [".fly/config.yml", ".docker/config.json", ".pyenv/credentials"] {
            let done = bench.exec.run(bench.job(&format!("cat {}", at(secret).display()))).await.unwrap();
            assert_ne!(done.exit, Exit::Code(0), "{choice:?}: {secret}");
        }
    }
}

/// Whatever user the hub runs as, a program is not root for the kernel, and its files belong to the hub's user.
#[tokio::test]
async fn no_program_is_root() {
    for choice in confining_sandboxes() {
        let bench = ExecFixture::new(choice);
        let said = bench.output_of("echo x > made; echo y > /dev/stderr 2>/dev/null; mkdir sub; rm -r sub; while read -r line; do case $line in Uid*|Cap*) echo \"$line\";; esac; done < /proc/self/status").await;
        assert!(
            !said.lines().any(|line| line.starts_with("Uid") && line.split('\t').any(|id| id == "0")),
            "{choice:?}: {said}"
        );
        assert!(
            said.contains("CapEff:\t0000000000000000") && said.contains("CapPrm:\t0000000000000000"),
            "{choice:?}: {said}"
        );
        use std::os::unix::fs::MetadataExt;
        let own = std::fs::metadata(bench.path("work")).unwrap();
        let made = std::fs::metadata(bench.path("work/made")).unwrap();
        assert_eq!((made.uid(), made.gid()), (own.uid(), own.gid()), "{choice:?}");
        assert_eq!(bench.output_of("echo again > /dev/stdout").await, "again", "{choice:?}");
    }
}

/// Repeats all of this for a hub that is not root. Only root can change the user.
#[test]
fn a_regular_user_s_programs_are_kept_in_as_well() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = |path: &Path| std::os::unix::fs::chown(path, Some(4_321), Some(4_321)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (binary, home) = (folder.path().join("tests"), folder.path().join("home"));
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    std::fs::create_dir(&home).unwrap();
    own(&home);
    let done = std::process::Command::new("setpriv")
        .args(["--reuid=4321", "--regid=4321", "--clear-groups"])
        .arg(&binary)
        .args(["swaps::", "refused::", "--test-threads=2", "--skip", "a_regular_user_s"])
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .current_dir(&home)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && text.contains("test result: ok"), "{text}");
    assert!(!text.contains("running 0 tests"), "{text}");
}
