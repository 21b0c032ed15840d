//! A hub on a real loopback port, and clients that write raw bytes.
#![allow(clippy::disallowed_methods, reason = "tests listen on loopback and dial themselves")]

use crate::{ListenerLimits, serve_with_limits};
use axum::Router;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct TestServer {
    pub address: SocketAddr,
    pub shutdown: CancellationToken,
    pub task: JoinHandle<()>,
}

pub async fn start_server(router: Router, limits: ListenerLimits) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
    let task = tokio::spawn(serve_with_limits(listener, router, shutdown.clone(), limits));
    TestServer { address, shutdown, task }
}

impl TestServer {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads until the other side closes or is silent for a while.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes).await;
        read_until_silent(&mut stream, Duration::from_millis(300)).await
    }

    /// Head of a request to this port, without the final empty line.
    pub fn head(&self, method: &str, path: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address)
    }

    /// Whether the port still responds.
    pub async fn is_alive(&self) -> bool {
        let text = self
            .exchange(format!("{}Connection: close\r\n\r\n", self.head("GET", "/health")).as_bytes())
            .await;
        text.starts_with("HTTP/1.1 200")
    }
}

/// Reads until the end or a silence.
pub async fn read_until_silent(stream: &mut TcpStream, silence: Duration) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Ok(many)) = tokio::time::timeout(silence, stream.read(&mut buffer)).await {
        if many == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..many]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Time until the other side closes.
pub async fn until_closed(stream: &mut TcpStream) -> Duration {
    let begun = tokio::time::Instant::now();
    let mut buffer = [0; 4096];
    while let Ok(many) = stream.read(&mut buffer).await {
        if many == 0 {
            break;
        }
    }
    begun.elapsed()
}
