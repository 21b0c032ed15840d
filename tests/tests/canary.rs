//! Leak test: secrets in every possible place, calls that succeed and fail, refreshes, a crash; then everything that
//! the hub wrote is searched for them.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests start the programs they test, and a missing member of a JSON value reads as null"
)]

#[path = "canary/canary_hub.rs"]
mod canary_hub;
#[path = "canary/leaky_services.rs"]
mod leaky_services;
#[path = "canary/secret_search.rs"]
mod secret_search;

use anyhow::{Context, Result, ensure};
use canary_hub::CanaryHub;
use leaky_services::{LeakyServices, canary_secret};
use octo_tests::eventually;
use octo_tests::processes;
use secret_search::{CollectedOutput, Secrets, encodings};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::process::{Child, Command};

fn lock_services(world: &Arc<Mutex<LeakyServices>>) -> MutexGuard<'_, LeakyServices> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The callback URL that a browser would open.
fn callback_url(open: &Value, code: &str) -> Result<String> {
    let url = open["result"]["auth_url"].as_str().with_context(|| format!("no address to open: {open}"))?;
    let part = |name: &str| {
        let found = url.split(['?', '&']).find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.with_context(|| format!("no {name} in {url}"))
    };
    let to = part("redirect_uri")?.replace("%3A", ":").replace("%2F", "/");
    Ok(format!("{to}?code={code}&state={}", part("state")?))
}

/// Logs in, and uses the login until it was refreshed and finally lost.
async fn use_login(hub: &mut CanaryHub, world: &Arc<Mutex<LeakyServices>>, code: &str) -> Result<()> {
    let open = hub.call("server_login", json!({"server": "login"})).await?;
    let answer = callback_url(&open, code)?;
    hub.expect_success("server_login", json!({"server": "login", "answer": answer})).await?;
    // A token is good for two seconds, and a login connects by itself.
    eventually("the login is used and renewed", async || {
        hub.expect_success("login__works", json!({})).await.ok()?;
        (lock_services(world).renewals >= 3).then_some(())
    })
    .await?;
    lock_services(world).revoked = true;
    let lost = eventually("the login is lost", async || {
        let reply = hub.call("login__works", json!({})).await.ok()?;
        (reply["success"] == false).then_some(reply)
    })
    .await?;
    assert_eq!(lost["error"]["kind"], "unauthorized", "{lost}");
    Ok(())
}

async fn use_everything(hub: &mut CanaryHub) -> Result<()> {
    hub.expect_success("child__fix_echo", json!({"text": "hello"})).await?;
    for server in ["header", "query", "keyed"] {
        hub.expect_success(&format!("{server}__works"), json!({})).await?;
        hub.expect_failure(&format!("{server}__fails"), json!({})).await?;
    }
    hub.expect_failure("child__fix_fail", json!({"message": "no"})).await?;
    // A program that ends, an address where nobody is, a server that repeats what it refuses.
    for server in ["dies", "gone", "refused"] {
        hub.expect_failure("server_connect", json!({"server": server})).await?;
        hub.expect_failure(&format!("{server}__works"), json!({})).await?;
    }
    hub.expect_success("servers_list", json!({})).await?;
    hub.call_with_unknown_token("time_now", json!({})).await?;
    for words in [
        &["servers", "list", "--json"][..],
        &["servers", "test"],
        &["doctor"],
        &["config", "show"],
        &["tools", "--json", "--all"],
        &["audit", "tail", "-n", "200", "--json"],
        &["call", "child__fix_fail", "message=no"],
        &["call", "refused__works"],
    ] {
        hub.command(words, "").await?;
    }
    Ok(())
}

/// A program may have the variable that its entry names; no other process may have a secret.
fn check_processes(pid: u32, secrets: &Secrets, written: &mut CollectedOutput) -> Result<()> {
    let own = secrets["variable"].as_bytes();
    let mut holders = 0;
    for process in processes::descendants(pid)
        .into_iter()
        .chain(processes::all_processes().into_iter().filter(|one| one.pid == pid))
    {
        written.add(format!("cmdline of {} {}", process.name, process.pid), process.command_line());
        // The hub itself was given its secrets in variables by whoever started it.
        if process.pid == pid {
            continue;
        }
        let environment = process.environment();
        let variables = environment.split(|byte| *byte == 0);
        let is_named = |variable: &[u8]| variable == [b"CHILD_API_KEY=", own].concat();
        let others: Vec<&[u8]> = variables.filter(|variable| !is_named(variable)).collect();
        holders += usize::from(others.len() < environment.split(|byte| *byte == 0).count());
        written.add(format!("environ of {} {}", process.name, process.pid), others.join(&0));
    }
    ensure!(holders > 0, "no program has the variable that its entry names, so nothing was looked at");
    Ok(())
}

