//! systemd, containers and health checks: notifications, activated sockets, and the duties of the first process.

use super::{ANN_TOKEN, ann_token, get_with_token, rewrite_settings};
use anyhow::{Context, Result, bail};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::processes::{descendants, zombies};
use octo_tests::test_binaries::binary_path;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

fn send_signal(hub: &RunningHub, signal: Signal) -> Result<()> {
    let pid = hub.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    Ok(kill_process(pid.context("the hub has exited")?, signal)?)
}

#[tokio::test]
async fn the_service_manager_learns_of_readiness_reloads_and_the_end() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let socket = home.dir.path().join("notify");
    let inbox = UnixDatagram::bind(&socket)?;
    inbox.set_read_timeout(Some(Duration::from_secs(20)))?;
    let next = || -> Result<String> {
        let mut message = [0; 256];
        let length = inbox.recv(&mut message)?;
        Ok(String::from_utf8_lossy(message.get(..length).unwrap_or_default()).into_owned())
    };
    let mut command = home.command(&["serve", "--port", "0"])?;
    command.env("NOTIFY_SOCKET", &socket).stdout(Stdio::null());
    let mut hub = RunningHub::start(command).await?;
    assert_eq!(next()?, "READY=1\n");
    send_signal(&hub, Signal::HUP)?;
    let reloading = next()?;
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(next()?, "READY=1\n");
    send_signal(&hub, Signal::TERM)?;
    assert_eq!(next()?, "STOPPING=1\n");
    assert_eq!(hub.process.wait().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn the_watchdog_is_fed() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let socket = home.dir.path().join("notify");
    let inbox = UnixDatagram::bind(&socket)?;
    inbox.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut command = home.command(&["serve", "--port", "0"])?;
    command.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "200000").stdout(Stdio::null());
    let _hub = RunningHub::start(command).await?;
    let mut fed = 0;
    while fed < 3 {
        let mut message = [0; 256];
        let length = inbox.recv(&mut message)?;
        fed += usize::from(message.get(..length) == Some(b"WATCHDOG=1\n"));
    }
    Ok(())
}

/// A hub that gets its sockets as a service manager passes them, as descriptors 3 and 4.
fn activated(home: &HubHome, http: TcpListener, admin: TcpListener) -> Result<Command> {
    let program = binary_path("octoprox")?;
    let command = home.command(&[])?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec 3<&0 4>&1 </dev/null >/dev/null; exec \"$0\" serve"])
        .arg(program)
        .env_clear()
        .envs(command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("LISTEN_FDS", "2")
        .current_dir(home.dir.path())
        .stdin(OwnedFd::from(http))
        .stdout(OwnedFd::from(admin))
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(shell)
}

#[tokio::test]
async fn sockets_of_the_service_manager_are_used() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let (http, admin) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (http_address, admin_address) = (http.local_addr()?, admin.local_addr()?);
    // Clients may connect before the hub runs.
    let early =
        tokio::spawn(async move { get_with_token(&format!("http://{http_address}/ready"), "").await });
    let hub = activated(&home, http, admin)?.spawn()?;
    assert_eq!(early.await??.status, 200);
    let health = get_with_token(&format!("http://{admin_address}/servers"), "").await?;
    assert_eq!(health.status, 200);
    drop(hub);
    Ok(())
}

#[tokio::test]
async fn a_public_socket_needs_tokens() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let open = || TcpListener::bind("0.0.0.0:0");
    let refused =
        activated(&home, open()?, TcpListener::bind("127.0.0.1:0")?)?.spawn()?.wait_with_output().await?;
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("not a loopback address, and no tokens are configured"), "{said}");
    rewrite_settings(&home, &json!({"auth": {"tokens": [ann_token()]}}))?;
    let http = open()?;
    let port = http.local_addr()?.port();
    let _hub = activated(&home, http, TcpListener::bind("127.0.0.1:0")?)?.spawn()?;
    let url = format!("http://127.0.0.1:{port}/tools");
    assert_eq!(get_with_token(&url, "").await?.status, 401);
    assert_eq!(get_with_token(&url, ANN_TOKEN).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_socket_that_does_not_listen_is_refused() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let connected = std::net::TcpStream::connect(listener.local_addr()?)?;
    let http = TcpListener::from(OwnedFd::from(connected));
    let refused =
        activated(&home, http, TcpListener::bind("127.0.0.1:0")?)?.spawn()?.wait_with_output().await?;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("Socket 1 of the service manager cannot be used: it does not listen."), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_health_check_reports_whether_the_hub_is_ready() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    let port = hub.base_url.rsplit(':').next().unwrap_or_default().to_owned();
    // Small images may have no root certificates.
    let mut command = home.command(&["healthcheck", "--port", &port])?;
    let output = command.env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", "/none").output().await?;
    let said = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert_eq!((output.status.code(), said), (Some(0), ("ready\n".to_owned(), String::new())));
    drop(hub);
    let gone = eventually("the hub is gone", async || {
        let (code, _, said) = home.run(&["healthcheck", "--port", &port]).await.unwrap();
        (code != 0).then_some((code, said))
    });
    let (code, said) = gone.await?;
    assert!(
        code == 1 && said.contains(&format!("No hub answers at http://127.0.0.1:{port}/ready")),
        "{said}"
    );
    Ok(())
}

/// A command as the first process of a PID namespace and of a session, as in a container.
fn as_first_process(home: &HubHome, words: &[&str]) -> Result<Command> {
    if !rustix::process::geteuid().is_root() {
        bail!("needs root, to create a PID namespace");
    }
    let hub_command = home.command(&[])?;
    let mut command = Command::new("setsid");
    command
        .args(["--wait", "unshare", "--pid", "--fork", "--kill-child"])
        .arg(binary_path("octoprox")?)
        .args(words)
        .env_clear()
        .envs(hub_command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(home.dir.path())
        .kill_on_drop(true);
    Ok(command)
}

/// Both ends of a terminal that controls no session.
fn open_terminal() -> Result<(OwnedFd, OwnedFd)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let name = ptsname(&terminal, Vec::new())?;
    let program_side = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    Ok((terminal, program_side))
}

/// A terminal that does not control the session cannot be handed to the hub.
#[tokio::test]
async fn the_first_process_runs_with_the_terminal_of_another_session() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let (_terminal, program_side) = open_terminal()?;
    let mut command = as_first_process(&home, &["call", "time_now", "timezone=UTC"])?;
    let output = command.stdin(program_side).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.as_ref()), (Some(0), ""));
    assert!(String::from_utf8(output.stdout)?.contains("timezone: UTC"));
    Ok(())
}

#[tokio::test]
async fn the_first_process_forwards_signals_and_reaps_orphans() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let mut command = as_first_process(&home, &["serve", "--port", "0"])?;
    command.stdout(Stdio::null());
    let mut hub = RunningHub::start(command).await?;
    let below = descendants(hub.process.id().context("the hub has exited")?);
    let init = below.iter().find(|process| process.name == "octoprox").context("no process of the hub")?.pid;
    for _ in 0..5 {
        let orphan = ["--target", &init.to_string(), "--pid", "sh", "-c", "sleep 0.05 &"].map(str::to_owned);
        assert!(Command::new("nsenter").args(orphan).status().await?.success());
    }
    eventually("orphans are reaped", async || {
        let sleeps = descendants(init).len() > 1;
        (!sleeps && zombies(init) == 0).then_some(())
    })
    .await?;
    let init = Pid::from_raw(i32::try_from(init)?).context("no process")?;
    kill_process(init, Signal::TERM)?;
    assert_eq!(hub.process.wait().await?.code(), Some(0));
    Ok(())
}
