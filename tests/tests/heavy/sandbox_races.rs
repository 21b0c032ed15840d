//! A hub whose directories are swapped for links continuously while its tools start programs.
//!
//! `OCTOPROX_BIN` names another binary to attack, `OCTOPROX_RACE_SECONDS` how long each of the four hubs is attacked.

use anyhow::{Context, Result, bail};
use octo_tests::http_client::HttpClient;
use octo_tests::test_binaries::binary_path;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Uid that no other user of this machine has.
const REGULAR_UID: u32 = 4_321;

fn binary() -> Result<PathBuf> {
    std::env::var_os("OCTOPROX_BIN").map_or_else(|| binary_path("octoprox"), |path| Ok(path.into()))
}

/// A home with a secret, a workspace in it, and a hub.
struct RaceHub {
    folder: tempfile::TempDir,
    base: String,
    _hub: Child,
}

impl RaceHub {
    async fn new(sandbox: &str, user: u32) -> Result<Self> {
        let folder = tempfile::TempDir::with_prefix("octoprox-race")?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        let at = |name: &str| folder.path().join(name);
        std::fs::copy(binary()?, at("octoprox"))?;
        for name in ["home/ws/.git", "home/ws/venv/bin", "home/ws/a/repos", "home/ws/proj/.git"] {
            std::fs::create_dir_all(at(name))?;
        }
        std::fs::write(at("home/secret"), "SECRET")?;
        // What is planted tries to read and to write outside.
        for name in ["bwrap", "git", "setsid", "chromium"] {
            let planted = at("home/ws/venv/bin").join(name);
            let home = at("home").display().to_string();
            std::fs::write(&planted, format!("#!/bin/sh\ncat {home}/secret\ntouch {home}/planted\n"))?;
            std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o755))?;
        }
        for (link, target) in
            [(".gitl", ".."), ("venv/link", "../.."), ("a/link", "../.."), ("proj/.gitl", "../..")]
        {
            symlink(target, at("home/ws").join(link))?;
        }
        let settings = json!({
            "workspace": at("home/ws"),
            "roots": {"repos": {"path": at("home/ws/a/repos"), "writable": true}},
            "toolboxes": {"shell": true, "browser": true},
            "shell": {"sandbox": sandbox},
            "admin": {"port": 0},
        });
        std::fs::write(at("octoprox.yaml"), settings.to_string())?;
        chown_all(&at("home"), user)?;
        let mut path = OsString::from(at("home/ws/venv/bin"));
        path.push(":/usr/bin:/bin");
        let mut hub = Command::new("setpriv")
            .args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()])
            .arg(at("octoprox"))
            .args(["serve", "--port", "0", "--config"])
            .arg(at("octoprox.yaml"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", at("home"))
            .env("OCTOPROX_STATE_DIR", at("home/state"))
            .current_dir(at("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(hub.stderr.take().context("no stderr")?).lines();
        let mut said = String::new();
        while let Some(line) = lines.next_line().await? {
            let address = line.find("http://").and_then(|from| line.get(from..)?.split("/mcp").next());
            if let Some(base) = address.filter(|_| line.contains("/mcp")) {
                let base = base.to_owned();
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(Self { folder, base, _hub: hub });
            }
            said.push_str(&line);
        }
        bail!("the hub did not start: {said}")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Result<String> {
        let client = HttpClient::default();
        client.post(&format!("{}/tools/{tool}", self.base), &[], arguments).await?.text().await
    }
}

fn chown_all(path: &Path, user: u32) -> Result<()> {
    lchown(path, Some(user), Some(user))?;
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path)? {
            chown_all(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// Swaps two names until stopped, and counts.
fn swap_until_stopped(
    (one, other): (PathBuf, PathBuf),
    ends: &Arc<AtomicBool>,
    count: &Arc<AtomicU64>,
) -> std::thread::JoinHandle<()> {
    let (ends, count) = (Arc::clone(ends), Arc::clone(count));
    std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            let done = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
            count.fetch_add(u64::from(done.is_ok()), Ordering::Relaxed);
        }
    })
}

/// How often something outside was read and written, and the number of calls and swaps.
#[derive(Debug, Default)]
struct AttackCounts {
    reads: u64,
    writes: u64,
    calls: u64,
    browsers: u64,
    swaps: u64,
    first: Option<Duration>,
}

async fn attack(sandbox: &str, user: u32, time: Duration) -> Result<AttackCounts> {
    let ground = RaceHub::new(sandbox, user).await?;
    let ws = ground.at("home/ws");
    let pair = |one: &str, other: &str| (ws.join(one), ws.join(other));
    let pairs = vec![
        pair(".git", ".gitl"),
        pair("venv/bin", "venv/link"),
        pair("a/repos", "a/link"),
        pair("proj/.git", "proj/.gitl"),
    ];
    let (ends, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let swappers: Vec<_> = pairs.into_iter().map(|pair| swap_until_stopped(pair, &ends, &swaps)).collect();
    let home = ground.at("home").display().to_string();
    let line = format!(
        "cat {home}/secret .git/secret a/repos/secret venv/bin/secret ../.git/secret; ls {home}/state; touch {home}/planted .git/planted a/repos/planted; true"
    );
    let programs = [
        ("shell_exec", json!({"command": line})),
        ("shell_exec", json!({"command": line, "cwd": "proj"})),
        ("git", json!({"command": "status", "args": []})),
    ];
    let field = "document.body.innerHTML = '<input type=file>'; 'field'";
    let text = "await document.querySelector('input').files[0]?.text()";
    let browser = [
        ("browser_tabs", json!({"action": "new"})),
        ("browser_execute_js", json!({"script": field})),
        ("browser_upload", json!({"selector": "input", "paths": ["a/repos/secret"]})),
        ("browser_execute_js", json!({"script": text})),
        ("browser_upload", json!({"selector": "input", "paths": [".git/secret"]})),
        ("browser_execute_js", json!({"script": text})),
        ("browser_close", json!({})),
    ];
    let mut count = AttackCounts::default();
    let begun = Instant::now();
    for round in 0.. {
        if begun.elapsed() >= time {
            break;
        }
        let with_browser = if round % 8 == 0 { &browser[..] } else { &[] };
        for (tool, arguments) in programs.iter().chain(with_browser) {
            let said = ground.call(tool, arguments).await?;
            count.calls += 1;
            count.browsers += u64::from(said.contains(r#""result":"field""#));
            let read = said.contains("SECRET") || said.contains("octoprox.db");
            count.reads += u64::from(read);
            for name in ["planted", ".git"] {
                let path = ground.at("home").join(name);
                let written = path.symlink_metadata().is_ok();
                count.writes += u64::from(written);
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
                if written || read {
                    count.first.get_or_insert(begun.elapsed());
                }
            }
        }
    }
    ends.store(true, Ordering::Relaxed);
    for swapper in swappers {
        swapper.join().unwrap();
    }
    count.swaps = swaps.load(Ordering::Relaxed);
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn nothing_outside_is_read_or_written_for_a_minute() -> Result<()> {
    let seconds =
        std::env::var("OCTOPROX_RACE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(15);
    let mut lost = Vec::new();
    for sandbox in ["bubblewrap", "landlock"] {
        for user in [0, REGULAR_UID] {
            let count = attack(sandbox, user, Duration::from_secs(seconds)).await?;
            println!("{sandbox}, user {user}: {count:?}");
            assert!(count.calls > 10 && count.swaps > 1_000, "{sandbox} {user}: {count:?}");
            assert!(count.browsers > 0, "no browser has started: {sandbox} {user}: {count:?}");
            if count.reads + count.writes > 0 {
                lost.push(format!("{sandbox}, user {user}: {count:?}"));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
    Ok(())
}
