//! A real browser: its confinement, and that no process is left.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests inspect the machine itself and may panic"
)]

use octo_grants::chromium::{BrowserSandbox, Chromium, ChromiumSpec, RunningBrowser};
use octo_grants::exec::launcher;
use octo_grants::net::{Net, NetSpec};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The launcher that the other tests start: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    launcher::main(std::env::args_os());
}

fn chromium(state: &Path, enclosure: BrowserSandbox) -> Chromium {
    let spec = ChromiumSpec {
        path: "/usr/local/bin:/usr/bin:/bin".into(),
        state: state.to_owned(),
        launcher: launcher::test_launcher("launcher").unwrap(),
        sandbox: enclosure,
        net: Net::new(NetSpec::default()).unwrap(),
    };
    Chromium::new(spec).unwrap()
}

/// Sends one command over the pipes, to verify that it runs.
async fn version(launched: &RunningBrowser) -> String {
    let (mut to, mut from) = launched.pipes().unwrap();
    to.write_all(b"{\"id\":1,\"method\":\"Browser.getVersion\"}\0").await.unwrap();
    let mut answer = Vec::new();
    while answer.last() != Some(&0) {
        assert!(from.read_buf(&mut answer).await.unwrap() > 0, "{}", launched.stderr_text());
    }
    // The pipes stay open: without them the browser exits.
    std::mem::forget((to, from));
    String::from_utf8(answer).unwrap()
}

/// Processes with the directory of this test in their arguments.
fn processes_with_mark(state: &Path) -> Vec<(u32, String)> {
    let mark = state.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(mark) && pid != std::process::id()).then_some((pid, line))
    });
    processes.collect()
}

/// Ports on which a process listens, in its network namespace.
fn listening_sockets(pid: u32) -> Vec<String> {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == "0A" && sockets.iter().any(|inode| *inode == fields[9]) {
                found.push(fields[1].to_owned());
            }
        }
    }
    found
}

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(15), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn sec_br_03_a_browser_runs_enclosed_listens_nowhere_and_leaves_nothing() {
    for enclosure in [BrowserSandbox::Auto, BrowserSandbox::SharedNetwork] {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().canonicalize().unwrap();
        let grant = chromium(&state, enclosure);
        assert!(grant.sandbox().starts_with("bubblewrap"), "{}", grant.sandbox());
        let launched = grant.start().await.unwrap();
        assert!(version(&launched).await.contains("Chrome/"));
        assert_eq!(launched.credentials().is_some(), enclosure == BrowserSandbox::SharedNetwork);
        let running = processes_with_mark(&state);
        assert!(running.len() > 3, "{running:#?}");
        for (pid, line) in &running {
            assert!(!line.contains("--no-sandbox"), "{line}");
            assert_eq!(listening_sockets(*pid), Vec::<String>::new(), "{line}");
            // A process that has exited in the meantime has no ports.
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            assert!(!status.contains("\nUid:\t0\t"), "it is root: {line}");
        }
        if enclosure == BrowserSandbox::Auto {
            let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
            let renderer = running.iter().find(|(_, line)| line.contains("--type=")).unwrap().0;
            assert_ne!(std::fs::read_link(format!("/proc/{renderer}/ns/net")).unwrap(), ours);
        }
        drop(launched);
        wait_until("all processes are gone", || processes_with_mark(&state).is_empty()).await;
        wait_until("the profile is gone", || {
            std::fs::read_dir(state.join("browser")).unwrap().next().is_none()
        })
        .await;
    }
}

#[tokio::test]
async fn a_state_folder_may_have_a_long_path() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder
        .path()
        .canonicalize()
        .unwrap()
        .join("a-home-with-a-long-name/and-a-state-folder-far-below/of-it");
    for enclosure in [BrowserSandbox::Auto, BrowserSandbox::None] {
        let launched = chromium(&state, enclosure).start().await.unwrap();
        assert!(version(&launched).await.contains("Chrome/"), "{enclosure:?}");
        drop(launched);
        wait_until("all processes are gone", || processes_with_mark(&state).is_empty()).await;
    }
}

