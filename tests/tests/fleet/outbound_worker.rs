//! A worker that can connect, but that nobody can connect to, as a laptop behind NAT.

use crate::test_fleet::{Database, TestFleet, call, call_when_served};
use anyhow::{Context, Result, anyhow, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::runtime::Handle;

/// Set inside the namespaces.
const INSIDE_VARIABLE: &str = "OCTOPROX_TEST_OUTBOUND";
const FRONT_ADDRESS: &str = "10.77.0.1";
const WORKER_ADDRESS: &str = "10.77.0.2";

/// The test restarts itself in a network of its own, which a link connects to that of the worker. The machine itself is
/// not changed.
const SCRIPT: &str = r#"
PATH="$PATH:/usr/sbin:/sbin"
in_worker() { nsenter --net=/run/netns/worker "$@"; }
mount -t tmpfs none /run
ip link set lo up
ip netns add worker
ip link add hub type veth peer name uplink netns worker
ip address add "$FRONT/24" dev hub
ip link set hub up
in_worker ip link set lo up
in_worker ip address add "$WORKER/24" dev uplink
in_worker ip link set uplink up
in_worker iptables -A INPUT -i uplink -p tcp --syn -j DROP
in_worker iptables -A INPUT -i uplink -p udp -j DROP
exec "$0" --exact "$1" --nocapture
"#;

#[test]
fn a_worker_without_inbound_connections_serves_its_tools() -> Result<()> {
    if std::env::var_os(INSIDE_VARIABLE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        return runtime.block_on(check_worker());
    }
    let is_root = rustix::process::geteuid().is_root();
    let output = Command::new("unshare")
        .args(["--net", "--mount"])
        .args(if is_root { &[][..] } else { &["--user", "--map-root-user"] })
        .args(["--fork", "--kill-child", "--", "/bin/sh", "-euc", SCRIPT])
        .arg(std::env::current_exe()?)
        .arg("outbound_worker::a_worker_without_inbound_connections_serves_its_tools")
        .env(INSIDE_VARIABLE, "1")
        .env("FRONT", FRONT_ADDRESS)
        .env("WORKER", WORKER_ADDRESS)
        .stdin(Stdio::null())
        .output()
        .context("no `unshare` (util-linux)")?;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    if !said.contains("running 1 test") {
        println!("skipped: namespaces with `unshare`, `ip` and `iptables` cannot be made here:\n{said}");
        return Ok(());
    }
    ensure!(output.status.success(), "it failed within its namespaces:\n{said}");
    Ok(())
}

async fn check_worker() -> Result<()> {
    let listener = in_worker_network(|| Ok(TcpListener::bind((WORKER_ADDRESS, 0))?))?;
    let connected = TcpStream::connect_timeout(&listener.local_addr()?, Duration::from_secs(2));
    ensure!(connected.is_err(), "the network of the worker can be reached");

    let page = serve_page()?;
    let fleet = TestFleet::without_database(FRONT_ADDRESS)?;
    let settings = json!({"toolboxes": {"shell": true, "browser": true}, "net": {"allow": ["10.77.0.0/24"]}});
    let runtime = Handle::current();
    let worker = in_worker_network(|| {
        let _entered = runtime.enter();
        fleet.worker("laptop", Database::None, settings.clone())
    })?;
    std::fs::write(worker.home.workspace().join("tea.txt"), "sencha\n")?;
    let (_home, front) = fleet.front_with("front", Database::None, settings.clone()).await?;
    let reply = call_when_served(&front, "fs_read_text", &json!({"path": "tea.txt"})).await?;
    assert!(reply.to_string().contains("sencha"), "{reply}");
    let reply = call(&front, "shell_exec", json!({"command": "cat tea.txt; echo $((6*7))"})).await?;
    assert!(reply.to_string().contains("42"), "{reply}");
    let reply = call(&front, "browser_navigate", json!({"url": format!("http://{page}/")})).await?;
    assert!(reply.to_string().contains("The tea is ready"), "{reply}");
    Ok(())
}

/// Runs something, such as the start of a process, on a thread in the network of the worker.
fn in_worker_network<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let namespace = std::fs::File::open("/run/netns/worker")?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            run()
        });
        thread.join().map_err(|_| anyhow!("the thread panicked"))?
    })
}

/// A page in the network of the front.
fn serve_page() -> Result<SocketAddr> {
    let listener = TcpListener::bind((FRONT_ADDRESS, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        const BODY: &str = "<title>Tea</title><h1>The tea is ready</h1>";
        for mut connection in listener.incoming().flatten() {
            let _ = connection.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length";
            let _ = write!(connection, "{head}: {}\r\n\r\n{BODY}", BODY.len());
        }
    });
    Ok(address)
}
