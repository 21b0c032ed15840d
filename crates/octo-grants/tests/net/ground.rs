//! Test servers and names.

use axum::Router;
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetSpec, ResolveFuture, Resolver};
use octo_model::{Kind, ToolError};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

pub fn net(allow: &[&str]) -> Net {
    Net::new(spec(allow)).unwrap()
}

pub fn spec(allow: &[&str]) -> NetSpec {
    NetSpec { allow: allow.iter().map(ToString::to_string).collect(), ..NetSpec::default() }
}

/// A request with a short timeout.
pub fn ask(url: &str) -> NetRequest {
    NetRequest { timeout: Duration::from_secs(10), ..NetRequest::get(url.parse().unwrap()) }
}

pub fn error_kind<T>(answer: Result<T, ToolError>) -> Option<Kind> {
    answer.err().map(|error| error.kind)
}

/// Serves pages on loopback.
pub async fn serve(router: Router) -> SocketAddr {
    serve_at("127.0.0.1:0".parse().unwrap(), router).await
}

pub async fn serve_at(address: SocketAddr, router: Router) -> SocketAddr {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Waits until the condition holds.
pub async fn wait_until(what: &str, so: impl Fn() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Listens on every address of this machine and counts connections.
pub struct CanaryServer {
    pub port: u16,
    seen: Arc<AtomicUsize>,
}

impl CanaryServer {
    pub async fn new() -> Self {
        // Accepts IPv4 as well; a machine without IPv6 uses the other.
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = seen.clone();
        tokio::spawn(async move {
            loop {
                let _ = listener.accept().await;
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, seen }
    }

    /// Number of connections. They arrive in order, so when ours is there, all earlier ones are.
    pub async fn count(&self) -> usize {
        let before = self.seen.load(Ordering::SeqCst);
        let _ours = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        wait_until("the canary is awake", || self.seen.load(Ordering::SeqCst) > before).await;
        // Ours is the last of them and does not count.
        self.seen.fetch_sub(1, Ordering::SeqCst) - 1
    }
}

/// Names whose answers change from one lookup to the next; the last answer stays.
#[derive(Default)]
pub struct ScriptedResolver {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub asked: AtomicUsize,
}

impl ScriptedResolver {
    pub fn new(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let list = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let names =
            names.iter().map(|(name, answers)| (name.to_string(), answers.iter().map(list).collect()));
        Arc::new(Self { answers: Mutex::new(names.collect()), asked: AtomicUsize::new(0) })
    }
}

impl Resolver for ScriptedResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> ResolveFuture<'a> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let mut answers = self.answers.lock().unwrap();
            let answers = answers.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
        })
    }
}
