//! Listeners on every address: a few of them are the public internet, at all others no connection may arrive.

use super::public_site;
use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Ports of the listeners.
pub const PORTS: [u16; 4] = [80, 443, 8080, 47_808];

/// Ports of STUN and QUIC.
const UDP_PORTS: [u16; 2] = [3478, 443];

/// The text that a canary would leak.
pub const SECRET: &str = "the canary's secret";

/// Forbidden addresses that the test itself probes.
const PRIVATE_ADDRESSES: [&str; 12] = [
    "169.254.169.254",
    "10.0.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "192.168.0.1",
    "100.100.100.200",
    "::1",
    "fd00::1",
    "fd00:ec2::254",
    "::ffff:10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "2002:a00:1::1",
];

/// A connection.
#[derive(Debug, Clone)]
pub struct Connection {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Requested path and query, once known.
    pub path: String,
}

pub struct CanaryListeners {
    arrivals: Arc<Mutex<Vec<Connection>>>,
    datagrams: Arc<Mutex<Vec<SocketAddr>>>,
}

impl CanaryListeners {
    pub async fn new() -> Result<Self> {
        let canaries = Self { arrivals: Arc::default(), datagrams: Arc::default() };
        for port in PORTS {
            // Takes IPv4 as well.
            let listener = TcpListener::bind(("::", port)).await.with_context(|| format!("port {port}"))?;
            tokio::spawn(accept(listener, Arc::clone(&canaries.arrivals)));
        }
        for port in UDP_PORTS {
            let socket = UdpSocket::bind(("::", port)).await?;
            let datagrams = Arc::clone(&canaries.datagrams);
            tokio::spawn(async move {
                while let Ok((_, from)) = socket.recv_from(&mut [0; 2048]).await {
                    datagrams.lock().unwrap().push(from);
                }
            });
        }
        Ok(canaries)
    }

    /// All forbidden connections since the last [`CanaryListeners::reset`].
    pub async fn forbidden_connections(&self) -> Result<Vec<Connection>> {
        self.wait_for_pending().await?;
        let mut caught = self.arrivals.lock().unwrap().clone();
        caught.retain(|arrival| !public_site::is_public(arrival.to.ip()));
        Ok(caught)
    }

    /// Number of requests to the public servers.
    pub fn public_requests(&self) -> usize {
        self.arrivals.lock().unwrap().iter().filter(|arrival| public_site::is_public(arrival.to.ip())).count()
    }

    /// Paths requested at forbidden addresses; for a connection without a request (TLS), the address.
    pub fn forbidden_paths(&self) -> BTreeSet<String> {
        let arrivals = self.arrivals.lock().unwrap();
        let caught = arrivals.iter().filter(|arrival| !public_site::is_public(arrival.to.ip()));
        let label = |arrival: &Connection| match arrival.path.is_empty() {
            true => arrival.to.to_string(),
            false => arrival.path.clone(),
        };
        caught.map(label).collect()
    }

    pub fn datagrams(&self) -> usize {
        self.datagrams.lock().unwrap().len()
    }

    pub fn reset(&self) {
        self.arrivals.lock().unwrap().clear();
        self.datagrams.lock().unwrap().clear();
    }

    /// Connections arrive in order: once a probe has arrived, all earlier ones have, too.
    async fn wait_for_pending(&self) -> Result<()> {
        for port in PORTS {
            self.probe(SocketAddr::new(IpAddr::from([10, 0, 0, 1]), port)).await?;
        }
        Ok(())
    }

    /// Connects, checks that it was counted once, and removes itself from the list.
    async fn probe(&self, to: SocketAddr) -> Result<()> {
        let before = self.arrivals.lock().unwrap().len();
        let stream = TcpStream::connect(to).await.with_context(|| format!("{to} is not there"))?;
        let ours = canonical(stream.local_addr()?);
        let what = format!("the canary at {to} counts");
        let seen = eventually(&what, async || {
            let mut arrivals = self.arrivals.lock().unwrap();
            let later = arrivals.split_off(before);
            let (own, other): (Vec<_>, _) = later.into_iter().partition(|one| canonical(one.from) == ours);
            arrivals.extend(other);
            (!own.is_empty()).then_some(own)
        });
        let seen = seen.await?;
        ensure!(seen.len() == 1 && seen[0].to == canonical(to), "{to} was seen as {seen:?}");
        Ok(())
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

async fn accept(listener: TcpListener, arrivals: Arc<Mutex<Vec<Connection>>>) {
    loop {
        let Ok((stream, from)) = listener.accept().await else { continue };
        let Ok(to) = stream.local_addr() else { continue };
        arrivals.lock().unwrap().push(Connection { from, to: canonical(to), path: String::new() });
        let arrivals = Arc::clone(&arrivals);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(Duration::from_secs(20), serve(stream, from, to, &arrivals)).await;
        });
    }
}

/// Serves one request.
async fn serve(
    mut stream: TcpStream,
    from: SocketAddr,
    to: SocketAddr,
    arrivals: &Mutex<Vec<Connection>>,
) -> Result<()> {
    let mut request = Vec::new();
    let path = loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            if body.len() >= length.unwrap_or(0usize) {
                break head.split(' ').nth(1).unwrap_or_default().to_owned();
            }
        }
        ensure!(stream.read_buf(&mut request).await? > 0 && request.len() < 1 << 20, "not a request");
        ensure!(request[0].is_ascii_uppercase(), "who speaks TLS has come, and that is all");
    };
    if let Some(arrival) = arrivals.lock().unwrap().iter_mut().rev().find(|arrival| arrival.from == from) {
        arrival.path.clone_from(&path);
    }
    let answer = if public_site::is_public(to.ip()) {
        public_site::answer(&path)
    } else {
        public_site::ok_response("text/javascript", SECRET)
    };
    stream.write_all(answer.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// Control of the test: each canary counts the test's own connection, the public servers are elsewhere, and a dead
/// address is dead even if the machine outside knows it.
pub async fn check_canaries() -> Result<()> {
    let canaries = CanaryListeners::new().await?;
    for address in PRIVATE_ADDRESSES {
        for port in PORTS {
            canaries.probe(SocketAddr::new(address.parse()?, port)).await?;
        }
    }
    ensure!(canaries.forbidden_connections().await?.is_empty(), "knocking is not taken back");
    let _private = TcpStream::connect(("10.0.0.1", 8080)).await?;
    let _public = TcpStream::connect((public_site::PUBLIC_ADDRESSES[0], 8080)).await?;
    eventually("both arrive", async || (canaries.public_requests() == 1).then_some(())).await?;
    let caught = canaries.forbidden_connections().await?;
    ensure!(caught.len() == 1 && caught[0].to == "10.0.0.1:8080".parse()?, "{caught:?}");
    ensure!(
        TcpStream::connect((super::namespaces::DEAD_ADDRESS, 80)).await.is_err(),
        "{} is alive",
        super::namespaces::DEAD_ADDRESS
    );
    let links = std::fs::read_to_string("/proc/net/dev")?;
    let links: Vec<_> =
        links.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect();
    ensure!(links == ["lo"], "there is a way out: {links:?}");
    Ok(())
}