/// A hub without root; for the test that starts it so.
#[tokio::test]
#[ignore = "a process that another test starts"]
async fn without_root() {
    let state = std::env::var("OCTO_TEST_STATE").unwrap();
    for (enclosure, words) in [
        (BrowserSandbox::Auto, "bubblewrap, and Chromium's sandbox"),
        (BrowserSandbox::None, "Chromium's sandbox"),
    ] {
        let state = Path::new(&state).join(format!("{enclosure:?}"));
        let grant = chromium(&state, enclosure);
        assert_eq!(grant.sandbox(), words);
        let launched = grant.start().await.unwrap();
        assert!(version(&launched).await.contains("Chrome/"), "{}", launched.stderr_text());
        // No other process on the machine may use its proxy.
        assert!(launched.credentials().is_some());
        let running = processes_with_mark(&state);
        assert!(running.iter().any(|(_, line)| line.contains("--type=")), "{running:#?}");
        for (pid, line) in &running {
            assert!(!line.contains("--no-sandbox"), "{line}");
            assert_eq!(listening_sockets(*pid), Vec::<String>::new(), "{line}");
        }
        drop(launched);
        wait_until("all processes are gone", || processes_with_mark(&state).is_empty()).await;
    }
}

#[tokio::test]
async fn without_root_chromium_has_its_own_sandbox() {
    if !rustix::process::geteuid().is_root() {
        return without_root_here().await;
    }
    // Where every user may read it and write beside it.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hub");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [folder.path(), &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", "without_root", "--ignored", "--test-threads=1"])
        .env("OCTO_TEST_STATE", folder.path().join("state"))
        .env("TMPDIR", folder.path())
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// The same if the tests themselves run without root.
async fn without_root_here() {
    let folder = tempfile::tempdir().unwrap();
    let grant = chromium(folder.path(), BrowserSandbox::None);
    assert_eq!(grant.sandbox(), "Chromium's sandbox");
    assert!(version(&grant.start().await.unwrap()).await.contains("Chrome/"));
}

/// A separate hub, for the test that kills it.
#[tokio::test]
#[ignore = "a process that another test starts"]
async fn hub() {
    let state = std::env::var("OCTO_TEST_STATE").unwrap();
    let launched = chromium(Path::new(&state), BrowserSandbox::Auto).start().await.unwrap();
    version(&launched).await;
    std::fs::write(Path::new(&state).join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn sec_br_04_a_hub_that_is_killed_leaves_no_process_and_no_profile() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().canonicalize().unwrap();
    let mut hub = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hub", "--ignored", "--test-threads=1"])
        .env("OCTO_TEST_STATE", &state)
        .spawn()
        .unwrap();
    wait_until("the hub's browser runs", || state.join("ready").exists()).await;
    assert!(!processes_with_mark(&state).is_empty());
    hub.kill().unwrap();
    hub.wait().unwrap();
    wait_until("all processes are gone", || processes_with_mark(&state).is_empty()).await;
    wait_until("the profile is gone", || std::fs::read_dir(state.join("browser")).unwrap().next().is_none())
        .await;
}

#[tokio::test]
async fn without_the_program_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = ChromiumSpec {
        path: folder.path().into(),
        state: folder.path().join("state"),
        launcher: launcher::test_launcher("launcher").unwrap(),
        sandbox: BrowserSandbox::Auto,
        net: Net::new(NetSpec::default()).unwrap(),
    };
    let error = Chromium::new(spec.clone()).unwrap().start().await.err().unwrap();
    assert!(error.message.contains("not installed"), "{error}");
    std::fs::write(folder.path().join("chromium"), "#!/bin/sh\nexit 1\n").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(folder.path().join("chromium")).status().unwrap();
    spec.sandbox = BrowserSandbox::None;
    let launched = Chromium::new(spec).unwrap().start().await.unwrap();
    let (_to, mut from) = launched.pipes().unwrap();
    let mut answer = Vec::new();
    assert_eq!(from.read_buf(&mut answer).await.unwrap(), 0, "one that ends at once is heard to end");
}
