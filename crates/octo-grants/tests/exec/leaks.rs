//! Nothing of the hub's environment or descriptors reaches a program.

use crate::bench::{ExecFixture, sandboxes};
use octo_grants::exec::{Exit, Program, SandboxChoice};
use octo_model::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;

/// A separate hub process, because variables can only be set before a process starts.
#[test]
#[ignore = "a process that another test starts with canaries"]
fn hub_with_canaries() {
    if std::env::var_os("CANARY_0").is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for choice in sandboxes() {
            let bench = ExecFixture::with(choice, |spec| {
                spec.pass_env =
                    [("CANARY_PASSED".to_owned(), std::env::var("CANARY_PASSED").unwrap_or_default())].into()
            });
            // Descriptors that any other child of this process would inherit.
            let file =
                std::fs::File::open("/etc/hostname").or_else(|_| std::fs::File::open("/etc/passwd")).unwrap();
            let open: Vec<_> = (0..10).map(|_| file.try_clone().unwrap()).collect();
            for file in &open {
                rustix::io::fcntl_setfd(file.as_fd(), rustix::io::FdFlags::empty()).unwrap();
            }
            let variables = bench.output_of("env").await;
            let names: BTreeSet<_> =
                variables.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
            let expected = [
                "CANARY_PASSED",
                "GH_PAGER",
                "GIT_PAGER",
                "HOME",
                "LANG",
                "MARK",
                "NO_COLOR",
                "PAGER",
                "PATH",
                "PWD",
                "TERM",
                "TMPDIR",
            ];
            // The shell itself counts its depth and names the last command.
            let told: BTreeSet<_> =
                names.into_iter().filter(|name| !["SHLVL", "OLDPWD", "_"].contains(name)).collect();
            assert_eq!(told, BTreeSet::from(expected), "{choice:?}");
            assert!(variables.contains("CANARY_PASSED=passed"), "{choice:?}");
            let line = "for n in $(seq 0 250); do [ -e /proc/self/fd/$n ] && echo $n; done; true";
            let descriptors = bench.output_of(line).await;
            assert_eq!(descriptors.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"], "{choice:?}");
            let any_child = std::process::Command::new("sh").args(["-c", line]).output().unwrap().stdout;
            assert!(any_child.iter().filter(|byte| **byte == b'\n').count() > 3, "the canaries are real");
            drop(open);
        }
    });
    println!("ALL SEEN");
}

#[test]
fn canaries_are_seen_by_no_program() {
    let canaries = (0..30).map(|number| (format!("CANARY_{number}"), format!("secret-{number}")));
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leaks::hub_with_canaries", "--ignored", "--nocapture"])
        .envs(canaries)
        .env("CANARY_PASSED", "passed")
        .env("LD_LIBRARY_PATH", "/nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && text.contains("ALL SEEN"),
        "{text}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[tokio::test]
async fn values_of_variables_stand_in_no_arguments() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let mut job = bench.job("cat /proc/self/environ >/dev/null; sleep 0.5; true");
        job.env = BTreeMap::from([("TOKEN".to_owned(), "value-of-a-secret".to_owned())]);
        let run = bench.exec.run(job);
        let watch = async {
            let mut seen = false;
            for _ in 0..40 {
                for process in crate::bench::processes_with_mark(&bench.mark) {
                    seen = true;
                    assert!(!process.contains("value-of-a-secret"), "{choice:?}: {process}");
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            assert!(seen, "{choice:?}");
        };
        let (done, ()) = tokio::join!(run, watch);
        assert_eq!(done.unwrap().exit, Exit::Code(0));
    }
}

#[tokio::test]
async fn variables_that_load_code_and_bad_names_are_refused() {
    let bench = ExecFixture::new(SandboxChoice::None);
    for (name, kind) in [("LD_PRELOAD", Kind::Denied), ("A=B", Kind::Invalid), ("", Kind::Invalid)] {
        let mut job = bench.job("true");
        job.env.insert(name.to_owned(), "x".to_owned());
        assert_eq!(bench.exec.run(job).await.map(|_| ()).unwrap_err().kind, kind, "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_run_says_why() {
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        std::fs::write(bench.path("work/plain"), "text").unwrap();
        for (words, kinds) in [
            (vec!["no-such-program"], vec![Kind::NotFound]),
            (vec!["./no-such-file"], vec![Kind::NotFound]),
            (vec!["./plain"], vec![Kind::Denied, Kind::NotFound]),
            (vec![], vec![Kind::Invalid]),
            (vec!["echo", "a\0b"], vec![Kind::Invalid]),
        ] {
            let mut job = bench.job("");
            job.program = Program::Argv(words.iter().map(Into::into).collect());
            let error = bench.exec.run(job).await.map(|done| done.exit).unwrap_err();
            assert!(kinds.contains(&error.kind), "{choice:?}: {words:?}: {error}");
            assert!(error.hint.is_some(), "{words:?}");
        }
        let mut job = bench.job("");
        job.program =
            Program::Argv(["printf", "%s|", "a b", "$(id)", ";", "*", "`x`", "\n"].map(Into::into).into());
        let done = bench.exec.run(job).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout.head), "a b|$(id)|;|*|`x`|\n|", "{choice:?}");
    }
}

#[test]
fn programs_are_found_in_the_search_path_only() {
    let bench = ExecFixture::with(SandboxChoice::None, |spec| {
        spec.path = format!("relative:{}:/usr/bin:/bin", spec.state.display()).into()
    });
    std::fs::write(bench.path("state/plain"), "text").unwrap();
    std::fs::create_dir(bench.path("state/folder")).unwrap();
    assert!(bench.exec.which("sh").is_some_and(|path| path.is_absolute()));
    for name in ["plain", "folder", "/bin/sh", "../bin/sh", "", ".", "no-such-program"] {
        assert_eq!(bench.exec.which(name), None, "{name}");
    }
}