#[tokio::test]
async fn no_secret_is_found_in_anything_that_is_written() -> Result<()> {
    let (base, world) = leaky_services::serve().await?;
    let kinds = ["variable", "header", "query", "client", "key", "code", "master", "wrong"];
    let mut secrets: Secrets = kinds.into_iter().map(|kind| (kind, canary_secret(kind, 0))).collect();
    let mut hub = CanaryHub::start(&base, &secrets).await?;
    secrets.insert("bearer", hub.bearer.clone());
    let mut written = CollectedOutput::default();

    hub.command(&["login", "keyed"], &format!("{}\n", secrets["key"])).await?;
    use_login(&mut hub, &world, &secrets["code"]).await?;
    use_everything(&mut hub).await?;
    check_processes(hub.pid()?, &secrets, &mut written)?;
    eventually("spans are exported", async || (!lock_services(&world).spans.is_empty()).then_some(()))
        .await?;

    // A crash, where the system would write a core.
    assert_eq!(crash(&mut hub.process).await?, CoreDump::None);

    written.add_folder(hub.home.dir.path())?;
    written.add_folder(hub.output_dir.path())?;
    written.add("spans", lock_services(&world).spans.clone());
    written.add("replies", hub.replies.join("\n"));
    for (number, token) in lock_services(&world).tokens.iter().enumerate() {
        let name = if number % 2 == 0 { "access token" } else { "refresh token" };
        let one = Secrets::from([(name, token.clone())]);
        assert_eq!(written.find(&one), Vec::<String>::new());
    }
    assert_eq!(written.find(&secrets), Vec::<String>::new());
    check_coverage(&written, &world, &secrets)
}

/// Checks that the secrets were used and that output was collected; otherwise the search would prove nothing.
fn check_coverage(
    written: &CollectedOutput,
    world: &Arc<Mutex<LeakyServices>>,
    secrets: &Secrets,
) -> Result<()> {
    let world = lock_services(world);
    let travelled: String =
        world.requests.iter().map(|(path, secret)| format!("{path} {secret}\n")).collect();
    let is_there = |secret: &str| {
        encodings(secret.as_bytes())
            .iter()
            .any(|(_, form)| travelled.contains(&*String::from_utf8_lossy(form)))
    };
    for kind in ["header", "query", "client", "key", "code"] {
        ensure!(is_there(&secrets[kind]), "the secret of the kind {kind} was never used");
    }
    ensure!(
        world.tokens.len() >= 8 && world.tokens.iter().take(6).all(|token| is_there(token)),
        "{:?}",
        world.tokens
    );
    for place in [".db", "-wal", "hub.log", "stdout", "stderr", "spans", "replies"] {
        ensure!(written.size(place) > 0, "nothing was written to {place}");
    }
    ensure!(written.text("hub.log").contains(r#""level":"TRACE""#), "not all levels were logged");
    ensure!(written.text("replies").contains("it does not work"), "no failure was told");
    Ok(())
}

/// Core dump left by a crash.
#[derive(Debug, PartialEq, Eq)]
enum CoreDump {
    Written,
    None,
}

async fn crash(process: &mut Child) -> Result<CoreDump> {
    let pid = process.id().context("it has ended")?;
    ensure!(std::process::Command::new("kill").args(["-ABRT", &pid.to_string()]).status()?.success());
    let status = process.wait().await?;
    assert_eq!(status.signal(), Some(6));
    Ok(if status.core_dumped() { CoreDump::Written } else { CoreDump::None })
}

/// Verifies that this system writes core dumps at all; otherwise the other test would prove nothing.
#[tokio::test]
async fn this_system_writes_a_core_of_a_program_that_does_not_mind() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited; exec sleep 60"]).current_dir(folder.path()).kill_on_drop(true);
    let mut process = command.spawn()?;
    // It is not the shell any more.
    eventually("it sleeps", async || {
        let pid = process.id()?;
        processes::all_processes().into_iter().find(|one| one.pid == pid && one.name == "sleep")
    })
    .await?;
    assert_eq!(crash(&mut process).await?, CoreDump::Written);
    Ok(())
}

#[test]
fn the_search_finds_what_is_there() -> Result<()> {
    let secrets = Secrets::from([("planted", canary_secret("planted", 1))]);
    let planted = &secrets["planted"];
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("deep"))?;
    for (number, before) in ["", "a", "ab"].into_iter().enumerate() {
        // What the system's own encoders make of it, so that a mistake in ours is seen.
        for (tool, args) in [("cat", &[][..]), ("base64", &["-w0"]), ("od", &["-An", "-tx1", "-v"])] {
            let file = folder.path().join(format!("deep/{tool}{number}"));
            let script = format!(
                "printf %s '{before}{planted}:end' | {tool} {} | tr -d ' \\n' > {}",
                args.join(" "),
                file.display()
            );
            ensure!(std::process::Command::new("sh").args(["-c", &script]).status()?.success());
        }
    }
    let mut written = CollectedOutput::default();
    written.add_folder(folder.path())?;
    let found = written.find(&secrets);
    for number in 0..3 {
        for tool in ["cat", "base64", "od"] {
            let place = format!("deep/{tool}{number}");
            ensure!(found.iter().any(|found| found.ends_with(&place)), "{place} was overlooked: {found:?}");
        }
    }
    assert_eq!(found.len(), 9, "{found:?}");
    Ok(())
}
